"""Changes of a table through the real servers, beside a fold of one record at a time."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from tests.kafka_tail import Result
from tests.stack.changes.table_oracle import (
    COLUMNS,
    QUERIES,
    UNSENT,
    TableChange,
    TableFold,
    TableQuery,
    TableRecord,
)
from tests.stack.crash.test_crash import wipe_redis
from tests.stack.lab import Lab
from tests.stack.lab_table import LabTable
from tests.stack.server import Stack
from tests.stack.tracebacks import WORKER_DEATH

_PARTITIONS = 2
_RECORDS = 120
_FENCE = "fence"


class _Changes:
    """A table, its records, and CQs over its changes."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.random = random.Random(42)
        self.table = LabTable(lab, COLUMNS, partitions=_PARTITIONS)
        self.records: list[tuple[str, TableRecord]] = []
        """Places and records in the order of publishing."""
        self.begins: dict[str, int] = {}
        """By CQ: the number of records before the reply."""
        self.queries: dict[str, TableQuery] = {}
        self.created: dict[str, Any] = {}
        self._fences = 0

    def publish(self, count: int = _RECORDS) -> None:
        """Publish records with rows, removals, and malformed records."""
        for _ in range(count):
            key = self.random.choice("abcdefgh")
            row = {
                "k": key,
                "p": self.random.choice([None, 0.5, 1.0, 2.5, 9.0]),
                "s": self.random.choice([None, "a", "b"]),
                "l": self.random.choice([None, {}, {"x": 1}]),
            }
            value = json.dumps(row).encode()
            fate = self.random.random()
            if fate < 0.2:
                self._write(ord(key) % _PARTITIONS, TableRecord(key, None))
            elif fate < 0.25:
                self._write(ord(key) % _PARTITIONS, TableRecord(key, b'{"p": 2}'))
            else:
                self._write(ord(key) % _PARTITIONS, TableRecord(None, value))

    def _write(self, partition: int, record: TableRecord) -> None:
        [place] = self.lab.client.publish_all(self.table.topic, [(record.value, record.key, partition, 0)])
        self.records.append((f"{self.table.name}/{place.partition}/{place.offset}", record))

    def watch(self, number: int, name: str) -> None:
        """Create a CQ, which counts later records."""
        self.queries[name] = query = QUERIES[number]
        self.created[name] = self.lab.create(
            name, query.select.format(table=self.table.name), clauses="DO PUBLISH SHARED"
        )
        self.begins[name] = len(self.records)

    def fence(self) -> None:
        """Return when all records are evaluated, and the results are written."""
        if _FENCE not in self.created:
            text = f"SELECT k, p FROM {self.table.name} WHERE s = '{_FENCE}' EMIT CHANGES"
            self.created[_FENCE] = self.lab.create(_FENCE, text, clauses="DO PUBLISH SHARED")
        for _ in range(2):  # the second record is evaluated once the batch of the first one is committed
            self._fences += 1
            for partition in range(_PARTITIONS):
                row = {"k": f"{_FENCE}{partition}", "p": self._fences, "s": _FENCE, "l": None}
                self._write(partition, TableRecord(None, json.dumps(row).encode()))
            self.lab.results.until(self._is_passed, f"the changes of {self.table.name} up to fence {self._fences}")
        self.lab.results.drain()

    def _is_passed(self) -> bool:
        rows = [one.row for one in self._of(_FENCE) if one.row["p"] == self._fences]
        return len(rows) == _PARTITIONS

    def _of(self, name: str) -> list[Result]:
        return [one for one in self.lab.results.of(self.created[name]["destination"]) if one.kind == "cq.match"]

    def check(self) -> None:
        """Compare the results of all CQs with the fold."""
        self.fence()
        expected = defaultdict(list)
        for name, place, change in self._folded():
            expected[name].append((place, change))
        for name in self.queries:
            found = [(one.headers["ce_id"], _change(one)) for one in self._of(name)]
            assert sorted(found, key=_place) == sorted(expected[name], key=_place), name

    def _folded(self) -> Iterator[tuple[Any, str, TableChange]]:
        folds = defaultdict(TableFold)
        for number, (place, record) in enumerate(self.records):
            live = [(name, query) for name, query in self.queries.items() if self.begins[name] <= number]
            for name, change in folds[place.split("/")[1]].changes(record, live):
                yield name, place, change


def _place(found: tuple[str, TableChange]) -> tuple[int, int]:
    _, partition, offset = found[0].split("/")
    return int(partition), int(offset)


def _change(result: Result) -> TableChange:
    headers = result.headers
    before = json.loads(headers["before"]) if "before" in headers else None
    return TableChange(headers.get("op") or headers["edge"], before, result.row)


@pytest.mark.traceback(WORKER_DEATH)
@pytest.mark.timeout(900)  # roles start anew
def test_changes_while_workers_die(stack: Stack, lab: Lab) -> None:
    """Earlier rows, removals, later CQs, killed workers and a wiped Redis: every change comes once."""
    changes = _Changes(lab)
    changes.publish()
    for number in range(len(QUERIES)):
        changes.watch(number, f"first_{number}")
    assert {"emit": "changes", "by": ["k"]}.items() <= changes.created["first_0"]["trigger"].items()
    changes.publish()
    changes.check()
    stack.kill_workers()
    changes.publish()
    changes.watch(0, "later")
    changes.publish()
    changes.check()
    wipe_redis(stack)
    killed = stack.kill("redis")
    changes.publish()
    stack.await_restart("redis", killed)
    changes.publish()
    changes.check()


