"""A table in a worker process, read from its topic up to the offsets that a micro-batch pins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grouping.model.table import Table
from grouping.settings.settings import Settings
from spark_jobs.engine.index import Ints
from spark_jobs.engine.index.key_tuples import KeyTuples
from spark_jobs.engine.index.value_index import SoughtValues
from spark_jobs.engine.operators.lookup_join.changes import Changes, decode_changes
from spark_jobs.engine.operators.lookup_join.kept_values import OldRows, with_kept_values
from spark_jobs.engine.operators.lookup_join.table_part import NEVER, TablePart, added
from spark_jobs.engine.operators.lookup_join.table_view import TableView

__all__ = ["AT_ONCE_ROWS", "SUPERSEDED", "Log", "TablePin", "Replica"]

TablePin = Mapping[int, int]
"""The end offset of each partition of a table's topic: changes before this offset are visible.

A partition that is not in the pin has the end offset 0.
"""

AT_ONCE_ROWS = 250_000
"""Collected changes are applied when their number reaches the larger of this limit and the table's number of rows."""
AT_ONCE_BYTES = 256_000_000
"""Collected changes are also applied when their records have this many bytes; reading takes about this much memory."""
SUPERSEDED = 100_000
"""The largest number of superseded rows that are kept for older pins.

For a table with more rows than this, the limit is the number of the table's rows.
"""


class Log(Protocol):
    """The reader of tables' topics; implemented by `spark_jobs.runtime.kafka.table_log.TableLog`."""

    def read(self, topic: str, starts: Mapping[int, int], ends: Mapping[int, int]) -> Iterator[pa.RecordBatch]:
        """Yield the records of a topic between two offsets of each partition, ordered within a partition."""


def _ignore(_letters: pa.RecordBatch) -> None:
    """Report no dead letters, since another reader of the table reports them."""


def _go_on() -> None:
    """Report no progress."""


