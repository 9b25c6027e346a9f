"""A worker's replicas of the tables that its streams join, over a log in memory."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
import pytest

from grouping.model.expression import Column
from grouping.model.table import Table
from grouping.plan.computation import Computation
from grouping.plan.lookup_join import JoinKey, LookupJoin
from grouping.store.notes import ReplicaNote, TablePins
from grouping.store.table_store import BatchCommitted
from spark_jobs.runtime.kafka.pin_log import MicroBatch
from spark_jobs.runtime.worker.joined_tables import JoinedTables
from tests.unit.replica.table_records import SETTINGS, MemoryLog, table

_TABLE = table("symbol STRING", "n INT", key=["symbol"])
_JOIN = Computation("j_1", (LookupJoin("t_1", "t_1", (JoinKey(Column("symbol", "STRING"), "symbol", "STRING"),)),))  # type: ignore[arg-type]


class _Log(MemoryLog):
    """A topic that reports its ends."""

    def ends(self, topics: Iterable[str]) -> dict[str, dict[int, int]]:
        ends = {number: max(records, default=-1) + 1 for number, records in enumerate(self.partitions)}
        return dict.fromkeys(topics, ends)

    def put(self, count: int, n: int, gap: int = 0) -> None:
        for number in range(count):
            self.append(0, (None, json.dumps({"symbol": str(number), "n": n}).encode()), gap)


class _Store:
    """Tables and pins of `grouping.store.table_store.TableStore`, in memory."""

    def __init__(self) -> None:
        self.pins: dict[int, TablePins] = {}
        self.notes: list[ReplicaNote] = []
        self.committed = -1

    def pin(self, _stream_id: str, batch: int) -> None:
        if batch <= self.committed:
            raise BatchCommitted("the micro-batch is committed")

    def tables(self, ids: Sequence[str]) -> dict[str, Table]:
        return dict.fromkeys(ids, _TABLE)

    def table_pins(self, _stream_id: str, batch: int) -> TablePins:
        return self.pins.get(batch, {})

    def keep_table_pins(self, _stream_id: str, batch: int, pins: TablePins) -> None:
        self.pins[batch] = pins

    def tell_replica(self, _source_id: str, _worker: str, note: ReplicaNote) -> None:
        self.notes.append(note)


class _Pins:
    """The pins of `spark_jobs.runtime.kafka.pin_log.PinLog`, in memory."""

    def __init__(self, log: _Log) -> None:
        self._log = log
        self._known: dict[MicroBatch, TablePins] = {}

    def pins(self, batch: MicroBatch, tables: Mapping[str, Table]) -> TablePins:
        now = {each: self._log.ends([table.topic])[table.topic] for each, table in tables.items()}
        return self._known.setdefault(batch, now)


class _Worker:
    """Joined tables over a log, with a settable clock, and a Redis that can be wiped."""

    def __init__(self, log: _Log) -> None:
        self.now = 0.0
        pins = _Pins(log)
        self.tables = JoinedTables(
            SETTINGS, lambda _: log, lambda *_: pins, lambda: self.now, lambda: int(self.now * 1000)
        )  # type: ignore[arg-type, return-value]
        self.store = _Store()

    def count(self, stream_id: str, batch: int) -> int:
        """Return how many rows a stream's batch sees."""
        views = self.tables.views(stream_id, MicroBatch(stream_id, "q", batch), [_JOIN], self.store)  # type: ignore[arg-type]
        return views["t_1"].count


class _SlowLog(_Log):
    """A log that takes ten seconds for each batch."""

    worker: _Worker

    def read(self, topic: str, starts: Mapping[int, int], ends: Mapping[int, int]) -> Iterator[pa.RecordBatch]:
        for batch in super().read(topic, starts, ends):
            self.worker.now += 10
            yield batch


