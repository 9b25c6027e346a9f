"""Writes matches that wait for a tick as records of `cq.pending`, with many matches in a record.

The gateway makes digests of these matches later. A match is stored once for its constant row and SELECT list, whatever
the number of ticks and digests (NiagaraCQ §3.6.2).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grouping.digests.pending_matches import ID_BYTES, pack_pending
from grouping.model.catalog import Stream
from grouping.settings.settings import Settings
from grouping.store.constant_table import MODES
from grouping.store.notes import TableVersion
from spark_jobs.engine.results.encode import EvaluateExpression
from spark_jobs.engine.results.value_pool import ValuePool, value_pools
from spark_jobs.engine.rows.headers import NO_HEADERS
from spark_jobs.engine.rows.matches import Matches
from spark_jobs.engine.rows.output import MAX_RECORD_BYTES, OUTPUT, dead_letters
from spark_jobs.engine.rows.row_source import RowSource
from spark_jobs.engine.rows.silent_rows import SilentRows

__all__ = ["pending_output", "pending_records"]

_PENDING = MODES.index("pending")
_RECORD_BYTES = 400_000
_RECORD_ITEMS = 16_000
_ITEM_BYTES = 40
_BATCH_RECORDS = 20

MAX_ROW_BYTES = MAX_RECORD_BYTES - 10_000
"""The largest number of bytes of a row that fits into a digest, together with the digest's envelope."""


def pending_records(
    events: RowSource,
    matches: Matches,
    stream: Stream,
    version: TableVersion,
    settings: Settings,
    evaluate_expression: EvaluateExpression,
) -> Iterator[pa.RecordBatch]:
    """Make the records of the matches of timer-based CQs.

    Args:
        events: The decoded events, or rows that waited for the watermark, of one source partition.
        matches: Pairs of an event and a store; matches with other modes are ignored.
        stream: The events' stream.
        version: The version of the constant tables by which the events were matched; it decides which CQs see them.
        settings: The settings, with the names of topics.
        evaluate_expression: Evaluates the items of a SELECT list that are not just a column.

    Yields:
        Batches of `rows.output.OUTPUT`; some of them are dead letters (``result-too-large``).
    """
    single = np.array([select.aggregation is None for select in matches.selects], np.bool_)
    found = np.flatnonzero((matches.mode == _PENDING) & single[matches.select])
    if not found.size:
        return
    raw = np.frombuffer(matches.destination.buffers()[1], np.uint8).reshape(-1, ID_BYTES)[matches.destination.offset :]
    wanted = matches.select[found], matches.event[found]
    silent = events if isinstance(events, SilentRows) else None
    offsets = events.offsets if silent is None else silent.positions
    for pool in value_pools(events, matches.selects, *wanted, evaluate_expression, stored=True):
        sizes = pool.sizes
        fits = sizes[pool.value] <= MAX_ROW_BYTES
        if not fits.all():
            yield _too_large(events, pool, sizes, settings)
        match, value = found[pool.match[fits]], pool.value[fits]
        packed = []
        for partition, chunk in _chunks(matches.partition[match], value, sizes):
            used, rows = np.unique(value[chunk], return_inverse=True)
            event = pool.event[value[chunk]]
            places = (events.partitions[event], offsets[event], events.time_ms[event])
            body = pack_pending(
                stream.stream_id,
                version,
                raw[match[chunk]],
                places,
                rows.astype(np.int32),
                pool.values.take(pa.array(used)).to_pylist(),
                None if events.number is None else events.number[event],
                computed=silent is not None,
            )
            packed.append((partition, body))
            if len(packed) == _BATCH_RECORDS:
                yield pending_output(packed, settings)
                packed = []
        if packed:
            yield pending_output(packed, settings)


def _chunks(
    partition: NDArray[np.int32], value: NDArray[np.int64], sizes: NDArray[np.int64]
) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield for each record its partition and its matches; the matches are in the order of their values."""
    order = np.lexsort((value, partition))
    partition, value = partition[order], value[order]
    first = np.ones(len(order), bool)
    first[1:] = (value[1:] != value[:-1]) | (partition[1:] != partition[:-1])
    ends = np.cumsum(np.where(first, sizes[value], 0) + _ITEM_BYTES)
    bounds = np.append(np.flatnonzero(np.diff(partition, prepend=-1)), len(order))
    for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        start = begin
        while start < end:
            size = int(sizes[value[start]])
            room = _RECORD_BYTES if size <= _RECORD_BYTES // 2 else MAX_RECORD_BYTES
            if not first[start]:
                room -= size  # the row is in the previous record too, and `ends` counts it only there
            before = ends[start - 1] if start else 0
            stop = int(np.searchsorted(ends, before + room, side="right"))
            stop = min(max(stop, start + 1), start + _RECORD_ITEMS, end)
            yield int(partition[start]), order[start:stop]
            start = stop


def pending_output(packed: list[tuple[int, bytes]], settings: Settings) -> pa.RecordBatch:
    """Return records of `cq.pending`, given with their partitions, as rows of `rows.output.OUTPUT`."""
    count = len(packed)
    return pa.record_batch(
        [
            pa.nulls(count, pa.binary()),
            pa.array([body for _, body in packed], pa.binary()),
            pa.repeat(pa.scalar(settings.topics.pending), count),
            pa.array([partition for partition, _ in packed], pa.int32()),
            pa.repeat(pa.scalar(NO_HEADERS), count),
        ],
        schema=OUTPUT,
    )


def _too_large(events: RowSource, pool: ValuePool, sizes: NDArray[np.int64], settings: Settings) -> pa.RecordBatch:
    """Return a dead letter for each event whose row is too large for a digest."""
    large = np.flatnonzero(sizes > MAX_ROW_BYTES)
    details = {
        int(event): f"The result has {sizes[index]} bytes or more; a digest can hold {MAX_ROW_BYTES}."
        for index, event in zip(large.tolist(), pool.event[large].tolist(), strict=True)
    }
    return dead_letters(events.source, details, "result-too-large", events.stream, settings)
