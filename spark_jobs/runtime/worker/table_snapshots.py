"""Writes the rows of a table for queries with EMIT CHANGES WITH SNAPSHOT, before the changes of these rows.

In each source partition, changes are results from a certain position on; a snapshot has the rows of the table at these
positions. A *part* of a snapshot is the rows of one source partition; workers write the parts in parallel. The rows
depend only on the records before the position, so a worker that begins a part again writes the same records. Tasks of
the stream complete all snapshots that queries must still get before they evaluate anything. If the table does not
change, so that its stream has no tasks, a job of the driver completes the snapshots.
"""

from __future__ import annotations

import logging
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import msgspec
import pyarrow as pa

from grouping.model.catalog import Stream
from grouping.model.ids import GroupId, SelectId, StreamId
from grouping.plan.group import GroupPlan, SelectList
from grouping.settings.settings import Settings
from grouping.store.constant_table import Segment
from grouping.store.fence import Fence
from grouping.store.notes import TableVersion
from grouping.store.snapshot_notes import SnapshotNote, SnapshotPart
from grouping.store.table_store import TableStore
from grouping.values.times import instant
from spark_jobs.engine.constants.constant_cache import ConstantTables, Snapshot
from spark_jobs.engine.operators.lookup_join.table_events import decode_stream
from spark_jobs.engine.rows.edge_rows import EdgeRows
from spark_jobs.engine.rows.headers import packed_headers
from spark_jobs.engine.rows.output import OUTPUT, dead_letter_code, dead_letters, no_record
from spark_jobs.engine.stages.table_rows import TableRows
from spark_jobs.runtime.kafka.range_reader import RangeReader, SourceRange
from spark_jobs.runtime.kafka.record_writer import record_writer
from spark_jobs.runtime.kafka.sink import fence_watch

__all__ = ["OpenRun", "TableSnapshots", "end_record", "one_query", "read_rows"]

log = logging.getLogger(__name__)

_WAIT_SECONDS = 0.05
_MOST_TRIES = 10
"""If this many workers have begun a part and died, the snapshot is given up, so that the changes go on."""
_VERSION = TableVersion(1, 1)

OpenRun = Callable[[Snapshot], Callable[[EdgeRows], Iterator[pa.RecordBatch]]]
"""Takes the constant tables of a single query, and returns the function that makes records from rows."""


class TableSnapshots:
    """Completes the snapshots of a stream of a table's changes."""

    def __init__(self, stream: Stream, settings: Settings, store: TableStore, opened: OpenRun) -> None:
        """Prepare.

        Args:
            stream: The stream of the table's changes.
            settings: The evaluator's settings.
            store: The worker's access to the tables in Redis.
            opened: Returns the function that makes the records.
        """
        self._stream = stream
        self._settings = settings
        self._store = store
        self._notes = store.snapshots
        self._opened = opened
        self._worker = f"{os.getpid()}/{secrets.token_hex(8)}"
        self._rows: dict[tuple[int, int], EdgeRows] = {}
        """The rows of the table, by partition and position, for the parts that this worker wrote last."""

    def complete(self, notes: Mapping[str, SnapshotNote], settings: bytes, fence: Fence | None) -> None:
        """Write parts of the snapshots that no other worker writes; return when Kafka has all of the snapshots.

        Args:
            notes: The snapshots, by destination.
            settings: The evaluator's settings, pickled; they identify the process's writer.
            fence: The fence under which records are written.

        Raises:
            OperationalError: Kafka or Redis failed.
        """
        writer, watch = record_writer(settings), fence_watch(settings)

        def write(rows: pa.RecordBatch) -> None:
            writer.write(rows, lambda: None if fence is None else watch.check(fence))

        for destination, note in notes.items():
            while (charge := self._taken(destination, note)) is not None:
                began, rows = time.monotonic(), 0
                for made in self._records(charge, note):
                    write(made)
                    rows += made.num_rows if dead_letter_code(made) is None else 0
                writer.flush()
                self._note(charge, note, rows)
                report = {"destination": destination, "part": charge.part.number, "records": rows}
                log.info("part of a snapshot written", extra=report | {"seconds": round(time.monotonic() - began, 3)})

    def _taken(self, destination: str, note: SnapshotNote) -> _TakenPart | None:
        """Take charge of a part, or of the end record once all parts are written; None if the snapshot is not due."""
        parts = [SnapshotPart(destination, number) for number in range(len(note.since))]
        parts.sort(key=lambda part: (part.number, note.since[part.number]) not in self._rows)
        while destination in self._notes.due(self._stream.stream_id):
            written = self._notes.written(destination)
            left = [part for part in parts if part.number not in written]
            for part in left or [SnapshotPart(destination, len(parts))]:
                if tries := self._notes.take(part, self._worker):
                    return _TakenPart(part, tries, sum(written.values()))
            time.sleep(_WAIT_SECONDS)
        return None

    def _records(self, charge: _TakenPart, note: SnapshotNote) -> Iterator[pa.RecordBatch]:
        """Yield the records of a part; end early if the snapshot is no longer due."""
        part, tries, rows = charge
        if tries > _MOST_TRIES:
            log.error("snapshot given up", extra={"destination": part.destination_id, "tries": tries - 1})
            detail = f"The snapshot of {part.destination_id} was not made: {tries - 1} workers died of it."
            yield dead_letters(no_record(0, note.since[0]), {0: detail}, "not-evaluated", self._stream, self._settings)
        elif part.number == len(note.since):
            yield end_record(self._stream, part.destination_id, note, rows, self._settings)
        else:
            run = self._opened(one_query(self._stream.stream_id, note, self._store))
            table = self._table(part, note.since[part.number])
            for made in run(table) if table.count else ():
                if not self._notes.keep(part, self._worker):
                    return
                yield made

    def _note(self, charge: _TakenPart, note: SnapshotNote, rows: int) -> None:
        """Note in Redis that Kafka has a part."""
        part = charge.part
        if not self._notes.keep(part, self._worker):
            self._notes.release(part.name)
        elif part.number == len(note.since) or charge.tries > _MOST_TRIES:
            self._notes.made(part, note)
        else:
            self._notes.wrote(part, rows)

    def _table(self, part: SnapshotPart, since: int) -> EdgeRows:
        """Return the rows of the table in a partition before a position."""
        place = (part.number, since)
        if place not in self._rows:
            self._rows = {known: rows for known, rows in self._rows.items() if known[0] != part.number}
            keep = partial(self._notes.keep, part, self._worker)
            self._rows[place] = read_rows(self._stream, *place, self._settings, keep).snapshot()
        return self._rows[place]