class Replica:
    """The rows of a table, as of any pin that a micro-batch may still have. Only a single thread may use a replica.

    The rows as of a pin depend only on the records before the pin, as long as the topic still has these records.
    Compaction may delete a record that a later record supersedes, so ``min.compaction.lag.ms`` must be longer than a
    micro-batch takes with all its replays.
    """

    def __init__(
        self, table: Table, log: Log, settings: Settings, report: Callable[[pa.RecordBatch], None] = _ignore
    ) -> None:
        """Begin with nothing loaded.

        Args:
            table: The table.
            log: The reader of its topic.
            settings: The evaluator's settings.
            report: Is called with batches of dead letters: for each bad record, a row of `rows.output.OUTPUT`. If the
                replica has to read the topic again, the same dead letters are passed again.
        """
        self.table = table
        self._log = log
        self._settings = settings
        self._report = report
        self._horizon: dict[int, int] | None = None
        self._earlier: Replica | None = None
        self._clear()

    def _clear(self) -> None:
        self._reached: dict[int, int] = {}
        self._parts: tuple[TablePart, ...] = ()
        self._count = 0
        self._scattered = False

    def at(self, pin: TablePin, progress: Callable[[], None] = _go_on) -> TableView:
        """Return the table as of a pin, after reading the records between the newest pin so far and this pin.

        The replica can show every pin from its *horizon* on. At first, the horizon is the first pin. `forget_before`
        moves the horizon on, and so does `_bound` if too many superseded rows are kept. For a pin before the horizon, a
        second replica is loaded from the topic's beginning. The second replica is dropped when `forget_before` gets a
        pin whose offsets are all at least those that the second replica has read.

        Args:
            pin: The pin.
            progress: Called again and again while records are read.

        Raises:
            OperationalError: The log could not be read, or ends before the pin. Changes that were applied stay applied.
        """
        if self._horizon is None:
            self._horizon = dict(pin)
        if not self.shows(pin):
            if self._earlier is None or not self._earlier.shows(pin):
                self._earlier = Replica(self.table, self._log, self._settings)
            return self._earlier.at(pin, progress)
        self._advance(pin, progress)
        newest = all(pin.get(partition, 0) == offset for partition, offset in self._reached.items())
        return TableView(
            self.table,
            self._parts,
            self._bounds(pin),
            scattered=self._scattered,
            count=self._count if newest else None,
        )

    def forget_before(self, pin: TablePin) -> None:
        """Declare that all later pins have at least the offsets of this pin in each partition.

        The first call of `at` or of this method sets the horizon. A caller who knows that `at` will later get older
        pins should first call this method with the oldest of them. Otherwise `at` loads a second replica for these
        pins.
        """
        old = self._horizon or {}
        self._horizon = {each: max(pin.get(each, 0), old.get(each, 0)) for each in pin.keys() | old.keys()}
        if self._earlier is not None:
            self._earlier.forget_before(pin)
            if all(pin.get(partition, 0) >= offset for partition, offset in self._earlier.reached.items()):
                self._earlier = None

    def shows(self, pin: TablePin) -> bool:
        """Tell whether a pin is at the horizon or after it, so that this replica can show the table as of the pin."""
        return all(pin.get(partition, 0) >= offset for partition, offset in (self._horizon or {}).items())

    @property
    def reached(self) -> TablePin:
        """The offsets up to which the topic was read."""
        return self._reached

    @property
    def count(self) -> int:
        """The number of rows as of the newest pin."""
        return self._count

    @property
    def split_keys(self) -> bool:
        """Whether a key has had rows in two partitions."""
        return self._scattered

    @property
    def nbytes(self) -> int:
        """Memory of rows and indexes in bytes."""
        return sum(part.nbytes for part in self._parts) + (0 if self._earlier is None else self._earlier.nbytes)

    def _advance(self, pin: TablePin, progress: Callable[[], None]) -> None:
        ends = {each: offset for each, offset in pin.items() if offset > self._reached.get(each, 0)}
        if not ends:
            return
        held: list[Changes] = []
        letters: list[pa.RecordBatch] = []
        reached = dict(self._reached)
        rows = size = 0
        for batch in self._log.read(self.table.topic, self._reached, ends):
            progress()
            changes, wrong = decode_changes(batch, self.table, self._settings, len(pin))
            held.append(changes)
            letters += [] if wrong is None else [wrong]
            partitions, offsets = batch["partition"].to_numpy(), batch["offset"].to_numpy()
            for partition in set(partitions.tolist()):
                reached[partition] = int(offsets[partitions == partition].max()) + 1
            rows += len(changes)
            size += batch.nbytes
            if rows >= max(AT_ONCE_ROWS, self._count) or size >= AT_ONCE_BYTES:
                self._take_in(held, letters, reached)
                self._bound(pin)
                held, letters, rows, size = [], [], 0, 0
        self._take_in(held, letters, reached | ends)
        self._bound(pin)

    def _bound(self, pin: TablePin) -> None:
        """Move the horizon to a pin if too many superseded rows are kept for older pins."""
        if sum(map(len, self._parts)) - self._count > max(self._count, SUPERSEDED):
            self._horizon = dict(pin)

    def _take_in(self, held: list[Changes], letters: list[pa.RecordBatch], reached: TablePin) -> None:
        """Apply all collected changes, and note up to which offsets the topic was read.

        If the changes cannot be applied, the replica becomes empty.
        """
        if held:
            try:
                self._apply_all(Changes.concat(held), reached)
            except BaseException:
                self._clear()  # no task may see a part of the changes; the next call loads the whole table again
                raise
        self._reached = dict(reached)
        for records in letters:
            self._report(records)

    def _apply_all(self, changes: Changes, reached: TablePin) -> None:
        """Apply changes and the records that remove all rows, in the order of the log."""
        begin = 0
        for offset in changes.emptied:
            self._apply(changes.between(begin, offset), reached)
            self._end_all(offset)
            begin = offset
        self._apply(changes.between(begin, NEVER) if begin else changes, reached)

    def _end_all(self, offset: int) -> None:
        """Note that the record at an offset removed all rows; the topic has one partition."""
        for part in self._parts:
            rows = np.arange(len(part), dtype=np.int32)
            if part.ended is not None:
                rows = rows[part.ended == NEVER]
            if rows.size:
                part.end(rows, np.full(rows.size, offset))
        self._count = 0

    def _apply(self, changes: Changes, reached: TablePin) -> None:
        horizon = self._bounds(reached, self._horizon or {})
        keys = KeyTuples(changes.keys)
        several = len(reached) > 1
        order = keys.order(changes.partition if several else None)
        keys, partition, offset = keys.take(order), changes.partition[order], changes.offset[order]
        again = keys.repeats()
        if several:
            elsewhere = again & (partition[1:] != partition[:-1])
            self._scattered |= bool(elsewhere.any())
            again &= ~elsewhere
        ended = np.append(np.where(again, offset[1:], NEVER), [NEVER] if offset.size else []).astype(np.int64)
        first = np.flatnonzero(np.append([True] if offset.size else [], ~again).astype(bool))
        row = changes.row[order]
        kept_columns = self._kept_columns(changes, keys.take(first), partition[first], row, first)
        self._end_rows(keys.take(first), partition[first], offset[first])
        self._count += int(np.count_nonzero((row >= 0) & (ended == NEVER)))
        kept = np.flatnonzero((row >= 0) & (ended >= horizon[partition]))
        places = pa.array(row[kept])
        columns = {
            column.name: kept_columns[column.name].take(pa.array(kept))
            if column.name in kept_columns
            else changes.rows.column(column.name).take(places)
            for column in self.table.columns
        }
        part = TablePart.of(columns, partition[kept], offset[kept], ended[kept], horizon)
        self._parts = added(self._parts, part, self.table.key, horizon)

    def _kept_columns(
        self, changes: Changes, keys: KeyTuples, partitions: NDArray[np.int32], row: NDArray[np.int32], first: Ints
    ) -> dict[str, pa.Array]:
        """Return the values of those columns in which some row keeps the value of its key's previous row.

        Args:
            changes: The changes.
            keys: The distinct keys within each partition.
            partitions: The partition of each key.
            row: The row that each change sets, -1 for a removal. The changes are sorted by key; the changes of a key
                are in the order of their records.
            first: The first change of each key.

        Returns:
            By column, the value for each change in the order of `row`.
        """
        if not changes.unavailable:
            return {}
        old = OldRows(self._parts, self.table.key, keys, partitions)
        return {
            name: with_kept_values(changes.rows.column(name), row, keeps, first, old.column(name, first.size))
            for name, keeps in changes.unavailable.items()
        }

    def _end_rows(self, keys: KeyTuples, partitions: NDArray[np.int32], offsets: Ints) -> None:
        """Note that changes ended the live rows with some keys.

        Args:
            keys: The keys, which must be distinct within each partition.
            partitions: For each key, the partition of the change.
            offsets: For each key, the offset of the change.
        """
        probes = SoughtValues(keys)
        for part in self._parts:
            probe, row = part.find(self.table.key, probes)
            own = part.partition[row] == partitions[probe]
            self._scattered |= not own.all()  # this includes ended rows, since older pins may still show them
            if part.ended is not None:
                own &= part.ended[row] == NEVER
            probe, row = probe[own], row[own]
            if row.size:
                part.end(row, offsets[probe])
                self._count -= int(row.size)

    def _bounds(self, *pins: TablePin) -> Ints:
        """Return the last of the given pins as an array of offsets by partition.

        The array has a place for each partition of any given pin, and for each partition that was read.
        """
        bounds = np.zeros(max((max(pin, default=0) for pin in (self._reached, *pins)), default=0) + 1, np.int64)
        bounds[list(pins[-1])] = list(pins[-1].values())
        return bounds
