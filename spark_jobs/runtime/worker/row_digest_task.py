"""The task of a job with digests of a table's rows: it reads the table once for all of the job's orders."""

from __future__ import annotations

import logging
import pickle
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import msgspec
import pyarrow as pa

from grouping.digests.orders import Order, TableCut
from grouping.model.catalog import Stream
from grouping.model.errors import OperationalError
from grouping.settings.settings import Settings
from grouping.store.notes import TableVersion
from grouping.store.ownership import EvaluatorFences
from grouping.store.snapshot_notes import SnapshotStore
from grouping.store.table_store import TableStore
from spark_jobs.engine.constants.constant_cache import ConstantTables
from spark_jobs.engine.operators.lookup_join.table_events import TableEvents
from spark_jobs.engine.rows.output import dead_letter_code
from spark_jobs.engine.stages.row_digests import CutQueries, RowMatches, left_out, row_digests
from spark_jobs.runtime.kafka.positioned_consumer import PartitionUnreadable
from spark_jobs.runtime.worker.digest_task import MEMORY, OrderRecords
from spark_jobs.runtime.worker.table_snapshots import read_rows
from spark_jobs.runtime.worker.worker import PROCESS, TaskRun, table_task

__all__ = ["RowDigestTask"]

log = logging.getLogger(__name__)

_VERSION = TableVersion(1, 1)
_MOST_TRIES = 10
"""If this many workers have ended while they carried out an order, its digests are left out, so that other orders go
on."""
_decode = msgspec.msgpack.Decoder(Order).decode


@dataclass(frozen=True, slots=True)
class RowDigestTask:
    """The function that `mapInArrow` runs over records of `cq.orders`: columns ``offset`` and ``value``."""

    settings: bytes
    """The `Settings`, pickled, since JSON would mask its secrets."""
    fences: EvaluatorFences

    @classmethod
    def of(cls, settings: Settings, fences: EvaluatorFences) -> RowDigestTask:
        """Return the task of a job under some settings."""
        return cls(pickle.dumps(settings), fences)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Carry out the orders of a task; yield for each order its digests, and then its answer.

        Raises:
            OperationalError: Kafka or Redis failed.
        """
        settings: Settings = pickle.loads(self.settings)
        tables, notes = _RowCache(settings), TableStore(settings, self.fences).snapshots
        for batch in batches:
            for offset, body in zip(batch["offset"].to_pylist(), batch["value"], strict=True):
                yield from self._carried_out(offset, _decode(body.as_py()), settings, tables, notes)
        MEMORY.task_done()

    def _carried_out(
        self, offset: int, order: Order, settings: Settings, tables: _RowCache, notes: SnapshotStore
    ) -> Iterator[pa.RecordBatch]:
        records = OrderRecords(offset, order, settings)
        yield from records.of_pending(MEMORY.log(settings))
        name = f"order/{offset}"
        if order.table is not None:
            own_orders = order.only(of_rows=True)
            if (tries := notes.count_try(name)) > _MOST_TRIES:
                log.error("digests of rows given up", extra={"stream": order.stream_id, "tries": tries - 1})
                yield from records.of_digests(left_out(own_orders, f"{tries - 1} workers died of it."))
            else:
                yield from self._of_rows(own_orders, order.table, settings, tables, records)
        yield records.answer()
        notes.release(name)

    def _of_rows(
        self, order: Order, cut: TableCut, settings: Settings, tables: _RowCache, records: OrderRecords
    ) -> Iterator[pa.RecordBatch]:
        """Yield the records of digests of a table's rows."""
        stream = msgspec.json.decode(cut.stream, type=Stream)
        constants = ConstantTables(stream.stream_id).at(_VERSION, CutQueries(cut))
        opened = partial(table_task, stream, constants, settings, PROCESS.begin(stream, settings, self.fences))
        try:
            matches = yield from self._matches(stream, cut, tables, opened)
        except OSError as error:
            fault = f"There is no room for the rows: {error.strerror or error}."
            yield from records.of_digests(left_out(order, fault))
        except _TableUnreadable as error:
            log.error("digests of rows left out", extra={"stream": order.stream_id, "reason": str(error)})
            yield from records.of_digests(left_out(order, f"The table's topic cannot be read: {error}."))
        else:
            run = partial(opened().of_rows, rows=matches.rows)
            yield from row_digests(order, matches, records.of_digest, run)

    def _matches(
        self, stream: Stream, cut: TableCut, tables: _RowCache, opened: Callable[[], TaskRun]
    ) -> Generator[pa.RecordBatch, None, RowMatches]:
        """Yield the dead letters of the rows of a table, and return the matches among the rows.

        Args:
            stream: The stream of the table's changes.
            cut: Up to which positions the table is read, and the queries of the digests.
            tables: Reads the rows.
            opened: Returns a new task, which evaluates the rows of a partition.

        Raises:
            OSError: The disk has no room for the matches.
            _TableUnreadable: The records of a partition cannot be read from Kafka.
        """
        began, matches = time.monotonic(), RowMatches()
        for partition, end in cut.ends.items():
            rows, task = tables.rows(stream, int(partition), end), opened()
            matches.rows += rows.count
            for made in task.matches(rows):
                if dead_letter_code(made) is not None:
                    yield made
                    continue
                for body in made["value"].to_pylist():
                    matches.add(body)
            matches.reasons |= task.guard.not_evaluated.reasons
        seconds = round(time.monotonic() - began, 3)
        log.info("rows of a tick matched", extra={"stream": stream.stream_id, "seconds": seconds})
        return matches


class _TableUnreadable(Exception):
    """The topic of a table is gone, was created again with fewer records, or its records cannot be read."""


class _RowCache:
    """A cache of rows with one place for each partition number.

    A place has the rows of this partition of one table: the table whose partition with this number was read last.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._rows: dict[int, tuple[tuple[str, int], TableEvents | _TableUnreadable]] = {}
        """By partition number: the stream and the end position, and the rows that the records before this position set.

        If these records cannot be read, the error is in place of the rows.
        """

    def rows(self, stream: Stream, partition: int, end: int) -> TableEvents:
        """Return the rows that the records before a position have set.

        Raises:
            _TableUnreadable: The records could not be read from Kafka, now or for an earlier order of the job.
        """
        place, known = (stream.stream_id, end), self._rows.get(partition)
        if known is None or known[0] != place:
            known = self._rows[partition] = place, self._read(stream, partition, end)
        if isinstance(known[1], _TableUnreadable):
            raise known[1]
        return known[1]

    def _read(self, stream: Stream, partition: int, end: int) -> TableEvents | _TableUnreadable:
        try:
            return read_rows(stream, partition, end, self._settings).events()
        except PartitionUnreadable as error:
            return _TableUnreadable(f"{error.topic} is gone, was created again, or may not be read")
        except OperationalError as error:
            return _TableUnreadable(error.detail or error.message)
