"""Operators: their rights to see and drop CQs of others, and the trail that each of their statements leaves."""

from __future__ import annotations

import json

from gateway.kafka import LogReader
from gateway.model.records import instant
from grouping.settings.settings import AuthSettings
from grouping.store.connection import connect
from grouping.store.keys import RedisKeys
from grouping.store.table_store import TableStore
from tests.ground import Ground
from tests.stack.counter import Counter

CREATE = "CREATE CQ {0} AS SELECT a FROM s WHERE a = '{0}'"


def _operated(ground: Ground) -> Counter:
    """Return a gateway whose operator is root, with CQs of alice and bob."""
    auth = AuthSettings(roles={"operator": "root"}, operators_by_key=True)
    settings = ground.settings.model_copy(update={"auth": auth})
    counter = Counter(settings)
    stream = f"CREATE STREAM s (a STRING) WITH (topic = 'x{settings.prefix}', format = 'json', partitions = 1)"
    counter.answers(stream, *map(CREATE.format, ("b", "a", "c")))
    counter.answers(CREATE.format("a"), subscriber="bob")
    return counter


def _audited(ground: Ground) -> list[dict[str, str]]:
    reader = LogReader(ground.settings)
    found = [json.loads(record.value or b"") for record in reader.since(ground.settings.topics.audit, {0: 0})]
    reader.close()
    return found


def test_cqs_of_others(ground: Ground) -> None:
    """An operator sees each CQ with its subscriber and cost, page by page; nobody else does."""
    counter = _operated(ground)

    def page(text: str) -> tuple[list[tuple[str, str]], str | None]:
        (reply,) = counter.answers(text, subscriber="root")
        return [(item["subscriber"], item["cq"]) for item in reply.result["cqs"]], reply.result["next"]

    assert ([("alice", "a"), ("alice", "b")], '["alice", "b"]') == page("SHOW CQS OF ALL LIMIT 2")
    assert ([("alice", "c"), ("bob", "a")], None) == page('SHOW CQS OF ALL AFTER \'["alice", "b"]\'')
    assert ([("alice", "a"), ("bob", "a")], None) == page("SHOW CQS OF ALL LIKE 'a'")
    assert ([("alice", "b")], "b") == page("SHOW CQS OF alice AFTER 'a' LIMIT 1")
    assert ([], None) == page("SHOW CQS OF nobody")
    (reply,) = counter.answers("SHOW CQS OF bob", subscriber="root")
    [item] = reply.result["cqs"]
    assert {"matches": 0, "text_bytes": len(CREATE.format("a"))} == item["cost"]
    (refused,) = counter.answers("SHOW CQS OF bob")
    (broken,) = counter.answers("SHOW CQS OF ALL AFTER 'b'", subscriber="root")
    assert ["not-allowed", "syntax-error"] == [refused.code, broken.code]


def test_cqs_dropped_by_an_operator(ground: Ground) -> None:
    """The CQs of a subscriber selected by LIKE are dropped, even CQs created just before, and no others."""
    counter = _operated(ground)
    texts = ["DROP CQS LIKE '_' OF alice", "SHOW CQS OF alice"]
    counter.serve([("1", "alice", CREATE.format("d")), ("2", "alice", CREATE.format("long"))])
    dropped, shown = counter.answers(*texts, subscriber="root")
    assert {"subscriber": "alice", "dropped": 4, "more": False} == dropped.result
    assert ["long"] == [item["cq"] for item in shown.result["cqs"]]
    (left,) = counter.answers("SHOW CQS", subscriber="bob")
    assert ["a"] == [item["cq"] for item in left.result["cqs"]]
    (refused,) = counter.answers("DROP CQS LIKE '%' OF bob")
    assert "not-allowed" == refused.code


def test_without_tokens_a_setting_makes_operators(ground: Ground) -> None:
    """Whoever writes commands can call himself root: without tokens the role counts only where a setting says so."""
    auth = AuthSettings(roles={"operator": "root"})
    counter = Counter(ground.settings.model_copy(update={"auth": auth}))
    texts = ("DROP CQS LIKE '%' OF alice", "SHOW CQS OF alice", "SET QUOTA cqs = 1 FOR bob", "PAUSE GROUP g_1")
    assert {"not-allowed"} == {reply.code for reply in counter.answers(*texts, subscriber="root")}
    audited = [(each["subscriber"], each["statement"], each["code"]) for each in _audited(ground)]
    assert [("root", text, "not-allowed") for text in texts] == audited