def test_a_table_that_no_stream_joins_any_more_goes() -> None:
    """After the configured time, and not while any stream joins the table; joined again, it is read again."""
    log = _Log([{}])
    worker = _Worker(log)
    count, tables = worker.count, worker.tables
    log.put(3, 1)
    assert (3, 3) == (count("s_1", 0), count("s_2", 0))
    worker.now = 6
    assert count("s_2", 1) == 3
    worker.now = 11
    tables.forget_idle(10)
    assert (3, 1) == (count("s_2", 2), len(log.reads))
    worker.now = 22
    tables.forget_idle(10)
    assert (3, 2) == (count("s_1", 1), len(log.reads))


def test_rows_that_no_batch_under_way_sees_go() -> None:
    """A stream's next batch proves earlier batches committed; other streams' batches are waited for."""
    log = _Log([{}])
    worker = _Worker(log)
    count = worker.count
    log.put(300, 0)
    assert (300, 300) == (count("slow", 0), count("s_1", 0))
    for batch in range(1, 9):
        log.put(300, batch)
        assert count("s_1", batch) == 300
    worker.now += 10
    assert count("s_1", 8) == 300
    held = worker.store.notes[-1].nbytes
    assert count("slow", 1) == 300
    for batch in range(9, 12):
        log.put(300, batch)
        assert (300, 300) == (count("s_1", batch), count("slow", batch))
    worker.now += 10
    assert count("s_1", 11) == 300
    assert worker.store.notes[-1].nbytes < held / 4
    assert log.reads.count({}) == 1, "one replica is loaded, from the topic's beginning"


def test_a_task_that_sleeps_until_its_batch_is_committed_pins_no_rows() -> None:
    """The log keeps the pins of the batch that was pinned last: a replay needs these."""
    log = _Log([{}])
    worker = _Worker(log)
    log.put(3, 0)
    assert worker.count("s_1", 0) == 3
    worker.store.committed, worker.store.pins = 0, {}
    with pytest.raises(BatchCommitted):
        worker.count("s_1", 0)
    assert {} == worker.store.pins


def test_a_replay_sees_the_same_rows_when_redis_is_lost() -> None:
    """The log of pins has the pins lost by Redis; it is asked only if something is missing."""
    log = _Log([{}])
    worker = _Worker(log)
    log.put(3, 1)
    assert worker.count("s_1", 7) == 3
    log.put(5, 2)
    assert worker.count("s_1", 7) == 3
    worker.store.pins.clear()
    assert worker.count("s_1", 7) == 3
    assert worker.count("s_1", 8) == 5


def test_a_worker_tells_of_its_tables_now_and_then() -> None:
    """Rows, memory and offsets, every two seconds at most; and at once that a batch waits for many changes."""
    log = _Log([{}])
    worker = _Worker(log)
    notes = worker.store.notes
    log.put(3, 1)
    for batch in range(3):
        worker.count("s_1", batch)
        worker.now += 0.5
    assert [(0, 3, {0: 3}, 0)] == [(note.at_ms, note.rows, note.reached, note.waiting) for note in notes]
    assert notes[0].nbytes > 0
    log.put(120, 2, gap=99)
    worker.count("s_1", 3)
    assert [(3, {0: 3}, 12_000), (120, {0: 12_003}, 0)] == [
        (note.rows, note.reached, note.waiting) for note in notes[1:]
    ]
    worker.now += 2
    worker.count("s_1", 4)
    assert (120, 0, 4) == (notes[-1].rows, notes[-1].waiting, len(notes))


def test_a_long_reading_is_told_again_and_again() -> None:
    """A reading that lasts longer than a note is still waiting for the gateway."""
    log = _SlowLog([{}])
    worker = log.worker = _Worker(log)
    log.put(120, 1, gap=99)
    assert worker.count("s_1", 0) == 120
    *reading, last = worker.store.notes
    assert {12_000} == {note.waiting for note in reading}
    assert (0, int(worker.now * 1000)) == (last.waiting, last.at_ms)
    moments = [note.at_ms for note in worker.store.notes]
    assert max(later - earlier for earlier, later in itertools.pairwise(moments)) <= 10_000 < moments[-1]
