"""Makes a record for each match and destination, with topic, key and id (NiagaraCQ's split operator).

A value is encoded only once for each distinct (event, SELECT list), and the ids and times of headers only once for each
event, however many destinations share them. Each mode of destinations has a function that returns the topic, partition
and key of its records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grouping.model.catalog import Stream
from grouping.model.expression import Column
from grouping.model.ids import SelectId
from grouping.model.wording import counted
from grouping.plan.group import SelectItem, SelectList
from grouping.settings.settings import Settings
from grouping.store.constant_table import MODES
from spark_jobs.engine.results.encode import EvaluateExpression
from spark_jobs.engine.results.value_pool import ValuePool, value_pools
from spark_jobs.engine.rows.arrays import Ints, distinct_values
from spark_jobs.engine.rows.headers import computed_ids, event_ids, event_times, hex_keys, match_headers
from spark_jobs.engine.rows.matches import Matches
from spark_jobs.engine.rows.output import MAX_RECORD_BYTES, OUTPUT, dead_letters
from spark_jobs.engine.rows.row_source import RowSource
from spark_jobs.engine.rows.silent_rows import SilentRows

__all__ = ["OUTPUT", "split"]

_CHUNK_ROWS = 20_000
_CHUNK_BYTES = 8 << 20
_SHARED, _DEDICATED, _VIRTUAL, _THROTTLED = (
    MODES.index(mode) for mode in ("shared", "dedicated", "virtual", "throttled")
)

Address = tuple[pa.Array, pa.Array, pa.Array]
"""The keys, topics and partitions of some records."""


def split(
    events: RowSource, matches: Matches, stream: Stream, settings: Settings, evaluate_expression: EvaluateExpression
) -> Iterator[pa.RecordBatch]:
    """Make the records of the matches of a batch.

    Args:
        events: The decoded events.
        matches: Pairs of an event and a destination.
        stream: The stream of the events. Its name is the CloudEvents source.
        settings: The settings, with the names of topics.
        evaluate_expression: Evaluates the items of a SELECT list that are not just a column.

    Yields:
        Batches of `rows.output.OUTPUT`, of bounded size; some of them are dead letters (``result-too-large``).
    """
    if not len(matches.event):
        return
    addresses = {
        _SHARED: partial(_keyed, settings.topics.results),
        _DEDICATED: partial(_dedicated, settings),
        _THROTTLED: partial(_keyed, settings.topics.throttled),
    }
    change = np.flatnonzero(np.isin(matches.mode, list(addresses)))
    for pool in value_pools(
        events, matches.selects, matches.select[change], matches.event[change], evaluate_expression
    ):
        write = _PoolWriter(events, stream, settings, pool)
        found = change[pool.match]
        for mode, address in addresses.items():
            chosen = matches.mode[found] == mode
            yield from write(pool.value[chosen], partial(address, matches, found[chosen]))
    group, event = _virtual_pairs(matches)
    everything = SelectList(
        SelectId(""), tuple(SelectItem(c.name, Column(c.name, c.type_text)) for c in stream.columns)
    )
    for pool in value_pools(events, [everything], np.zeros(len(event), np.int32), event, evaluate_expression):
        write = _PoolWriter(events, stream, settings, pool)
        pairs = group[pool.match], event[pool.match]
        yield from write(pool.value, partial(_virtual, matches.groups, settings, events.partitions, *pairs))


def _keyed(topic: str, matches: Matches, found: Ints, chunk: Ints) -> Address:
    """Return the addresses of shared or throttled results: the topic, the entry's partition, the destination as key."""
    rows = found[chunk]
    keys = hex_keys("d_", matches.destination.take(pa.array(rows)))
    return keys, pa.repeat(pa.scalar(topic), len(rows)), pa.array(matches.partition[rows])


def _dedicated(settings: Settings, matches: Matches, found: Ints, chunk: Ints) -> Address:
    """Return the addresses of dedicated results: the destination's own topic, which has one partition."""
    ids = matches.destination.take(pa.array(found[chunk]))
    topics = hex_keys(settings.topics.own_results("d_"), ids).cast(pa.string())
    return hex_keys("d_", ids), topics, pa.array(np.zeros(len(chunk), np.int32))