def test_a_table_with_changes_is_in_use(lab: Lab) -> None:
    """DROP TABLE waits for the CQs over the changes, and statements show the name of the table."""
    table, owner = LabTable(lab, "k STRING PRIMARY KEY, p DOUBLE"), lab.subscriber("owner")
    select = f"SELECT k, p FROM {table.name} WHERE p > 5 EMIT CHANGES"
    plan = lab.client.result(f"EXPLAIN {select}", lab.subscriber())
    assert f"changes of table {table.name} (0 CQs)" in plan["text"]
    refused = lab.client.execute(f"CREATE CQ big AS {select} EXPIRE '2020-01-01T00:00:00Z'", lab.subscriber())
    assert refused.code == "already-expired", refused.fields
    made = lab.create("big", select)
    assert made["signature"] == f"SELECT … FROM {table.name} WHERE p > :c0 EMIT BY k"
    edges = lab.client.result(f"EXPLAIN SELECT k FROM {table.name} WHERE p > 7 EMIT ON EXIT", lab.subscriber())
    assert edges["plan"]["group"] == made["group"]
    assert table.described()["cqs"] == 1
    refused = lab.client.execute(f"DROP TABLE {table.name}", owner)
    assert refused.code == "stream-in-use", refused.fields
    assert lab.client.execute(f"DESCRIBE STREAM {table.name}", owner).code == "unknown-stream"
    assert lab.client.result(f"SHOW STREAMS LIKE '{table.name}'", owner)["streams"] == []
    altered = lab.client.execute("ALTER CQ big SET EVERY '1 minute'", lab.subscriber())
    assert altered.code == "unsupported-query", altered.fields
    table.put({"k": "a", "p": 9}, {"k": "a", "p": 9}, {"k": "a", "p": 7.5}, {"k": "b", "p": 1})
    table.write(("a", None))

    def found() -> list[TableChange]:
        return [_change(one) for one in lab.results.of(made["destination"]) if one.kind == "cq.match"]

    wanted = [
        TableChange("insert", None, {"k": "a", "p": 9.0}),
        TableChange("update", {"k": "a", "p": 9.0}, {"k": "a", "p": 7.5}),
        TableChange("delete", None, {"k": "a", "p": 7.5}),
    ]
    lab.results.until(lambda: len(found()) >= len(wanted), "three changes")
    assert wanted == found()
    outcome = lab.client.result('EXPLAIN CQ big FOR \'{"k": "c", "p": 6}\'', lab.subscriber())["event"]
    assert (outcome["matches"], outcome["delivered"]) == (True, None)
    lab.drop("big")
    table.drop()
    again = lab.client.execute(f"CREATE CQ big AS {select}", lab.subscriber())
    assert again.code == "unknown-stream", again.fields


def test_changes_of_a_database(lab: Lab) -> None:
    """Debezium's records: a value that was not sent, a changed key and a truncate; and the rows at a tick."""
    table = LabTable(lab, "k STRING PRIMARY KEY, p DOUBLE, s STRING", form="debezium-json")

    def change(op: str, after: Any = None, before: Any = None) -> tuple[str, bytes]:
        return "key", json.dumps({"op": op, "before": before, "after": after}).encode()

    def row(k: str, p: float, s: str) -> dict[str, Any]:
        return {"k": k, "p": p, "s": s}

    table.write(change("r", row("b", 9, "x")), change("r", row("a", 7, "y")), change("r", row("c", 1, "z")))
    select = f"SELECT * FROM {table.name} WHERE p > 5"
    snapshot, edges = (
        lab.create("rows", f"{select} EMIT CHANGES WITH SNAPSHOT"),
        lab.create("edges", f"{select} EMIT ON EXIT"),
    )
    ticks = lab.create(
        "ticks",
        f"SELECT k FROM {table.name} WHERE p > 5",
        clauses="EVERY '2 seconds' DO PUBLISH DIGEST ALL EVEN IF EMPTY",
    )

    def digest() -> Any:
        found = [one.row["rows"] for one in lab.results.of(ticks["destination"]) if one.kind == "cq.digest"]
        return found[-1] if found else None

    lab.results.until(lambda: digest() == [{"k": "b"}, {"k": "a"}], "the rows at a tick")
    table.write(
        change("u", row("a", 8, UNSENT)),
        change("u", row("d", 8, "y"), row("a", 8, "y")),
        change("u", row("d", 9, UNSENT), row("d", 8, "y")),
        change("t"),
        change("c", row("b", 6, "new")),
    )

    def found(created: Any) -> list[tuple[str, str, Any, Any]]:
        return [
            (one.headers["ce_id"].partition("/")[2], *_change(one))
            for one in lab.results.of(created["destination"])
            if one.kind == "cq.match"
        ]

    wanted = [
        ("0/0", "snapshot", None, row("b", 9, "x")),
        ("0/1", "snapshot", None, row("a", 7, "y")),
        ("0/3", "update", row("a", 7, "y"), row("a", 8, "y")),
        ("0/4", "delete", None, row("a", 8, "y")),
        ("0/4/1", "insert", None, row("d", 8, "y")),
        ("0/5", "update", row("d", 8, "y"), row("d", 9, "y")),
        ("0/6", "delete", None, row("b", 9, "x")),
        ("0/6/2", "delete", None, row("d", 9, "y")),
        ("0/7", "insert", None, row("b", 6, "new")),
    ]
    lab.results.until(lambda: len(found(snapshot)) >= len(wanted), "all changes")
    assert wanted == found(snapshot)
    lab.results.until(lambda: len(found(edges)) >= 2, "both exits")
    exits = [(place, each["k"]) for place, _, _, each in found(edges)]
    assert [("0/4", "a"), ("0/6/2", "d")] == exits
    lab.results.until(lambda: digest() == [{"k": "b"}], "the rows at a later tick")
