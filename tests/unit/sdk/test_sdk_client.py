"""The clients over a real protocol: librdkafka's mock cluster, and a small gateway with fixed answers."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from gateway.sdk import (
    Conflict,
    Match,
    NoReply,
    NotFound,
    PartialRejection,
    Reply,
    SigningKey,
    TransportError,
    aio,
    connect,
)
from schemas.partition import partition_of

_PARTITIONS = 4
"""Partitions of every topic in the mock cluster."""


class RoteGateway:
    """Answers every command. Names with "taken" and "gone" are refused; "mute" gets no reply at the first sending."""

    def __init__(self) -> None:
        self._producer = Producer(
            {"bootstrap.servers": "mock", "test.mock.num.brokers": 1, "partitioner": "murmur2_random", "linger.ms": 0}
        )
        [broker] = self._producer.list_topics(timeout=10).brokers.values()
        self.bootstrap = f"{broker.host}:{broker.port}"
        for topic in ("cq.commands", "cq.replies", "cq.results", "quotes"):
            self._producer.list_topics(topic, timeout=10)
        self.commands: list[dict[str, Any]] = []
        self.tokens: list[bytes | None] = []
        """The token of each command, None where it has none."""
        self._seen: set[str] = set()
        self.together = 1
        """Number of commands that must have come before any is answered."""
        self._held: list[dict[str, Any]] = []
        self.published: list[dict[str, Any]] = []
        self._consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "rote"})
        self._consumer.assign(
            [TopicPartition(topic, at, 0) for topic in ("cq.commands", "quotes") for at in range(_PARTITIONS)]
        )
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def close(self) -> None:
        """Stop answering."""
        self._done.set()
        self._thread.join()
        self._consumer.close()
        self._producer.flush(10)

    def result(self, source: int, *, end: bool = False) -> None:
        """Write a match of the event at that source offset, or the end."""
        now = datetime.now(UTC).isoformat()
        ce_id = "d_1/end/1" if end else f"quotes/0/{source}"
        value = {"ended_at": now, "reason": "dropped"} if end else {"n": source}
        headers = {"ce_type": "cq.end" if end else "cq.match", "ce_source": "quotes", "ce_id": ce_id, "ce_time": now}
        self._producer.produce(
            "cq.results",
            json.dumps(value),
            key="d_1",
            partition=3,
            headers=[(k, v.encode()) for k, v in headers.items()],
        )
        self._producer.flush(10)

    def _serve(self) -> None:
        while not self._done.is_set():
            message = self._consumer.poll(0.05)
            if message is None or message.error():
                continue
            fields = json.loads(message.value() or b"")
            if message.topic() == "quotes":
                self.published.append(fields)
                continue
            assert partition_of(message.key() or b"", _PARTITIONS) == message.partition()
            self.commands.append(fields)
            self.tokens.append(dict(message.headers() or ()).get("cq_token"))
            again = fields["command_id"] in self._seen
            self._seen.add(fields["command_id"])
            if "mute" not in fields["text"] or again:
                self._held.append(fields)
            if len(self._held) >= self.together:
                for each in self._held:
                    self._reply(each)
                self._held.clear()
            self._producer.poll(0)

    def _reply(self, command: dict[str, Any]) -> None:
        destination = {"id": "d_1", "mode": "shared", "topic": "cq.results", "partition": 3, "key": "d_1", "offset": 0}
        created = {"cq": "a", "group": "g_1", "signature": "SELECT …", "constants": [1], "destination": destination}
        page = int(command["text"].rpartition("AFTER 'cq")[2].rstrip("'") or 0) if "AFTER" in command["text"] else 0
        listed = {"cqs": [{"cq": f"cq{page + 1}"}], "next": f"cq{page + 1}" if page < 2 else None}
        gone = "gone" in command["text"].lower()
        refused = gone or "taken" in command["text"]
        reply = {
            "command_id": command["command_id"],
            "subscriber": command["subscriber"],
            "status": "rejected" if refused else "accepted",
            "code": "unknown-cq" if gone else "cq-exists" if refused else "ok",
            "message": 'CQ "taken" exists already' if refused else "done",
            "detail": "The CQ is there." if refused else None,
            "hint": "Use OR REPLACE." if refused else None,
            "result": None if refused else listed if command["text"].startswith("SHOW") else created,
            "replied_at": "2026-11-21T12:00:00Z",
        }
        headers = [("command_id", command["command_id"].encode())]
        self._producer.produce("cq.replies", json.dumps(reply), key=command["subscriber"], headers=headers)


@pytest.fixture
def rote() -> Iterator[RoteGateway]:
    """A gateway by rote on a cluster of its own."""
    gateway = RoteGateway()
    try:
        yield gateway
    finally:
        gateway.close()


def test_a_command_and_its_reply(rote: RoteGateway) -> None:
    """A created CQ comes back typed; a subscriber's odd name finds its own partition of replies."""
    with connect(rote.bootstrap, "Zoë / 'x'") as client:
        query = client.create("a", "SELECT price FROM quotes WHERE price < 1")
    assert ("a", "d_1", 3) == (query.cq, query.destination.id, query.destination.partition)
    assert datetime(2026, 11, 21, 12, tzinfo=UTC) == query.created_at
    assert "Zoë / 'x'" == rote.commands[0]["subscriber"]


