"""The events of a range of a log, decoded as the tasks that evaluated the events decoded them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from grouping.model.catalog import Stream
from grouping.settings.settings import Settings
from spark_jobs.engine.operators.lookup_join.table_events import decode_stream
from spark_jobs.engine.rows.events import Events
from spark_jobs.runtime.kafka.range_reader import RangeReader, SourceRange

__all__ = ["DecodedBy", "as_declared", "logged_events"]

DecodedBy = Callable[[Stream, pa.RecordBatch], Iterable[tuple[Stream, pa.RecordBatch]]]
"""Divides records into parts, each with the declaration of the stream that decodes the part."""


def as_declared(stream: Stream, records: pa.RecordBatch) -> Iterable[tuple[Stream, pa.RecordBatch]]:
    """Return all records as one part, with the stream's own declaration."""
    return ((stream, records),)


def logged_events(
    reader: RangeReader,
    stream: Stream,
    wanted: SourceRange,
    cuts: Sequence[int],
    decoded_by: DecodedBy,
    settings: Settings,
) -> Iterator[Events]:
    """Yield the events of a range of the log in pieces.

    Args:
        reader: Reads the records.
        stream: The stream.
        wanted: The range.
        cuts: Offsets at each of which a new piece begins, ascending.
        decoded_by: Divides the records of a piece into parts by declaration.
        settings: The evaluator's settings.
    """
    for _, batches in reader.read([wanted]):
        for batch in batches:
            places = np.searchsorted(batch["offset"].to_numpy(), cuts).tolist()
            for begin, end in pairwise((0, *places, batch.num_rows)):
                if begin == end:
                    continue
                for declared, part in decoded_by(stream, batch.slice(begin, end - begin)):
                    yield from (events for events, _ in decode_stream(part, declared, settings) if events.count)