class _TakenPart(NamedTuple):
    """A part of which a worker has taken charge."""

    part: SnapshotPart
    tries: int
    """How often workers took charge of the part."""
    rows: int
    """The number of rows in the parts that are written."""


def read_rows(
    stream: Stream, partition: int, until: int, settings: Settings, each_batch: Callable[[], object] | None = None
) -> TableRows:
    """Read the topic of a table from its beginning, and return the rows that are set.

    Args:
        stream: The stream of the table's changes.
        partition: The partition of the topic.
        until: The position before which records are read.
        settings: The evaluator's settings.
        each_batch: Is called for each batch of records.

    Raises:
        OperationalError: Kafka failed.
    """
    rows, end = TableRows(stream, partition), until - stream.base
    if end <= 0:
        return rows
    reader = RangeReader(settings)
    try:
        for _, batches in reader.read([SourceRange(stream.topic, partition, 0, end)]):
            for batch in batches:
                if each_batch is not None:
                    each_batch()
                for events, _ in decode_stream(batch, stream, settings) if batch.num_rows else ():
                    rows.fold(events)
    finally:
        reader.close()
    return rows


class _OneSegment:
    """The source of the constant tables of a single query (`constant_cache.TableReader`)."""

    def __init__(self, note: SnapshotNote, store: TableStore) -> None:
        self._note = note
        self._store = store

    def changes(self, stream_id: StreamId, epoch: int, since: int, until: int) -> Iterator[Segment] | None:
        return iter([Segment.decode(self._note.segment)[0]])

    def plans(self, stream_id: StreamId, ids: Sequence[GroupId]) -> dict[GroupId, GroupPlan]:
        return self._store.plans(stream_id, ids)

    def selects(self, stream_id: StreamId, ids: Sequence[SelectId]) -> dict[SelectId, SelectList]:
        return self._store.selects(stream_id, ids)


def one_query(stream_id: StreamId, note: SnapshotNote, store: TableStore) -> Snapshot:
    """Return constant tables that contain only the entry of a snapshot's query.

    Raises:
        OperationalError: The query's plan is gone.
    """
    return ConstantTables(stream_id).at(_VERSION, _OneSegment(note, store))


def end_record(stream: Stream, destination: str, note: SnapshotNote, rows: int, settings: Settings) -> pa.RecordBatch:
    """Return the record ``cq.snapshot``, which comes after all rows of a snapshot and before all changes."""
    topics = {"shared": settings.topics.results, "throttled": settings.topics.throttled}
    headers = (
        ("ce_specversion", b"1.0"),
        ("ce_type", b"cq.snapshot"),
        ("ce_source", stream.name.encode()),
        ("ce_id", f"{destination}/snapshot".encode()),
        ("ce_time", instant(note.at_ms).encode()),
    )
    columns = (
        [destination.encode()],
        [msgspec.json.encode({"rows": rows})],
        [topics.get(note.mode) or settings.topics.own_results(destination)],
        [note.partition],
        [packed_headers(headers)],
    )
    return pa.record_batch(
        [pa.array(values, kind.type) for values, kind in zip(columns, OUTPUT, strict=True)], schema=OUTPUT
    )
