"""The rows of a table in one partition, folded from the changes of its topic, for snapshots and digests."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from grouping.model.catalog import Stream
from spark_jobs.engine.operators.lookup_join.table_events import TableEvents
from spark_jobs.engine.operators.row_before.key_numbers import KeyNumbers, key_columns
from spark_jobs.engine.operators.row_before.last_values import LastValues, grown
from spark_jobs.engine.rows.arrays import Ints
from spark_jobs.engine.rows.edge_rows import SNAPSHOT, EdgeRows
from spark_jobs.engine.rows.events import Events
from spark_jobs.engine.rows.record_fields import HEADERS

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
        self._columns: dict[str, LastValues] = {}

    def fold(self, events: Events) -> None:
        """Take in changes, in the order of the topic."""
        if not events.count:
            return
        numbers = self._keys.of(key_columns([events.column(name) for name in self._stream.partition_key]))
        distinct, place = np.unique(numbers[::-1], return_index=True)
        last, count = events.count - 1 - place, self._keys.count
        offsets = events.offsets[last]
        if events.removals is not None:
            offsets = np.where(events.removals[last], _NO_ROW, offsets)
        self._offsets = grown(self._offsets, count, _NO_ROW)
        self._times, self._sizes = grown(self._times, count, 0), grown(self._sizes, count, 0)
        self._offsets[distinct], self._times[distinct] = offsets, events.time_ms[last]
        self._sizes[distinct] = events.record_bytes[last]
        places = pa.array(last)
        for column in self._stream.columns:
            values = events.column(column.name).take(places)
            kept = self._columns.setdefault(column.name, LastValues(values.type, 0))
            kept.grow(count)
            kept.put(distinct, values)

    def snapshot(self) -> EdgeRows:
        """Return the rows as rows of a snapshot."""
        rows = self.events()
        return EdgeRows(rows, np.arange(rows.count), np.full(rows.count, SNAPSHOT, np.int8))

    def events(self) -> TableEvents:
        """Return the rows in the order of the records that set them, as if each record had come anew."""
        there = np.flatnonzero(self._offsets != _NO_ROW)
        there = there[np.argsort(self._offsets[there])]
        offsets, sizes, count = self._offsets[there] - self._stream.base, self._sizes[there], there.size
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
        return TableEvents(self._stream, source, arrays, np.zeros(count, np.bool_), lambda: sizes)
