"""Owners of streams, tables and views: who drops, grants and reads them, and who learns that they exist."""

from __future__ import annotations

import json
import re
from typing import Any

from gateway.kafka import LogReader
from grouping.settings.settings import AuthSettings, StreamSettings
from tests.ground import Ground
from tests.stack.counter import Counter

_WITH = "WITH (topic = 'x{}', format = 'json', partitions = 1{})"


class _Office:
    """A gateway with a restricted stream, table and view of alice, and an operator root."""

    def __init__(self, ground: Ground, **streams: Any) -> None:
        auth = AuthSettings(roles={"operator": "root"}, operators_by_key=True)
        update = {"auth": auth, "streams": StreamSettings(**streams)}
        self.counter = Counter(ground.settings.model_copy(update=update))
        self.topic = ground.settings.prefix

    def says(self, subscriber: str, *texts: str) -> list[str]:
        return [reply.code for reply in self.counter.answers(*texts, subscriber=subscriber)]

    def result(self, subscriber: str, text: str) -> Any:
        (reply,) = self.counter.answers(text, subscriber=subscriber)
        assert "ok" == reply.code, reply
        return reply.result

    def stream(self, name: str, access: str = "", more: str = "") -> str:
        option = f", access = '{access}'" if access else ""
        return f"CREATE STREAM {more}{name} (a STRING, b INT) " + _WITH.format(self.topic + name, option)

    def table(self, name: str, access: str) -> str:
        with_ = _WITH.format(self.topic + name, f", access = '{access}'")
        return f"CREATE TABLE {name} (k STRING PRIMARY KEY, c STRING) {with_}"


_JOIN = "SELECT s.a FROM s JOIN lookup t ON t.k = s.a WHERE t.c = 'x'"


def test_a_restricted_source_does_not_exist_for_others(ground: Ground) -> None:
    """No statement tells of it, whatever it is; a name in use is refused without a word more."""
    office = _Office(ground)
    made = (
        office.stream("s", "granted"),
        office.table("lookup", "granted"),
        "CREATE VIEW v WITH (access = 'granted') AS SELECT a, b FROM s WHERE b > 1",
    )
    assert ["ok"] * 4 == office.says("alice", *made, "CREATE CQ q AS " + _JOIN)
    hidden = (
        "CREATE CQ q AS SELECT a FROM s",
        "CREATE CQ q AS SELECT a FROM v",
        "CREATE CQ q AS SELECT a FROM (SELECT a FROM s) x",
        "CREATE VIEW w AS SELECT a FROM s",
        "CREATE VIEW w AS SELECT a FROM v",
        "EXPLAIN SELECT a FROM s",
        "EXPLAIN STAGES SELECT a FROM v",
        "DESCRIBE STREAM s",
        "DESCRIBE TABLE lookup",
        "DESCRIBE VIEW v",
        "DROP STREAM s",
        "DROP TABLE lookup",
        "DROP VIEW v",
        "GRANT READ ON STREAM s TO 'bob'",
        "REVOKE READ ON TABLE lookup FROM 'alice' CASCADE",
    )
    replies = office.counter.answers(*hidden, subscriber="bob")
    assert ["unknown-stream"] * len(hidden) == [reply.code for reply in replies]
    text = " ".join(f"{reply.detail} {reply.hint}" for reply in replies)
    assert not re.search(r"\b(s|v|lookup)\b", text), text
    for what in ("STREAMS", "TABLES", "VIEWS", "GROUPS", "COMPUTATIONS"):
        shown = [office.result(who, f"SHOW {what}")[what.lower()] for who in ("alice", "bob")]
        assert {"s", "v", "lookup"}.isdisjoint(str(each.get(what.lower()[:-1])) for each in shown[1])
        assert len(shown[0]) > len(shown[1])
    taken = office.counter.answers(office.stream("S"), office.table("v", "open"), subscriber="bob")
    assert ["stream-exists"] * 2 == [reply.code for reply in taken]
    assert not any("topic" in str(reply.message) + str(reply.detail) for reply in taken)


