"""The limits of a subscriber: beyond them the answer is `quota-exceeded`, whatever the size, and the next is served."""

from __future__ import annotations

import json

import pytest

from gateway.kafka import LARGEST_RECORD, LogReader
from grouping.settings.limit_settings import LimitSettings
from grouping.store.quarantine import CulpritSearch, QuarantineStore
from grouping.store.table_store import TableStore
from spark_jobs.runtime.streams.worker_deaths import WorkerDeaths
from tests.codec import encode_single_object, wire_schema
from tests.ground import Ground
from tests.stack.counter import Counter


def _stream(name: str, topic: str, partitions: int) -> str:
    return f"CREATE STREAM {name} (a STRING) WITH (topic = '{topic}', format = 'json', partitions = {partitions})"


def test_streams_and_their_partitions(ground: Ground) -> None:
    """A subscriber has a limited number of streams and of their topics' partitions; another one's are not counted."""
    limits = LimitSettings(streams_per_subscriber=2, partitions_per_subscriber=4)
    counter = Counter(ground.settings.model_copy(update={"limits": limits}))
    topic = f"x{ground.settings.prefix}"
    replies = counter.answers(
        _stream("a", topic + "a", 3),
        _stream("b", topic + "b", 2),
        _stream("c", topic + "c", 1_000),
        _stream("b", topic + "b", 1),
        _stream("d", topic + "d", 1),
        "DROP STREAM a",
        _stream("d", topic + "d", 1),
    )
    codes = ["ok", "quota-exceeded", "quota-exceeded", "ok", "quota-exceeded", "ok", "ok"]
    assert codes == [reply.code for reply in replies]
    assert ["ok"] == [reply.code for reply in counter.answers(_stream("e", topic + "b", 1), subscriber="bob")]


def test_a_subscriber_of_whom_too_much_was_quarantined(ground: Ground) -> None:
    """Makes no new groups, not after DROP either, until Redis, and its knowledge, is lost; others do."""
    limits = LimitSettings(quarantined_per_subscriber=2)
    counter, store = Counter(ground.settings.model_copy(update={"limits": limits})), QuarantineStore(ground.settings)
    desk, create = counter.desk, "CREATE CQ {} AS SELECT a FROM s WHERE {} DO PUBLISH SHARED"
    counter.answers(_stream("s", f"x{ground.settings.prefix}", 1), create.format("x", "a = 'x'"))
    (described,) = counter.answers("DESCRIBE STREAM s")
    stream = described.result["id"]
    texts = [create.format("kills", "a > 'x'"), create.format("hangs", "a < 'x'"), create.format("fine", "a <> 'x'")]
    groups = [reply.result["group"] for reply in counter.answers(*texts, subscriber="mallory")]
    assert dict.fromkeys(groups, "mallory") == {name: store.sole_users(stream)[name] for name in groups}
    deaths = WorkerDeaths(store, lambda: desk.now_ms)
    for group in groups[:2]:
        store.set_search(stream, CulpritSearch(2, (group,)))
        store.mark(stream, 0, [group])
        deaths.failed(stream, "Task 0 in stage 1.0 failed 1 times: Python worker exited unexpectedly (crashed)")

    def codes(subscriber: str = "mallory") -> list[str]:
        desk.quarantines.refresh(desk.now_ms)
        texts = (create.format("new", "a LIKE 'x%'"), create.format("another", "a = 'y'"))
        return [
            reply.code for reply in counter.answers(*texts, "DROP CQ new", "DROP CQ another", subscriber=subscriber)
        ]

    assert ["quota-exceeded", "ok", "unknown-cq", "ok"] == codes()
    assert ["ok", "ok", "ok", "ok"] == codes("alice")
    fine, _, _ = counter.answers("DESCRIBE CQ fine", "DROP CQ kills", "DROP CQ hangs", subscriber="mallory")
    assert fine.result["quarantined"] is None
    assert "quota-exceeded" == codes()[0]
    (joined,) = counter.answers(create.format("y", "a <> 'y'"))
    assert (groups[2], "") == (joined.result["group"], store.sole_users(stream)[groups[2]])
    desk.working.wipe()
    desk.recover()
    assert ["ok", "ok", "ok", "ok"] == codes()
    assert "" == store.sole_users(stream)[groups[2]], "as the catalog tells"


