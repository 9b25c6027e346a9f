"""EMIT CHANGES WITH SNAPSHOT through the real servers: the rows of the moment, then the changes."""

from __future__ import annotations

import json
import random
import threading
from typing import Any, NamedTuple

import pytest
from redis import Redis

from grouping.store.keys import RedisKeys
from tests.kafka_tail import Result
from tests.stack.lab import Lab
from tests.stack.lab_table import LabTable
from tests.stack.server import Stack
from tests.stack.tracebacks import WORKER_DEATH

_PARTITIONS = 2
_KEYS = 4_000


class _Record(NamedTuple):
    """A record of the table's topic; without a value it removes the row."""

    key: int
    value: float | None


class _Topic:
    """The table, and by partition all of its records in order."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.table = LabTable(lab, "k INT PRIMARY KEY, v DOUBLE", partitions=_PARTITIONS)
        self.records: list[list[_Record]] = [[] for _ in range(_PARTITIONS)]
        self._random = random.Random(42)

    def publish(self, records: list[_Record]) -> None:
        """Publish records, and return when Kafka has them."""
        rows = [
            (
                None if value is None else json.dumps({"k": key, "v": value}).encode(),
                json.dumps({"k": key}),
                key % _PARTITIONS,
                0,
            )
            for key, value in records
        ]
        self.lab.client.publish_all(self.table.topic, rows)
        for each in records:
            self.records[each.key % _PARTITIONS].append(each)

    def some(self, count: int) -> list[_Record]:
        """Return random changes of some keys; a fifth removes the row."""
        chosen = [self._random.randrange(_KEYS) for _ in range(count)]
        values = [self._random.choice([None, 1.0, 2.0, 7.0, 9.0]) for _ in chosen]
        return [_Record(*each) for each in zip(chosen, values, strict=True)]

    def results(self, partition: int, since: int) -> list[tuple[str, str, Any]]:
        """Return the results of ``v > 5`` from a snapshot at an offset on: id, kind and row."""
        rows: dict[int, tuple[int, float]] = {}
        found: list[tuple[str, str, Any]] = []
        for offset, (key, value) in enumerate(self.records[partition]):
            if offset == since:
                found += self._snapshot(partition, rows)
            before = rows.pop(key, (0, 0.0))[1]
            if value is not None:
                rows[key] = (offset, value)
            kind = _KINDS[before > 5, value is not None and value > 5]
            shown = before if kind == "delete" else value
            if offset >= since and kind and not (kind == "update" and before == value):
                found.append((self._id(partition, offset), kind, {"k": key, "v": shown}))
        return found + (self._snapshot(partition, rows) if since == len(self.records[partition]) else [])

    def _snapshot(self, partition: int, rows: dict[int, tuple[int, float]]) -> list[tuple[str, str, Any]]:
        found = sorted((offset, key, value) for key, (offset, value) in rows.items() if value > 5)
        return [(self._id(partition, offset), "snapshot", {"k": key, "v": value}) for offset, key, value in found]

    def _id(self, partition: int, offset: int) -> str:
        return f"{self.table.name}/{partition}/{offset}"


_KINDS = {(False, True): "insert", (True, False): "delete", (True, True): "update", (False, False): ""}


def _of(lab: Lab, created: Any) -> list[Result]:
    return [one for one in lab.results.of(created["destination"]) if one.kind != "cq.end"]


def _check(topic: _Topic, created: Any, least: list[int]) -> None:
    """Compare a CQ's results with those of a snapshot at some offsets, none of them before the least ones."""
    results = _of(topic.lab, created)
    kinds = [one.kind for one in results]
    end = kinds.index("cq.snapshot")
    assert kinds.count("cq.snapshot") == 1, kinds
    assert results[end].row == {"rows": end}
    found = [(one.headers["ce_id"], one.headers["op"], one.row) for one in results if one.kind == "cq.match"]
    assert {op for _, op, _ in found[:end]} == {"snapshot"}
    assert "snapshot" not in {op for _, op, _ in found[end:]}
    for partition in range(_PARTITIONS):
        own = [each for each in found if each[0].split("/")[1] == str(partition)]
        rows = [_offset(each) for each in own if each[1] == "snapshot"]
        changes = [_offset(each) for each in own if each[1] != "snapshot"]
        places = range(max([least[partition], *(offset + 1 for offset in rows)]), min(changes) + 1)
        assert any(own == topic.results(partition, since) for since in places), (partition, places, len(own))


def _offset(result: tuple[str, str, Any]) -> int:
    return int(result[0].split("/")[2])


@pytest.mark.timeout(900)  # a role starts anew
@pytest.mark.traceback(WORKER_DEATH)
@pytest.mark.parametrize("killed", ["workers", "gateway", "evaluator"])
def test_a_snapshot_comes_before_the_changes(stack: Stack, lab: Lab, killed: str) -> None:
    """Rows, end and changes come once and in this order, while records come and a role dies amid the snapshot."""
    topic = _Topic(lab)
    for first in range(0, _KEYS, 1000):
        topic.publish([_Record(key, 6.0 + key % 3) for key in range(first, first + 1000)])
    select = f"SELECT k, v FROM {topic.table.name} WHERE v > 5 EMIT CHANGES WITH SNAPSHOT"
    least = [len(records) for records in topic.records]
    idle = lab.create("idle", select, clauses="DO PUBLISH SHARED")
    lab.results.until(lambda: any(one.kind == "cq.snapshot" for one in _of(lab, idle)), "the snapshot")
    assert [one.kind for one in _of(lab, idle)] == ["cq.match"] * _KEYS + ["cq.snapshot"]
    ended = threading.Event()

    def change() -> None:
        while not ended.wait(0.02):
            topic.publish(topic.some(20))

    changing = threading.Thread(target=change)
    changing.start()
    try:
        later = [len(records) for records in topic.records]
        busy = [lab.create(f"busy_{number}", select) for number in range(2)]
        if killed == "workers":
            stack.kill_workers()
        else:
            stack.await_restart(killed, stack.kill(killed))
        for created in busy:
            lab.results.until(
                lambda created=created: any(one.kind == "cq.snapshot" for one in _of(lab, created)), "the snapshot"
            )
    finally:
        ended.set()
        changing.join()
    topic.publish([_Record(_KEYS + partition, 9.0) for partition in range(_PARTITIONS)])
    for created, places in ((idle, least), *((each, later) for each in busy)):
        lab.results.until(
            lambda created=created: sum(one.row.get("k", 0) >= _KEYS for one in _of(lab, created)) == _PARTITIONS,
            "the last change",
        )
        _check(topic, created, places)
    keys = RedisKeys("cq")
    with Redis.from_url(stack.redis_url) as redis:
        lab.results.until(lambda: not redis.exists(keys.snapshots, keys.snapshots_made), "the catalog without debts")
