"""Everything behind TLS, logins and ACLs: a CQ's results come, and no secret shows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from gateway.local.sessions import supervised
from gateway.sdk import Client, SigningKey, connect
from grouping.settings.kafka_options import client_options
from grouping.settings.settings import Settings
from spark_jobs.engine.rows.headers import packed_headers
from spark_jobs.engine.rows.output import OUTPUT
from spark_jobs.runtime.kafka.record_writer import RecordWriter
from tests.cluster.guarded.servers import PASSWORDS, GuardedServers, guarded_servers
from tests.kafka_client import DEADLINE
from tests.pages import ROOT
from tests.stack.server import Stack

_PAGE = (ROOT / "docs" / "security.md").read_text("utf-8")


def _section(name: str) -> str:
    return _PAGE.partition(f"<!-- {name} -->\n")[2].partition(f"<!-- /{name} -->")[0]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedServers]:
    """The servers, with the rules that the page of the documentation lists."""
    rows = _section("kafka-acls").splitlines()[2:]
    acls = [[cell.strip(" `") for cell in row.strip("| ").split("|")] for row in rows]
    with guarded_servers(tmp_path_factory.mktemp("guarded"), _section("redis-acl").strip("`\n")) as servers:
        servers.make_topic("quotes")
        servers.allow(acls)
        yield servers


def _subscriber(guarded: GuardedServers, name: str = "alice") -> dict[str, str]:
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": name,
        "sasl.password": PASSWORDS[name],
        "ssl.ca.location": str(guarded.certificates / "ca.pem"),
        "ssl.certificate.location": str(guarded.certificates / "client.pem"),
        "ssl.key.location": str(guarded.certificates / "client.key"),
    }


def _environment(guarded: GuardedServers) -> dict[str, str]:
    secret = guarded.certificates / "password"
    secret.write_text(PASSWORDS["cq"] + "\n")
    files = {"CA": "ca.pem", "CERTIFICATE": "client.pem", "KEY": "client.key"}
    both = {f"{name}_FILE": str(guarded.certificates / file) for name, file in files.items()}
    both |= {"USERNAME": "cq", "PASSWORD_FILE": str(secret)}
    own = {"CQ_KAFKA_BOOTSTRAP": guarded.bootstrap, "CQ_REDIS_URL": guarded.redis_url}
    own["CQ_KAFKA_SECURITY"] = "SASL_SSL"
    return own | {f"CQ_{server}_{name}": value for server in ("KAFKA", "REDIS") for name, value in both.items()}


def test_everything_is_guarded(guarded: GuardedServers, tmp_path: Path) -> None:
    """With each way to log in, and the listed ACLs, a CQ gets its results; and goes on when the way is changed."""
    data = tmp_path / "data"
    ways = {
        "SCRAM-SHA-512": {"CQ_KAFKA_MECHANISM": "SCRAM-SHA-512"},
        "OAUTHBEARER": {"CQ_KAFKA_MECHANISM": "OAUTHBEARER", "CQ_KAFKA_TOKEN_URL": guarded.token_url},
    }
    producer = Producer({**_subscriber(guarded), "bootstrap.servers": guarded.bootstrap})
    for number, way in enumerate(ways.values()):
        stack = Stack(data, **_environment(guarded), **way)
        try:
            stack.up()
            with connect(guarded.bootstrap, "alice", extra=_subscriber(guarded)) as client:
                if number == 0:
                    client.execute("CREATE STREAM quotes (price DOUBLE) WITH (topic = 'quotes', format = 'json')")
                    client.execute("CREATE CQ cheap AS SELECT price FROM quotes WHERE price < 100 DO PUBLISH DEDICATED")
                producer.produce("quotes", json.dumps({"price": number}).encode())
                assert producer.flush(DEADLINE) == 0
                assert list(range(number + 1)) == _prices(client, number + 1)
            _assert_hidden(data, stack)
        finally:
            stack.down()


def test_a_subscriber_reads_no_result_of_another(guarded: GuardedServers, tmp_path: Path) -> None:
    """The recipe of docs/access.md: with tokens an ACL by the subscriber's prefix opens its own results alone."""
    keys = tmp_path / "keys"
    keys.mkdir()
    guarded.make_topic("trades")
    guarded.allow([("cq", "topic", "trades", "describe, describe_configs, read")])
    for name in ("bob", "carol"):
        private = Ed25519PrivateKey.generate()
        own = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        (tmp_path / name).write_bytes(private.private_bytes(*own))
        public = private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        (keys / f"{name}.pem").write_bytes(public)
        prefix = hashlib.blake2b(name.encode(), digest_size=5).hexdigest()
        guarded.allow(
            [(name, "topic", "cq.commands", "describe, write"), (name, "topic", "cq.replies", "describe, read")]
        )
        guarded.allow(
            [(name, "topic", f"cq.results.d_{prefix}*", "describe, read"), (name, "group", "unused", "describe")]
        )
    tokens = {"CQ_AUTH_MODE": "token", "CQ_AUTH_KEYS": str(keys), "CQ_RESULTS_SHARED": "false"}
    stack = Stack(tmp_path / "data", **_environment(guarded), CQ_KAFKA_MECHANISM="SCRAM-SHA-512", **tokens)
    producer = Producer({"bootstrap.servers": guarded.inner})
    try:
        stack.up()
        bob, carol = (
            connect(guarded.bootstrap, name, extra=_subscriber(guarded, name), signing_key=SigningKey(tmp_path / name))
            for name in ("bob", "carol")
        )
        with bob, carol:
            bob.execute("CREATE STREAM trades (price DOUBLE) WITH (topic = 'trades', format = 'json')")
            text = "CREATE CQ cheap AS SELECT price FROM trades WHERE price < 100 DO PUBLISH DEDICATED"
            places = [client.execute(text).result["destination"] for client in (bob, carol)]
            producer.produce("trades", b'{"price": 7}')
            assert producer.flush(DEADLINE) == 0
            assert [[7], [7]] == [_prices(client, 1) for client in (bob, carol)]
        for name, own, other in (("bob", *places), ("carol", *reversed(places))):
            assert b'{"price":7.0}' == _first(guarded, name, own)
            admin = AdminClient({**_subscriber(guarded, name), "bootstrap.servers": guarded.bootstrap})
            error = admin.list_topics(other["topic"], timeout=DEADLINE).topics[other["topic"]].error
            assert error is not None
            assert KafkaError.TOPIC_AUTHORIZATION_FAILED == error.code()
    finally:
        stack.down()