def test_partitions_of_tables_and_of_dropped_sources(ground: Ground) -> None:
    """Tables' partitions count; topics made for dropped sources may have as many, until these are deleted."""
    counter = Counter(ground.settings.model_copy(update={"limits": LimitSettings(partitions_per_subscriber=4)}))
    topic = f"x{ground.settings.prefix}"
    table = "CREATE TABLE {} (a STRING PRIMARY KEY) WITH (topic = '" + topic + "{}', format = 'json', partitions = {})"
    replies = counter.answers(
        table.format("kept", "kept", 2),
        _stream("s", topic + "s", 3),
        _stream("s", topic + "s", 2),
        "DROP STREAM s",
        *(text for name in "uv" for text in (table.format(name, name, 2), f"DROP TABLE {name}")),
        table.format("w", "w", 1),
        table.format("w", "u", 2),
        "DROP TABLE w",
    )
    codes = ["ok", "quota-exceeded", "ok", "ok", *["ok"] * 4, "quota-exceeded", "ok", "ok"]
    assert codes == [reply.code for reply in replies]
    assert (replies[1].detail or "").startswith("Its streams and tables have 2, and this one would have 3;")
    assert "topics of dropped ones have 6 (" in (replies[8].detail or "")
    ground.delete_topic(topic + "s")
    assert ["ok"] == [reply.code for reply in counter.answers(table.format("w", "w", 1))]


def test_a_dropped_table_leaves_nothing_in_redis(ground: Ground) -> None:
    """How far its dead letters are written is forgotten, and lapses where a worker notes it once more."""
    counter = Counter(ground.settings)
    topic = f"x{ground.settings.prefix}"
    [made] = counter.answers(
        f"CREATE TABLE u (a STRING PRIMARY KEY) WITH (topic = '{topic}', format = 'json', partitions = 1)"
    )
    store, connection = TableStore(ground.settings), counter.desk.working.connection
    key = connection.keys.table_letters(made.result["id"])
    store.letters_written(made.result["id"], {0: 7})
    assert -1 == connection.redis.ttl(key), "it is kept while the table lives"
    assert ["ok"] == [reply.code for reply in counter.answers("DROP TABLE u")]
    assert not connection.redis.exists(key)
    store.letters_written(made.result["id"], {0: 8})
    assert 0 < connection.redis.ttl(key) <= 86_400


def test_too_many_cqs(ground: Ground) -> None:
    """The error says how many CQs a subscriber has, CQs created just before included."""
    limits = LimitSettings(cqs_per_subscriber=2)
    counter = Counter(ground.settings.model_copy(update={"limits": limits}))
    create = "CREATE CQ {} AS SELECT a FROM s WHERE a = 'x'"
    stream = _stream("s", f"x{ground.settings.prefix}", 1)
    replies = counter.answers(stream, *(create.format(name) for name in "abc"))
    assert ["ok", "ok", "ok", "quota-exceeded"] == [reply.code for reply in replies]
    assert "The subscriber has 2 CQs, and the limit is 2." == replies[-1].detail
    limits.cqs_per_subscriber = 1  # a lowered limit leaves existing CQs
    (reply,) = counter.answers(create.format("d"))
    assert "The subscriber has 2 CQs, and the limit is 1." == reply.detail