def test_texts_of_a_known_shape_are_refused_too(ground: Ground) -> None:
    """The fast path compiles no text over a stream that its sender may not read, nor does a view's inside count."""
    office = _Office(ground)
    create = "CREATE CQ q{0} AS SELECT a FROM {1} WHERE a = 'x{0}'"
    office.says("alice", office.stream("s", "granted"), "CREATE VIEW v AS SELECT a FROM s")
    assert ["ok"] * 4 == office.says("alice", *(create.format(number, "s") for number in range(4)))
    assert ["ok"] * 4 == office.says("bob", *(create.format(number, "v") for number in range(4)))
    assert ["unknown-stream"] * 4 == office.says("bob", *(create.format(number, "s") for number in range(4, 8)))
    assert ["ok"] == office.says("alice", "GRANT READ ON STREAM s TO ALL")
    assert ["ok"] * 4 == office.says("bob", *(create.format(number, "s") for number in range(4, 8)))


def test_grants_outlive_redis(ground: Ground) -> None:
    """Owners, access and readers come back from the catalog, and stay when the record is written anew."""
    office = _Office(ground)
    office.says(
        "alice", office.stream("s", "granted"), office.table("lookup", "granted"), "CREATE VIEW v AS SELECT a FROM s"
    )
    granted = [
        office.result("alice", f"GRANT READ ON {what} TO 'bob', 'carol'") for what in ("STREAM s", "TABLE lookup")
    ]
    assert [("alice", "granted", ["bob", "carol"])] * 2 == [
        (each["owner"], each["access"], each["readers"]) for each in granted
    ]
    office.counter.desk.working.wipe()
    office.counter.desk.recover()
    described = [office.result("alice", f"DESCRIBE {what}") for what in ("STREAM s", "TABLE lookup", "VIEW v")]
    assert [("alice", "granted", ["bob", "carol"])] * 2 + [("alice", "open", [])] == [
        (each["owner"], each["access"], each["readers"]) for each in described
    ]
    assert ["ok", "not-allowed"] == office.says("bob", "CREATE CQ q AS " + _JOIN, "DROP VIEW v")
    assert ["unknown-stream"] == office.says("dan", "CREATE CQ q AS " + _JOIN)
    assert "readers" not in office.result("bob", "DESCRIBE STREAM s")


def test_a_revoke_counts_and_drops(ground: Ground) -> None:
    """REVOKE leaves the CQs that stood on the grant and counts them; CASCADE drops them, and nobody else's."""
    office = _Office(ground)
    office.says("alice", office.stream("s", "granted"), "CREATE VIEW v AS SELECT a FROM s", office.stream("open"))
    assert {"cqs": 0, "dropped": 0, "more": False}.items() <= office.result(
        "alice", "REVOKE READ ON STREAM s FROM 'bob'"
    ).items()
    office.says("alice", "GRANT READ ON STREAM s TO 'bob', 'carol'")
    mine = ("CREATE VIEW own AS SELECT a FROM s", "CREATE CQ a AS SELECT a FROM s", "CREATE CQ b AS SELECT a FROM own")
    others = ("CREATE CQ c AS SELECT a FROM v", "CREATE CQ d AS SELECT a FROM open")
    assert ["ok"] * 5 == office.says("bob", *mine, *others)
    assert ["ok"] == office.says("carol", "CREATE CQ a AS SELECT a FROM s")
    revoked = office.result("alice", "REVOKE READ ON STREAM s FROM 'bob'")
    assert (2, 0, False, ["carol"]) == tuple(revoked[each] for each in ("cqs", "dropped", "more", "readers"))
    names = [item["cq"] for item in office.result("bob", "SHOW CQS")["cqs"]]
    assert ["a", "b", "c", "d"] == names
    assert ["unknown-stream", "ok"] == office.says("bob", "CREATE CQ e AS SELECT a FROM s", "PAUSE CQ a")
    revoked = office.result("alice", "REVOKE READ ON STREAM s FROM 'bob' CASCADE")
    assert (2, 2) == (revoked["cqs"], revoked["dropped"])
    assert ["c", "d"] == [item["cq"] for item in office.result("bob", "SHOW CQS")["cqs"]]
    assert ["a"] == [item["cq"] for item in office.result("carol", "SHOW CQS")["cqs"]]
    assert 0 == office.result("alice", "REVOKE READ ON STREAM s FROM ALL")["cqs"]