def _first(guarded: GuardedServers, name: str, destination: dict[str, Any]) -> bytes | None:
    """Return the value of the first record, as any Kafka client reads it."""
    own = {"bootstrap.servers": guarded.bootstrap, "group.id": "unused", "enable.auto.commit": False}
    consumer = Consumer({**_subscriber(guarded, name), **own})
    consumer.assign([TopicPartition(destination["topic"], destination["partition"], destination["offset"])])
    message = consumer.poll(DEADLINE)
    consumer.close()
    assert message is not None
    return message.value()


def _prices(client: Client, count: int) -> list[float]:
    with client.subscribe("cheap") as results:
        found = []
        for match in results:
            found.append(match.row["price"])
            if len(found) == count:
                return found
    raise AssertionError(f"the CQ ended after {found}")


def _assert_hidden(data: Path, stack: Stack) -> None:
    texts = [json.dumps(stack.status())]
    texts += [" ".join(process.cmdline()) for process in supervised(data)]
    texts += [path.read_text(errors="replace") for path in data.rglob("*") if path.is_file()]
    for secret in PASSWORDS.values():
        assert not [text for text in texts if secret in text]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"])
def test_a_worker_logs_in(guarded: GuardedServers, mechanism: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The producer of a worker writes, and the gateway's client reads, with each way to log in."""
    for name, value in _environment(guarded).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("CQ_KAFKA_MECHANISM", mechanism)
    monkeypatch.setenv("CQ_KAFKA_TOKEN_URL", guarded.token_url if mechanism == "OAUTHBEARER" else "")
    settings = Settings()
    topic = f"cq.{mechanism}"
    guarded.make_topic(topic)
    writer = RecordWriter(settings)
    row = ([b"k"], [b"v"], [topic], [0], [packed_headers(())])
    arrays = [pa.array(column, kind) for column, kind in zip(row, OUTPUT.types, strict=True)]
    writer.write(pa.record_batch(arrays, schema=OUTPUT))
    writer.flush()
    writer.close()
    consumer = Consumer({**client_options(settings.kafka), "group.id": "cq.probe"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    message = consumer.poll(DEADLINE)
    assert message is not None
    assert (None, b"v") == (message.error(), message.value())
    consumer.close()


def test_nobody_else_comes_in(guarded: GuardedServers) -> None:
    """A wrong password opens nothing, and a subscriber's does not open the topics of others."""
    wrong = AdminClient(
        {**_subscriber(guarded), "bootstrap.servers": guarded.bootstrap, "sasl.password": "no", "log_level": 0}
    )
    with pytest.raises(KafkaException):
        wrong.list_topics(timeout=2)
    alice = AdminClient({**_subscriber(guarded), "bootstrap.servers": guarded.bootstrap})
    assert {"quotes"} == {name for name in alice.list_topics(timeout=DEADLINE).topics if not name.startswith("cq.")}
    assert not any(name in alice.list_topics(timeout=DEADLINE).topics for name in ("cq.catalog", "cq.pending"))