def test_too_many_joins(ground: Ground) -> None:
    """Joins that differ in a constant of their keys count; CQs over the same join do not, nor do other streams."""
    limits = LimitSettings(joins_per_stream=2)
    counter = Counter(ground.settings.model_copy(update={"limits": limits}))
    topic = f"x{ground.settings.prefix}"
    table = f"CREATE TABLE u (b STRING PRIMARY KEY) WITH (topic = '{topic}t', format = 'json', partitions = 1)"
    create = "CREATE CQ {} AS SELECT a FROM {} JOIN u ON b = concat(a, '{}') WHERE a = '{}'"
    queries = [("c1", "s", "x", "1"), ("c2", "s", "y", "1"), ("c3", "s", "x", "2"), ("c4", "s", "z", "1")]
    replies = counter.answers(
        _stream("s", topic + "s", 1),
        _stream("r", topic + "r", 1),
        table,
        *(create.format(*each) for each in (*queries, ("c5", "r", "z", "1"))),
    )
    assert ["ok"] * 6 + ["quota-exceeded", "ok"] == [reply.code for reply in replies], "\n".join(
        f"{one.message} {one.detail} {one.hint}" for one in replies
    )
    replies = counter.answers("DROP CQ c2", create.format("c4", "s", "z", "1"))
    assert ["ok", "ok"] == [reply.code for reply in replies]


def test_too_many_commands(ground: Ground) -> None:
    """Beyond the rate commands are refused in their order, one reply each; another subscriber's are carried out."""
    limits = LimitSettings(commands_per_second=2)
    counter = Counter(ground.settings.model_copy(update={"limits": limits}))
    replies = counter.answers(*["SHOW CQS"] * 30)
    assert ["ok"] * 20 + ["quota-exceeded"] * 10 == [reply.code for reply in replies]
    assert ["ok"] == [reply.code for reply in counter.answers("SHOW CQS", subscriber="bob")]
    counter.desk.now_ms += 500
    assert ["ok", "quota-exceeded"] == [reply.code for reply in counter.answers("SHOW CQS", "SHOW CQS")]


def _command(**fields: object) -> bytes:
    return json.dumps({"command_id": "c", "subscriber": "alice", "text": "SHOW CQS"} | fields).encode()


def test_enormous_records(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids, names, keys, properties and rubbish of megabytes are each answered or a dead letter; the next is served."""
    monkeypatch.setattr("gateway.commands.commands.UNIT_BYTES", 20 << 20)
    counter = Counter(ground.settings)
    huge, rubbish, longest = "h" * (5 << 20), b"r" * (15 << 20), b"r" * (LARGEST_RECORD - 500)
    avro = {"command_id": huge, "subscriber": "alice", "text": "SHOW CQS"}
    counter.serve_records(
        [
            (b"alice", _command(command_id=huge)),
            (b"alice", encode_single_object(wire_schema("command"), avro)),
            (huge.encode(), _command(subscriber=huge)),
            (b"k" * 5000, _command(command_id="key", subscriber="k" * 5000)),
            (b"k" * 5000, _command(command_id="long key")),
            (b"alice", rubbish),
            (b"alice", longest),
            (b"alice", _command(command_id="text", text=huge)),
            (b"alice", _command(command_id="properties", properties={huge: huge})),
            (b"alice", _command(command_id="last")),
        ]
    )
    codes = {name: [reply.code for reply in replies] for name, replies in counter.replies().items()}
    malformed = "malformed-command"
    assert {
        "": [malformed] * 4,
        "key": [malformed],
        "long key": [malformed],
        "text": ["command-too-large"],
        "properties": ["ok"],
        "last": ["ok"],
    } == codes
    reader = LogReader(ground.settings)
    letters = list(reader.since(ground.settings.topics.deadletters, {0: 0}))
    reader.close()
    assert 7 == len(letters)
    assert rubbish in [letter.value for letter in letters]
    [cut] = [letter for letter in letters if len(letter.value) > len(rubbish)]
    assert longest.startswith(cut.value)
    assert b"only the beginning" in dict(cut.headers)["detail"]
