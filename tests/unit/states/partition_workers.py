"""Worker processes with states, and a source partition that they read."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from gateway.evaluation.one_entry import VERSION
from gateway.evaluation.records import PlacedRecord, source_batch
from grouping.model.catalog import Stream
from grouping.model.ids import StreamId
from grouping.settings.settings import Settings
from spark_jobs.engine.constants.constant_cache import ConstantTables
from spark_jobs.engine.isolation.not_evaluated import NotEvaluatedLetters
from spark_jobs.engine.isolation.unit_guard import UnitGuard
from spark_jobs.engine.isolation.unit_selection import UnitSelection
from spark_jobs.engine.operators.lookup_join.table_view import TableView
from spark_jobs.engine.pipeline import CLOCK, evaluate
from spark_jobs.engine.rows.cpu_budget import CpuBudget
from spark_jobs.engine.stages.operator_stage import ClockMark
from spark_jobs.engine.stages.task import Task
from spark_jobs.runtime.kafka.range_reader import SourceRange
from spark_jobs.runtime.states.clock_marks import PlacedMark, marks_location, marks_text
from spark_jobs.runtime.states.log_states import LogStates, StateClock
from spark_jobs.runtime.states.row_snapshots import RowSnapshots
from tests.unit.matching.event_batches import SETTINGS
from tests.unit.matching.matching import Store

__all__ = ["PARTITION", "ClockDriver", "PartitionTopic", "PartitionWorker", "befall", "turns"]

PARTITION = 3
Row = dict[str, Any]
Turn = tuple[int, int, int, str]
"""The records of a batch, the worker, the records of an Arrow batch, and what becomes of the worker or its state."""


def turns(count: int, records: int, piece: int, *more: str) -> st.SearchStrategy[list[Turn]]:
    """Return lists of turns of two workers.

    Args:
        count: The number of turns.
        records: The most records of a batch.
        piece: The most records of an Arrow batch.
        more: Further fates of a worker.
    """
    fates = ["", "", "stopped", "killed", "again", "elsewhere", "minute", *more]
    turn = st.tuples(st.integers(1, records), st.integers(0, 1), st.integers(1, piece), st.sampled_from(fates))
    return st.lists(turn, min_size=count, max_size=count)


class PartitionTopic:
    """The source partition, which `RangeReader` reads."""

    def __init__(self, stream: Stream, rows: Sequence[Row], gap: int) -> None:
        self.stream = stream
        self.offsets = [place * gap for place in range(len(rows))]
        self.rows = rows
        self.read_records = 0

    def records(self, first: int, end: int) -> pa.RecordBatch:
        """Return the records with offsets in [first, end)."""
        kept = [place for place, offset in enumerate(self.offsets) if first <= offset < end]
        return source_batch([self._record(place) for place in kept])

    def _record(self, place: int) -> PlacedRecord:
        """Return a record; its time is by default a second later than that of the record before it."""
        row = self.rows[place]
        time = datetime.fromtimestamp(row.get("at", place), UTC)
        removed = row.get("removed", False)
        value, key = (None, row["k"].encode()) if removed else (json.dumps(row).encode(), b"k")
        return PlacedRecord(value, key, time, PARTITION, self.offsets[place], ())

    def read(self, ranges: Sequence[SourceRange]) -> Iterator[tuple[SourceRange, Iterator[pa.RecordBatch]]]:
        """As `RangeReader.read`: a range in batches of two records."""
        [each] = ranges
        assert (each.topic, each.partition) == (self.stream.topic, PARTITION)
        places = [offset for offset in self.offsets if each.first <= offset < each.end]
        self.read_records += len(places)
        yield each, (self.records(offset, self.offsets[-1] + 1).slice(0, 1) for offset in places)


class PartitionWorker:
    """A worker process with its states."""

    def __init__(self, topic: PartitionTopic, folder: Path, clock: list[float], megabytes: int = 2_048) -> None:
        config = Settings(prefix="cq.", data=folder, limits={"state_megabytes": megabytes})
        self.settings = config
        self.states = LogStates(
            config,
            lambda _: topic,  # type: ignore[arg-type, return-value]
            lambda config: RowSnapshots(config, lambda: clock[0]),
        )
        self._tables = ConstantTables(StreamId("s_1"))
        self._topic = topic

    def run(
        self,
        store: Store,
        version: Any,
        first: int,
        end: int,
        pieces: int,
        *,
        complete: bool,
        views: Mapping[str, TableView] = MappingProxyType({}),
        clock: StateClock | None = None,
        paused: Collection[str] = (),
    ) -> list[dict[str, Any]]:
        """Evaluate a batch in Arrow batches of some records; an incomplete one stops before its last piece.

        A mark of the clock comes before the records, which may be none then. Groups may be paused.
        """
        snapshot = self._tables.at(version, store)
        if paused:
            snapshot = snapshot.without(paused)  # type: ignore[arg-type]
        records = self._topic.records(first, end)
        if not snapshot.computations or not (records.num_rows or clock):
            return []
        begin, stream = first if clock else records["offset"][0].as_py(), self._topic.stream
        states = self.states.begun(stream, snapshot, views, PARTITION, begin, (), clock)
        guard = UnitGuard(UnitSelection(), NotEvaluatedLetters(stream, SETTINGS), set(), CpuBudget(60.0, 1.0))
        task = Task.of(stream, SETTINGS, VERSION, guard, snapshot, views, states=states)
        found: list[dict[str, Any]] = []
        if clock is not None and clock.mark is not None:
            for made in evaluate(task, ClockMark(PARTITION, clock.mark), CLOCK):
                found += made.to_pylist()
        for place in range(0, records.num_rows, pieces):
            if not complete and place + pieces >= records.num_rows:
                return found
            for made in evaluate(task, records.slice(place, pieces)):
                found += made.to_pylist()
        last = records["offset"][-1].as_py() + 1 if records.num_rows else first
        self.states.ended(stream, PARTITION, last, states)
        return found


def befall(
    fate: str,
    workers: list[PartitionWorker],
    turn: int,
    topic: PartitionTopic,
    folder: Path,
    clock: list[float],
    *,
    keeps_files: bool = False,
) -> None:
    """Let the fate of a turn befall its worker and the stored states, before the batch.

    Args:
        fate: ``killed`` is a new worker, ``lost`` is a new worker without files, after a ``minute`` states are stored.
        workers: The workers.
        turn: The number of the worker.
        topic: The topic.
        folder: The folder of stored states.
        clock: The seconds of the states' clock.
        keeps_files: Whether no file is lost.
    """
    if fate == "lost" and not keeps_files:
        for path in (*folder.rglob("*.rows"), *folder.rglob("*.changes")):
            path.unlink()
    if fate in ("killed", "lost"):
        workers[turn] = PartitionWorker(topic, folder, clock)
    if fate == "minute":
        clock[0] += 61


class ClockDriver:
    """The marks of the clock, as the driver of the lane writes them."""

    def __init__(self, config: Settings, stream: Stream) -> None:
        self._path = Path(marks_location(config, stream.source_id, PARTITION))
        self.marks: list[PlacedMark] = []

    def mark(self, position: int, watermark: int) -> StateClock:
        """Write a mark."""
        settled = None
        if self.marks and self.marks[-1].position == position:
            settled = self.marks.pop().watermark
            watermark = max(watermark, settled)
        self.marks.append(PlacedMark(position, watermark, "q/1"))
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(marks_text(self.marks))
        return StateClock(settled, watermark)

    def at(self, position: int) -> StateClock:
        """Return the mark that lies before a batch."""
        settled = self.marks[-1].watermark if self.marks and self.marks[-1].position == position else None
        return StateClock(settled, None)