def test_the_audit_trail(ground: Ground) -> None:
    """The trail has each statement about others once, with its sender and outcome, refused ones included."""
    counter = _operated(ground)
    text = "DROP CQS LIKE 'c' OF alice"
    counter.serve([("x1", "root", text), ("x1", "root", text), ("x2", "alice", text), ("x3", "root", "SHOW CQS")])
    counter.serve([("x1", "root", text)])
    about_cqs = [each for each in _audited(ground) if "CQS" in each["statement"]]
    trail = [(each["subscriber"], each["command_id"], each["statement"], each["code"]) for each in about_cqs]
    assert [("root", "x1", text, "ok"), ("alice", "x2", text, "not-allowed")] == sorted(trail, key=lambda one: one[1])


def test_a_group_rests(ground: Ground) -> None:
    """Micro-batches are pinned without it, whatever happens to Redis, until it is resumed or its stream goes."""
    counter = _operated(ground)
    store = TableStore(ground.settings)
    (shown,) = counter.answers("SHOW GROUPS")
    [item] = shown.result["groups"]
    group, (described,) = item["group"], counter.answers("DESCRIBE STREAM s")
    stream = described.result["id"]
    refused, unknown = counter.answers(f"PAUSE GROUP {group}"), counter.answers("PAUSE GROUP g_no", subscriber="root")
    assert ["not-allowed", "unknown-group"] == [reply.code for reply in (*refused, *unknown)]
    assert () == store.pin(stream, 1).paused
    paused, again = counter.answers(f"PAUSE GROUP {group}", f"PAUSE GROUP {group}", subscriber="root")
    assert [{"group": group, "stream": "s", "paused": True}] * 2 == [paused.result, again.result]
    assert () == store.pin(stream, 1).paused, "a replay of a batch sees what its first try saw"
    counter.desk.working.wipe()
    counter.desk.recover()
    assert (group,) == store.pin(stream, 2).paused
    found, shown = counter.answers("DESCRIBE CQ a", "SHOW GROUPS")
    assert (
        found.result["group_paused"] == shown.result["groups"][0]["paused"] == {"since": instant(counter.desk.now_ms)}
    )
    counter.answers("DROP CQS LIKE '%' OF alice", "DROP CQS LIKE '%' OF bob", subscriber="root")
    counter.answers(CREATE.format("a"))
    assert (group,) == store.pin(stream, 3).paused, "another CQ of its shape does not wake it up"
    (resumed,) = counter.answers(f"RESUME GROUP {group}", subscriber="root")
    assert not resumed.result["paused"]
    assert () == store.pin(stream, 4).paused
    counter.answers(f"PAUSE GROUP {group}", "DROP CQS LIKE '%' OF alice", subscriber="root")
    counter.answers("DROP STREAM s")
    assert {} == connect(ground.settings).hgetall(RedisKeys.of(ground.settings).pauses)


def test_quotas(ground: Ground) -> None:
    """A subscriber's own limits count at once, outlive Redis, and are taken back by DEFAULT; others keep theirs."""
    counter = _operated(ground)
    (reply,) = counter.answers("SET QUOTA cqs = 3, streams = 0, commands_per_second = 1 FOR alice", subscriber="root")
    assert ["cqs", "streams", "commands_per_second"] == reply.result["own"]
    stream = f"CREATE STREAM s2 (a STRING) WITH (topic = 'x{ground.settings.prefix}2', format = 'json', partitions = 1)"
    replies = counter.answers(*[CREATE.format("d"), stream] * 5, "SHOW CQS")
    assert ["quota-exceeded"] * 11 == [each.code for each in replies]
    assert "The subscriber has 3 CQs, and the limit is 3." == replies[0].detail
    assert ["ok"] == [each.code for each in counter.answers(CREATE.format("d"), subscriber="bob")]
    counter.desk.working.wipe()
    counter.desk.recover()
    counter.desk.now_ms += 60_000
    assert "quota-exceeded" == counter.answers(CREATE.format("d"))[0].code
    reset = "SET QUOTA cqs = DEFAULT, streams = DEFAULT, commands_per_second = DEFAULT FOR alice"
    taken_back, shown = counter.answers(reset, "SHOW QUOTA FOR alice", subscriber="root")
    assert ([], shown.result) == (taken_back.result["own"], taken_back.result)
    assert "ok" == counter.answers(CREATE.format("d"))[0].code
    (refused,) = counter.answers("SET QUOTA cqs = 1 FOR bob")
    assert "not-allowed" == refused.code