def test_the_default_and_the_operator(ground: Ground) -> None:
    """A setting restricts sources without an access of their own; an operator reads, grants and drops everything."""
    office = _Office(ground, access="granted")
    office.says("alice", office.stream("s"), office.stream("o", "open"))
    assert ["unknown-stream", "ok"] == office.says("bob", "DESCRIBE STREAM s", "DESCRIBE STREAM o")
    assert ["s", "o"] != [each["stream"] for each in office.result("bob", "SHOW STREAMS")["streams"]]
    assert ["ok", "ok"] == office.says("root", "DESCRIBE STREAM s", "GRANT READ ON STREAM s TO 'bob'")
    assert ["ok", "not-allowed"] == office.says("bob", "DESCRIBE STREAM s", "DROP STREAM s")
    assert ["ok"] == office.says("root", "DROP STREAM s")


def test_sources_of_a_version_without_owners(ground: Ground) -> None:
    """A stored stream without owner and access belongs to everybody, and the setting says who reads the stream."""
    granted = _Office(ground, access="granted")
    assert ["unknown-stream"] * 2 == granted.says("bob", "DESCRIBE STREAM t", "DROP STREAM t")
    described = granted.result("root", "DESCRIBE STREAM t")
    assert (None, "granted") == (described["owner"], described["access"])
    assert ["ok", "ok"] == granted.says("root", "GRANT READ ON STREAM t TO 'bob'", "CREATE CQ q AS SELECT k FROM t")
    assert ["k"] == [each["name"] for each in granted.result("bob", "DESCRIBE STREAM t")["columns"]]
    assert ["stream-in-use"] == granted.says("bob", "DROP STREAM t")


def test_if_exists(ground: Ground) -> None:
    """IF NOT EXISTS takes an equal source, IF EXISTS a missing one; else both are as without."""
    office = _Office(ground)
    made = office.stream("s", more="IF NOT EXISTS ")
    view = "CREATE VIEW IF NOT EXISTS v AS SELECT a FROM s"
    first, again = office.counter.answers(made, made)
    assert ("ok", first.result) == (again.code, again.result)
    assert ["ok", "ok", "stream-exists", "stream-exists"] == office.says(
        "alice", view, view, view.replace("SELECT a", "SELECT b"), office.stream("v", more="IF NOT EXISTS ")
    )
    assert ["stream-exists"] == office.says("alice", made.replace("b INT", "b BIGINT"))
    drops = ("DROP VIEW IF EXISTS v", "DROP VIEW IF EXISTS v", "DROP CQ IF EXISTS q", "DROP TABLE IF EXISTS s")
    assert [True, False, False, False] == [office.result("alice", text)["dropped"] for text in drops]
    assert ["not-allowed"] == office.says("bob", "DROP STREAM IF EXISTS s")


def test_changes_of_sources_are_audited(ground: Ground) -> None:
    """CREATE, DROP, GRANT and REVOKE leave one record each, accepted or not; questions leave none."""
    office = _Office(ground)
    texts = (office.stream("s"), "GRANT READ ON STREAM s TO 'bob'", "SHOW STREAMS", "DESCRIBE STREAM s")
    office.says("alice", *texts)
    office.says("bob", "DROP STREAM s", "REVOKE READ ON STREAM s FROM 'bob'")
    reader = LogReader(ground.settings)
    found = [json.loads(record.value or b"") for record in reader.since(ground.settings.topics.audit, {0: 0})]
    reader.close()
    assert [("alice", "CREATE", "ok"), ("alice", "GRANT", "ok"), ("bob", "DROP", "not-allowed")] == [
        (each["subscriber"], each["statement"].split()[0], each["code"]) for each in found
    ][:3]
    assert 4 == len(found)
    assert all(each["at"] for each in found)