def _virtual_pairs(matches: Matches) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the distinct pairs of a group and an event with a virtual match, as a group's topic gets an event once."""
    found = np.flatnonzero(matches.mode == _VIRTUAL)
    pairs = distinct_values((matches.group[found].astype(np.int64) << 32) | matches.event[found])
    return (pairs >> 32).astype(np.int32), (pairs & 0xFFFFFFFF).astype(np.int32)


def _virtual(
    groups: tuple[str, ...],
    settings: Settings,
    partitions: NDArray[np.int32],
    group: NDArray[np.int32],
    event: NDArray[np.int32],
    chunk: Ints,
) -> Address:
    """Return the addresses of virtual results: the group's topic, and the number of the event's source partition."""
    index = pa.array(group[chunk])
    topics = pa.array([settings.topics.own_results(name) for name in groups], pa.string())
    keys = pa.array([name.encode() for name in groups], pa.binary())
    return keys.take(index), topics.take(index), pa.array(partitions[event[chunk]])


class _PoolWriter:
    """Makes records from a pool's values, their headers and the records' addresses."""

    def __init__(self, events: RowSource, stream: Stream, settings: Settings, pool: ValuePool) -> None:
        self._events = events
        self._stream = stream
        self._settings = settings
        self._pool = pool
        self._source, self._ids = stream.name, event_ids(stream.name, events, pool.event)
        self._causes: pa.StringArray | None = None
        if isinstance(events, SilentRows):
            self._source, self._causes = events.computation_id, self._ids
            self._ids = computed_ids(events, pool.event)
        self._times = event_times(events, pool.event)
        self._kinds = None if events.kinds is None else events.kinds[pool.event]

    def __call__(self, value: Ints, address: Callable[[Ints], Address]) -> Iterator[pa.RecordBatch]:
        """Yield records in batches, and dead letters in place of records that are too large.

        Args:
            value: For each record, the index of its value in the pool.
            address: Returns the keys, topics and partitions of some of the records, given by their places in `value`.
        """
        sizes, before = self._pool.sizes[value], self._pool.before
        fits = sizes <= MAX_RECORD_BYTES
        kept = np.flatnonzero(fits)
        for chunk in _chunks(kept, sizes[kept]):
            chosen = pa.array(value[chunk])
            kinds = None if self._kinds is None else self._kinds[value[chunk]]
            headers = match_headers(
                self._source,
                self._ids.take(chosen),
                self._times.take(chosen),
                kinds,
                None if before is None else before.take(chosen),
                None if self._causes is None else self._causes.take(chosen),
            )
            key, topic, partition = address(chunk)
            yield pa.record_batch([key, self._pool.values.take(chosen), topic, partition, headers], schema=OUTPUT)
        if not fits.all():
            large = np.flatnonzero(~fits)
            yield self._dead_letters(self._pool.event[value[large]], sizes[large], address(large)[0])

    def _dead_letters(self, event: NDArray[np.int32], sizes: Ints, keys: pa.BinaryArray) -> pa.RecordBatch:
        """Return one dead letter for each event, however many destinations the event has."""
        details: dict[int, str] = {}
        rows, first, counts = np.unique(event, return_index=True, return_counts=True)
        for row, index, count in zip(rows.tolist(), first.tolist(), counts.tolist(), strict=True):
            others = f" (and {counted(count - 1, 'other')})" if count > 1 else ""
            details[row] = (
                f"The result for {keys[index].as_py().decode()}{others} has {sizes[index]} bytes or more; "
                f"a record can hold {MAX_RECORD_BYTES}."
            )
        return dead_letters(self._events.source, details, "result-too-large", self._stream, self._settings)


def _chunks(rows: Ints, sizes: Ints) -> Iterator[Ints]:
    """Divide rows into runs with a bounded number of rows and bytes; no run is empty."""
    ends = np.cumsum(sizes)
    start = 0
    while start < len(rows):
        before = ends[start - 1] if start else 0
        stop = int(np.searchsorted(ends, before + _CHUNK_BYTES, side="right"))
        stop = min(max(stop, start + 1), start + _CHUNK_ROWS)
        yield rows[start:stop]
        start = stop
