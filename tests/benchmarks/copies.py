"""What evaluation is compared with: the same topic copied by Spark through an identity `mapInArrow`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa

from grouping.catalog import Stream
from spark_jobs.events import Events
from spark_jobs.headers import event_ids, event_times, match_headers
from spark_jobs.output import HEADERS, OUTPUT

__all__ = ["plain_copy", "headers_copy"]

Copy = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def plain_copy(topic: str) -> Copy:
    """Return a copy of keys and values alone."""

    def copy(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            count = batch.num_rows
            columns = [batch["key"], batch["value"], _repeated(topic, count), pa.nulls(count, pa.int32())]
            yield pa.record_batch([*columns, pa.nulls(count, HEADERS)], schema=OUTPUT)

    return copy


def headers_copy(topic: str, stream: Stream) -> Copy:
    """Return a copy with the five headers that a match has."""

    def copy(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            count = batch.num_rows
            rows = np.arange(count, dtype=np.int32)
            events = Events(stream, batch, lambda _: [])
            headers = match_headers(stream.name, event_ids(stream.name, events, rows), event_times(events, rows))
            columns = [batch["key"], batch["value"], _repeated(topic, count), pa.nulls(count, pa.int32())]
            yield pa.record_batch([*columns, headers], schema=OUTPUT)

    return copy


def _repeated(topic: str, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(topic), count)
