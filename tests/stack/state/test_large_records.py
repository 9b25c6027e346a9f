"""Records too large for Kafka: a reply is refused before its commit, and a stored one is skipped."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gateway.commands.prepared import Answer, PreparedCommand
from gateway.commands.statements import Statements
from gateway.kafka import LARGEST_RECORD, OutgoingRecord, Record
from gateway.model.loaded import Loaded
from gateway.state.journal import Journal
from grouping.model.query import Statement
from schemas.codec import Reply, encode_reply
from schemas.partition import partition_of
from tests.ground import Ground
from tests.stack.state.office import Office

_COLUMNS = ", ".join(f"c{number} INT" for number in range(999))
_BRANCHES = " OR ".join(f"(c{n % 10} = {n} AND c{(n + 1) % 10} > {n})" for n in range(500))
_CONSTANTS = ", ".join(f"'{number:020}'" for number in range(20_000))
_LONG = "".join(f" AND s <> '{letter * 400}'" for letter in "abcdefgh")


def test_a_reply_that_kafka_refuses_is_a_rejection(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command whose reply is too large is refused and changes nothing; its neighbours in the unit are carried out."""
    office = Office(ground)
    office.create("a", 1)
    carry_out = Statements.carry_out

    def inflated(
        statements: Statements, prepared: PreparedCommand[Statement], loaded: Loaded, record: Record, now_ms: int
    ) -> Answer:
        answer = carry_out(statements, prepared, loaded, record, now_ms)
        large = prepared.key.name == "large"
        return msgspec.structs.replace(answer, result={"x": "x" * LARGEST_RECORD}) if large else answer

    monkeypatch.setattr(Statements, "carry_out", inflated)
    office.send("CREATE CQ large AS SELECT k FROM t WHERE k = 2")
    office.create("b", 3)
    assert ["ok", "quota-exceeded", "ok"] == [reply.code for reply in office.replies()]
    office.check()


def test_a_stored_record_that_cannot_be_written_is_passed(ground: Ground, caplog: pytest.LogCaptureFixture) -> None:
    """Recovery writes a stored reply without its result, leaves out another large record, says so, and goes on."""
    office = Office(ground)
    office.create("a", 1)
    large, names, key = "x" * LARGEST_RECORD, office.settings.topics, b"bench"
    reply = office.replies()[0]
    small = msgspec.structs.replace(reply, command_id="small")
    stored = [msgspec.structs.replace(reply, command_id="large", result={"x": large}), small]
    partition = partition_of(key, 4)
    records = [OutgoingRecord(names.deadletters, b"a", large.encode(), (), 0)]
    records += [OutgoingRecord(names.replies, key, encode_reply(each, "json"), (), partition) for each in stored]
    number, _ = office.desk.commits.pending()
    connection = office.desk.working.connection
    connection.redis.set(connection.keys.journal, Journal(number + 1, {}, records, {}).pack())
    office.recover()
    assert [(each.command_id, each.result is None) for each in office.replies()[1:]] == [
        ("large", True),
        ("small", False),
    ]
    assert ["is left out" in line or "without its result" in line for line in caplog.messages].count(True) == 2
    office.create("b", 2)
    office.check()


def test_replies_at_their_largest(ground: Ground) -> None:
    """The largest statements of each kind are answered, and their replies fit a record of Kafka's."""
    office = Office(ground)

    def answer(text: str, code: str = "ok") -> Reply:
        office.send(text)
        reply = office.replies()[-1]
        assert (reply.code, reply.detail if code == "ok" else None) == (code, None), text[:100]
        return reply

    topic = f"wide-{ground.settings.prefix.strip('.')}"
    ground.make_topic(topic, 1)
    answer(f"CREATE STREAM wide ({_COLUMNS}, s STRING) WITH (topic = '{topic}', format = 'json')")
    assert 1000 == len(_result(answer("DESCRIBE STREAM wide"))["columns"])
    for kind in ("EXPLAIN", "EXPLAIN STAGES"):
        for condition in (_BRANCHES, f"s IN ({_CONSTANTS})", f"s = '{chr(1) * 150_000}'"):
            answer(f"{kind} SELECT * FROM wide WHERE {condition}")
    answer(f"CREATE CQ branches AS SELECT * FROM wide WHERE {_BRANCHES} DO PUBLISH VIRTUAL")
    answer(f"CREATE CQ many AS SELECT * FROM wide WHERE s IN ({_CONSTANTS}) DO PUBLISH VIRTUAL")
    for name in ("branches", "many"):
        for statement in ("DESCRIBE", "EXPLAIN"):
            answer(f"{statement} CQ {name}")
    office.send_all(
        [
            f"CREATE CQ q{number} AS SELECT c{number % 900} FROM wide WHERE c1 = {number}{_LONG}"
            for number in range(1000)
        ]
    )
    shown = {what: _result(answer(f"SHOW {what.upper()}")) for what in ("cqs", "groups", "streams")}
    assert len(shown["cqs"]["cqs"]) == 1000


def _result(reply: Reply) -> dict[str, Any]:
    assert isinstance(reply.result, dict)
    return reply.result
