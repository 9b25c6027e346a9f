"""The rows of a table in one partition, folded from the changes of its topic, for snapshots and digests."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from grouping.model.catalog import Stream
from grouping.model.change_format import is_change_format
from spark_jobs.engine.operators.lookup_join.table_events import TableEvents
from spark_jobs.engine.operators.row_before.key_numbers import KeyNumbers, key_columns
from spark_jobs.engine.operators.row_before.last_values import LastValues, grown
from spark_jobs.engine.rows.arrays import Ints
from spark_jobs.engine.rows.edge_rows import SNAPSHOT, EdgeRows
from spark_jobs.engine.rows.events import Events
from spark_jobs.engine.rows.record_fields import HEADERS
from spark_jobs.engine.rows.row_source import RowSource
from spark_jobs.engine.stages.whole_rows import whole_rows

__all__ = ["TableRows"]

_NO_ROW = -1


class TableRows:
    """The last row of each key, with the place and time of the record that set it."""

    def __init__(self, stream: Stream, partition: int) -> None:
        """Begin without rows.

        Args:
            stream: The stream of the table's changes.
            partition: The partition of the topic.
        """
        self._stream = stream
        self._partition = partition
        self._keys = KeyNumbers()
        self._offsets: Ints = np.empty(0, np.int64)
        self._times: Ints = np.empty(0, np.int64)
        self._sizes: Ints = np.empty(0, np.int64)
        self._changes: Ints = np.empty(0, np.int64)
        """By key: the number of the change within the record that set the row."""
        self._columns: dict[str, LastValues] = {}

    def fold(self, events: Events) -> None:
        """Take in changes, in the order of the topic."""
        rows = whole_rows(events, self) if events.count else events
        if not rows.count:
            return
        numbers = self.numbers(rows)
        distinct, place = np.unique(numbers[::-1], return_index=True)
        last, count = rows.count - 1 - place, self._keys.count
        offsets = rows.offsets[last]
        if rows.removals is not None:
            offsets = np.where(rows.removals[last], _NO_ROW, offsets)
        self._offsets = grown(self._offsets, count, _NO_ROW)
        self._times, self._sizes = grown(self._times, count, 0), grown(self._sizes, count, 0)
        self._changes = grown(self._changes, count, 0)
        self._offsets[distinct], self._times[distinct] = offsets, rows.time_ms[last]
        self._sizes[distinct] = rows.record_bytes[last]
        if rows.number is not None:
            self._changes[distinct] = rows.number[last]
        places = pa.array(last)
        for column in self._stream.columns:
            values = rows.column(column.name).take(places)
            kept = self._columns.setdefault(column.name, LastValues(values.type, 0))
            kept.grow(count)
            kept.put(distinct, values)

    def numbers(self, rows: RowSource) -> Ints:
        """Return the number of each row's key."""
        return self._keys.of(key_columns([rows.column(name) for name in self._stream.partition_key]))

    def values(self, name: str, numbers: Ints) -> pa.Array | None:
        """Return a column of the rows with some keys, NULL for a key without a row; None where no key has a row."""
        if (column := self._columns.get(name)) is None:
            return None
        self._offsets = grown(self._offsets, self._keys.count, _NO_ROW)
        column.grow(self._keys.count)
        places = pa.array(np.arange(numbers.size), mask=self._offsets[numbers] == _NO_ROW)
        return column.take(numbers).take(places)

    def keys(self) -> dict[str, pa.Array]:
        """Return the PRIMARY KEY columns of all rows, by name; no columns where no key was ever met."""
        there = np.flatnonzero(self._offsets != _NO_ROW)
        return {name: self._columns[name].take(there) for name in self._stream.partition_key if self._columns}

    def snapshot(self) -> EdgeRows:
        """Return the rows as rows of a snapshot."""
        rows = self.events()
        return EdgeRows(rows, np.arange(rows.count), np.full(rows.count, SNAPSHOT, np.int8))

    def events(self) -> TableEvents:
        """Return the rows in the order of the records that set them, as if each record had come anew."""
        there = np.flatnonzero(self._offsets != _NO_ROW)
        there = there[np.lexsort((self._changes[there], self._offsets[there]))]
        offsets, sizes, count = self._offsets[there] - self._stream.base, self._sizes[there], there.size
        number = self._changes[there] if is_change_format(self._stream.format) else None
        source = pa.record_batch(
            {
                "key": pa.nulls(count, pa.binary()),
                "value": pa.nulls(count, pa.binary()),
                "partition": pa.array(np.full(count, self._partition), pa.int32()),
                "offset": pa.array(offsets),
                "timestamp": pa.array(self._times[there] * 1000, pa.timestamp("us", tz="UTC")),
                "headers": pa.nulls(count, HEADERS),
            }
        )
        arrays = {name: column.take(there) for name, column in self._columns.items()}
        return TableEvents(self._stream, source, arrays, np.zeros(count, np.bool_), lambda: sizes, number=number)