def test_a_rejection_is_an_exception_with_code_detail_and_hint(rote: RoteGateway) -> None:
    """The caller catches the gateway's answer."""
    with connect(rote.bootstrap, "alice") as client, pytest.raises(Conflict) as caught:
        client.create("taken", "SELECT price FROM quotes")
    error = caught.value
    assert ("cq-exists", "The CQ is there.", "Use OR REPLACE.") == (error.code, error.detail, error.hint)


def test_thousands_are_pipelined_and_every_reply_is_checked(rote: RoteGateway) -> None:
    """Outcomes come in the order given, rejections among them; commands went out in order."""
    texts = [f"CREATE CQ {'taken' if number % 1000 == 7 else 'c'}{number} AS SELECT" for number in range(3000)]
    counts: list[int] = []
    with connect(rote.bootstrap, "alice") as client, pytest.raises(PartialRejection) as caught:
        client.create_many(texts, progress=counts.append)
    assert [7, 1007, 2007] == [at for at, each in enumerate(caught.value.outcomes) if not isinstance(each, Reply)]
    assert texts == [command["text"] for command in rote.commands]
    assert 3000 == counts[-1]


def test_any_number_in_one_call_keeps_only_rejections(rote: RoteGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """Items are taken as they are sent, all are counted, and each rejection is told with its item's place."""
    monkeypatch.setattr("gateway.sdk.pipeline.MOST_UNDER_WAY", 2000)
    items = (("taken" if number % 100 == 7 else f"c{number}", "SELECT 1") for number in range(2200))
    counts: list[int] = []
    refused: list[int] = []
    with connect(rote.bootstrap, "alice") as client:
        tally = client.create_all(items, progress=counts.append, rejected=lambda place, _: refused.append(place))
    places = list(range(7, 2200, 100))
    assert (2200 - 22, 22) == (tally.accepted, tally.rejected)
    assert places == refused == list(tally.rejections)
    assert "cq-exists" == tally.rejections[7].code
    assert counts == sorted(counts) and 2200 == counts[-1]
    assert [] == list(items)


def test_pages_are_followed_to_the_end(rote: RoteGateway) -> None:
    """A listing is whole, whatever the pages."""
    with connect(rote.bootstrap, "alice") as client:
        assert ["cq1", "cq2", "cq3"] == [item["cq"] for item in client.listing()]


def test_no_reply_is_told_and_the_same_id_can_be_sent_again(rote: RoteGateway) -> None:
    """A command without a reply names its id; sent again under it, it gets its reply."""
    with connect(rote.bootstrap, "alice") as client:
        with pytest.raises(NoReply) as caught:
            client.execute("mute", timeout=0.5)
        reply = client.execute("mute", command_id=caught.value.command_id)
    assert reply.command_id == caught.value.command_id
    assert 1 == len({command["command_id"] for command in rote.commands})


def test_commands_are_signed_at_each_sending(rote: RoteGateway) -> None:
    """With a key each sending of a command has a token of its own time, without one it has none."""
    seconds = iter((100, 200))
    secret = base64.urlsafe_b64encode(bytes(32)).decode()
    key = SigningKey(json.dumps({"kty": "oct", "k": secret}), clock=lambda: next(seconds))
    with connect(rote.bootstrap, "alice", signing_key=key) as client:
        with pytest.raises(NoReply) as caught:
            client.execute("mute", timeout=0.5)
        client.execute("mute", command_id=caught.value.command_id)
    claims = [json.loads(base64.urlsafe_b64decode(token.split(b".")[1] + b"==")) for token in rote.tokens if token]
    assert [100, 200] == [each["iat"] for each in claims]
    assert {("cq.commands", "alice", caught.value.command_id)} == {(e["aud"], e["sub"], e["jti"]) for e in claims}
    with connect(rote.bootstrap, "alice") as client:
        client.execute("SHOW CQS")
    assert rote.tokens[-1] is None


def test_rows_are_published_as_json(rote: RoteGateway) -> None:
    """Published rows are in Kafka once the call returns."""
    with connect(rote.bootstrap, "alice") as client:
        assert 2 == client.publish(
            "quotes", [{"symbol": "A", "price": 1.5}, {"symbol": "Ü", "price": None}], key="symbol"
        )
        while len(rote.published) < 2:
            client.execute("SHOW CQS")
    assert {"A", "Ü"} == {row["symbol"] for row in rote.published}


def test_results_come_once_until_the_end_and_from_a_cursor(rote: RoteGateway) -> None:
    """A repeat is dropped; leaving and coming back by cursor loses nothing; `cq.end` ends the iteration."""
    for source in (1, 2, 1, 2, 3):
        rote.result(source)
    with connect(rote.bootstrap, "alice") as client:
        with client.subscribe("a") as results:
            first = results.next(timeout=20)
            assert isinstance(first, Match)
            cursor = results.cursor
        rote.result(0, end=True)
        with client.subscribe(cursor=cursor) as results:
            rest = [match.offset for match in results if isinstance(match, Match)]
            assert "dropped" == results.ends["a"].reason
    assert [1, 2, 3] == [first.offset, *rest]


def test_a_name_in_the_cursor_is_read_to_its_end_after_the_drop(rote: RoteGateway) -> None:
    """The gateway no longer knows the CQ; other names without a CQ are refused."""
    for source in (1, 2):
        rote.result(source)
    rote.result(0, end=True)

    async def follow(cursor: str) -> list[int]:
        async with (
            await aio.connect(rote.bootstrap, "alice") as client,
            await client.subscribe("GONE", cursor=cursor) as results,
        ):
            return [match.offset async for match in results if isinstance(match, Match)]

    with connect(rote.bootstrap, "alice") as client:
        query = msgspec.structs.replace(client.describe("a"), cq="Gone")
        with client.subscribe(query) as results:
            first = results.next(timeout=20)
            assert isinstance(first, Match)
            cursor = results.cursor
        with client.subscribe("gone", cursor=cursor) as results:
            rest = [match.offset for match in results if isinstance(match, Match)]
            assert "dropped" == results.ends["Gone"].reason
        with pytest.raises(NotFound):
            client.subscribe("gone-too", cursor=cursor)
        with pytest.raises(NotFound):
            client.subscribe("gone")
    assert ([1, 2], [2]) == ([first.offset, *rest], asyncio.run(follow(cursor)))


def test_a_gateway_that_is_down_does_not_hold_up_a_reader(rote: RoteGateway) -> None:
    """The gateway is asked about a CQ that should have expired, and `next` keeps its time without an answer."""
    with connect(rote.bootstrap, "alice", timeout=20) as client:
        past = datetime(2026, 1, 1, tzinfo=UTC)
        query = msgspec.structs.replace(client.describe("a"), cq="mute", expires_at=past)
        with client.subscribe(query) as results:
            before = time.monotonic()
            assert results.next(timeout=0.2) is None
            while not any("mute" in command["text"] for command in rote.commands):
                assert results.next(timeout=0.2) is None
    assert time.monotonic() < before + 10


def test_cqs_are_described_all_at_once(rote: RoteGateway) -> None:
    """However many are followed, their descriptions are under way together; the first that is not there is told."""
    names = [f"a{number}" for number in range(50)]

    async def follow() -> None:
        async with await aio.connect(rote.bootstrap, "alice") as client, await client.subscribe(*names) as results:
            assert 50 == len(results.queries)

    with connect(rote.bootstrap, "alice") as client:
        known = client.create("a", "SELECT 1")
        rote.together = 50
        with client.subscribe(known, *names) as results:
            assert 51 == len(results.queries)
        asyncio.run(follow())
        with pytest.raises(Conflict):
            client.subscribe(*names[1:], "taken")


def test_the_asyncio_twin_does_the_same(rote: RoteGateway) -> None:
    """Tasks at once share a client; `async for` ends at `cq.end`; closing leaves no thread."""

    async def follow() -> list[int]:
        async with await aio.connect(rote.bootstrap, "alice") as client:
            created = await asyncio.gather(*(client.create(f"a{number}", "SELECT 1") for number in range(20)))
            with pytest.raises(Conflict):
                await client.create("taken", "SELECT 1")
            outcomes = await client.create_many([f"CREATE CQ b{number}" for number in range(200)])
            assert (20, 200) == (len(created), len(outcomes))
            tally = await client.create_all([("c1", "SELECT 1"), "CREATE CQ taken AS SELECT 1"])
            assert (1, [1]) == (tally.accepted, list(tally.rejections))
            async with await client.subscribe("a") as results:
                rote.result(1)
                rote.result(2)
                rote.result(0, end=True)
                return [match.offset async for match in results if isinstance(match, Match)]

    before = threading.active_count()
    assert [1, 2] == asyncio.run(follow())
    assert before == threading.active_count()


def test_a_kafka_that_is_not_there_is_one_error() -> None:
    """Nobody at the address is a `TransportError` with a hint, not the driver's exception."""
    with pytest.raises(TransportError) as caught:
        connect("127.0.0.1:1", "alice", timeout=1)
    assert caught.value.hint
