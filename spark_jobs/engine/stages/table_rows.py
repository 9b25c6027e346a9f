"""The rows of a table in one partition, folded from the changes of its topic, for snapshots and digests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from grouping.model.catalog import Stream
from grouping.model.change_format import is_change_format
from spark_jobs.engine.operators.lookup_join.table_events import TableEvents
from spark_jobs.engine.operators.row_before.key_numbers import KeyNumbers, key_columns
from spark_jobs.engine.operators.row_before.last_values import grown
from spark_jobs.engine.rows.arrays import Ints
from spark_jobs.engine.rows.edge_rows import SNAPSHOT, EdgeRows
from spark_jobs.engine.rows.events import Events
from spark_jobs.engine.rows.record_fields import HEADERS
from spark_jobs.engine.rows.row_source import RowSource
from spark_jobs.engine.stages.whole_rows import whole_rows

__all__ = ["TableRows"]

_NO_ROW = -1
_SMALL = 100_000
"""If there are at most this many rows, overwritten rows are not dropped."""


@dataclass(frozen=True, slots=True)
class _TopicRows:
    """Rows in the order of the topic."""

    columns: dict[str, pa.Array]
    marks: Ints
    """A matrix with four lines: each row's position, record time, bytes, and the number of its change in the record."""

    @classmethod
    def joined(cls, runs: Sequence[_TopicRows]) -> _TopicRows:
        """Return the rows of all runs, in their order."""
        columns = {name: pa.concat_arrays([run.columns[name] for run in runs]) for name in runs[0].columns}
        return cls(columns, np.concatenate([run.marks for run in runs], axis=1))

    def take(self, places: Ints) -> _TopicRows:
        """Return some rows."""
        return _TopicRows(
            {name: column.take(pa.array(places)) for name, column in self.columns.items()}, self.marks[:, places]
        )


class TableRows:
    """The last row of each key, with the position and time of the record that set it.

    The rows of each batch are kept as a run. Overwritten rows are dropped when there are twice as many rows as keys.
    """

    def __init__(self, stream: Stream, partition: int) -> None:
        """Begin without rows.

        Args:
            stream: The stream of the table's changes.
            partition: The partition of the topic.
        """
        self._stream = stream
        self._partition = partition
        self._keys = KeyNumbers()
        self._places: Ints = np.empty(0, np.int64)
        """For each key, by its number: the place of its row among the rows of all runs."""
        self._runs: list[_TopicRows] = []
        self._count = 0
        """The number of rows of all runs."""

    def fold(self, events: Events) -> None:
        """Take in changes; they must be in the order of the topic."""
        rows = whole_rows(events, self) if events.count else events
        if not rows.count:
            return
        numbers, places = self.numbers(rows), np.arange(self._count, self._count + rows.count)
        if rows.removals is not None:
            places[rows.removals] = _NO_ROW
        self._places = grown(self._places, self._keys.count, _NO_ROW)
        self._places[numbers] = places  # NumPy keeps the last assignment, if a key has several changes
        columns = {column.name: rows.column(column.name) for column in self._stream.columns}
        change = np.zeros(rows.count, np.int64) if rows.number is None else rows.number
        self._runs.append(_TopicRows(columns, np.stack([rows.offsets, rows.time_ms, rows.record_bytes, change])))
        self._count += rows.count
        if self._count > max(_SMALL, 2 * self._keys.count):
            self._last_rows()

    def _last_rows(self) -> _TopicRows:
        """Drop the rows that are overwritten or removed; return the others, in the order of the topic."""
        keys = np.flatnonzero(self._places != _NO_ROW)
        keys = keys[np.argsort(self._places[keys])]
        if len(self._runs) != 1 or keys.size < self._count:
            self._runs = [_TopicRows.joined(self._runs).take(self._places[keys])]
            self._places[keys] = np.arange(keys.size)
            self._count = keys.size
        return self._runs[0]

    def numbers(self, rows: RowSource) -> Ints:
        """Return the number of each row's key."""
        return self._keys.of(key_columns([rows.column(name) for name in self._stream.partition_key]))

    def values(self, name: str, numbers: Ints) -> pa.Array | None:
        """Return a column of the rows with some keys, NULL for a key without a row; None if no change ever came."""
        if not self._runs:
            return None
        rows = self._last_rows()
        self._places = grown(self._places, self._keys.count, _NO_ROW)
        places = self._places[numbers]
        return rows.columns[name].take(pa.array(places, mask=places == _NO_ROW))

    def keys(self) -> dict[str, pa.Array]:
        """Return the PRIMARY KEY columns of all rows, by name; an empty dict if no change ever came."""
        rows = self._last_rows() if self._runs else None
        return {name: rows.columns[name] for name in self._stream.partition_key} if rows is not None else {}

    def snapshot(self) -> EdgeRows:
        """Return the rows as rows of a snapshot."""
        rows = self.events()
        return EdgeRows(rows, np.arange(rows.count), np.full(rows.count, SNAPSHOT, np.int8))

    def events(self) -> TableEvents:
        """Return the rows in the order of the records that set them, as if each record had just come in."""
        rows = self._last_rows() if self._runs else _TopicRows({}, np.empty((4, 0), np.int64))
        positions, times, sizes, changes = rows.marks
        number, count = changes if is_change_format(self._stream.format) else None, positions.size
        source = pa.record_batch(
            {
                "key": pa.nulls(count, pa.binary()),
                "value": pa.nulls(count, pa.binary()),
                "partition": pa.array(np.full(count, self._partition), pa.int32()),
                "offset": pa.array(positions - self._stream.base),
                "timestamp": pa.array(times * 1000, pa.timestamp("us", tz="UTC")),
                "headers": pa.nulls(count, HEADERS),
            }
        )
        return TableEvents(self._stream, source, rows.columns, np.zeros(count, np.bool_), lambda: sizes, number=number)
