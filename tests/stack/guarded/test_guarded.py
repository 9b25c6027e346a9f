"""Everything behind TLS, logins and ACLs: a CQ's results come, and no secret shows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from gateway.local.sessions import supervised
from gateway.sdk import Client, connect
from grouping.kafka_options import client_options
from grouping.settings import Settings
from spark_jobs.batch.headers import packed_headers
from spark_jobs.batch.output import OUTPUT
from spark_jobs.kafka.record_writer import RecordWriter
from tests.pages import ROOT
from tests.stack.guarded.servers import PASSWORDS, Guarded, guarded_servers
from tests.stack.server import Stack

_PAGE = (ROOT / "docs" / "security.md").read_text("utf-8")


def _section(name: str) -> str:
    return _PAGE.partition(f"<!-- {name} -->\n")[2].partition(f"<!-- /{name} -->")[0]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """The servers, with the rules that the page of the documentation lists."""
    rows = _section("kafka-acls").splitlines()[2:]
    acls = [[cell.strip(" `") for cell in row.strip("| ").split("|")] for row in rows]
    with guarded_servers(tmp_path_factory.mktemp("guarded"), _section("redis-acl").strip("`\n")) as servers:
        servers.make_topic("quotes")
        servers.allow(acls)
        yield servers


def _subscriber(guarded: Guarded) -> dict[str, str]:
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": "alice",
        "sasl.password": PASSWORDS["alice"],
        "ssl.ca.location": str(guarded.certificates / "ca.pem"),
        "ssl.certificate.location": str(guarded.certificates / "client.pem"),
        "ssl.key.location": str(guarded.certificates / "client.key"),
    }


def _environment(guarded: Guarded) -> dict[str, str]:
    secret = guarded.certificates / "password"
    secret.write_text(PASSWORDS["cq"] + "\n")
    files = {"CA": "ca.pem", "CERTIFICATE": "client.pem", "KEY": "client.key"}
    both = {f"{name}_FILE": str(guarded.certificates / file) for name, file in files.items()}
    both |= {"USERNAME": "cq", "PASSWORD_FILE": str(secret)}
    own = {"CQ_KAFKA_BOOTSTRAP": guarded.bootstrap, "CQ_REDIS_URL": guarded.redis_url}
    own["CQ_KAFKA_SECURITY"] = "SASL_SSL"
    return own | {f"CQ_{server}_{name}": value for server in ("KAFKA", "REDIS") for name, value in both.items()}


def test_everything_is_guarded(guarded: Guarded, tmp_path: Path) -> None:
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
                assert producer.flush(30) == 0
                assert list(range(number + 1)) == _prices(client, number + 1)
            _assert_hidden(data, stack)
        finally:
            stack.down()


def _prices(client: Client, count: int) -> list[float]:
    with client.subscribe("cheap") as results:
        found = []
        for match in results:
            found.append(match.row["price"])
            if len(found) == count:
                return found
    raise AssertionError(f"the CQ ended after {found}")


def _assert_hidden(data: Path, stack: Stack) -> None:
    told = [json.dumps(stack.status())]
    told += [" ".join(process.cmdline()) for process in supervised(data)]
    told += [path.read_text(errors="replace") for path in data.rglob("*") if path.is_file()]
    for secret in PASSWORDS.values():
        assert not [text for text in told if secret in text]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"])
def test_a_worker_logs_in(guarded: Guarded, mechanism: str, monkeypatch: pytest.MonkeyPatch) -> None:
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
    message = consumer.poll(30)
    assert message is not None
    assert (None, b"v") == (message.error(), message.value())
    consumer.close()


def test_nobody_else_comes_in(guarded: Guarded) -> None:
    """A wrong password opens nothing, and a subscriber's does not open the topics of others."""
    wrong = AdminClient(
        {**_subscriber(guarded), "bootstrap.servers": guarded.bootstrap, "sasl.password": "no", "log_level": 0}
    )
    with pytest.raises(KafkaException):
        wrong.list_topics(timeout=2)
    alice = AdminClient({**_subscriber(guarded), "bootstrap.servers": guarded.bootstrap})
    assert {"quotes"} == {name for name in alice.list_topics(timeout=30).topics if not name.startswith("cq.")}
    assert not any(name in alice.list_topics(timeout=30).topics for name in ("cq.catalog", "cq.pending"))
