"""Prometheus gauges of streams: size, tables, output, and the costliest groups."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import NamedTuple

from gateway.metrics import (
    FUTURE_EVENTS,
    GROUP_CORES,
    GROUPS,
    LATE_EVENTS,
    LIVE_CQS,
    MATCHES,
    MISFITS,
    RESULT_BYTES,
    RESULTS,
    TABLE_AGE,
    TABLE_BYTES,
    TABLE_MEMORY,
    TABLE_MEMORY_LIMIT,
    TABLE_ROWS,
    TABLE_VERSION,
)
from gateway.registry.admission import Admission
from gateway.registry.operator_states import StateGauges
from gateway.state.working_copy import WorkingCopy
from grouping.model.catalog import Stream
from grouping.model.ids import GroupId, StreamId
from grouping.store.first_records import FirstRecords
from grouping.store.notes import Output

__all__ = ["StreamGauges"]

_COUNTERS = MATCHES, RESULTS, RESULT_BYTES, LATE_EVENTS, FUTURE_EVENTS
"""The metrics of the fields of `Output`."""
_TURNS = 5
"""Each call of `look` reads the evaluator's notes on only a fifth of the streams, because there may be many streams and
groups. So this number of calls reads the notes on all streams once."""
_COSTLIEST = 10
_MOST_COLUMNS = 10
"""A misfit is a value that does not fit its column's type. At most this many columns of a stream have a metric series
for their own misfits."""
_OTHER_COLUMNS = "*"


class _GaugedStream(NamedTuple):
    """The progress of a stream at a call of `look`."""

    at_ms: int
    positions: int
    """The sum of the evaluated offsets of all partitions."""


class StreamGauges:
    """Sets the metrics of streams; for use by the gateway's main thread only."""

    def __init__(self, working: WorkingCopy, admission: Admission) -> None:
        """Create; `look` sets the metrics.

        Args:
            working: The working copy, with the CQs, groups and versions.
            admission: The workers' statistics and the memory of tables.
        """
        self._working = working
        self._admission = admission
        self._turn = 0
        self._changed: dict[StreamId, tuple[int, int]] = {}
        """Stream → the version of its constant tables, and when `look` first found this version."""
        self._output: dict[StreamId, Output] = {}
        self._evaluated: dict[StreamId, _GaugedStream] = {}
        self._cores: dict[StreamId, dict[GroupId, float]] = {}
        self._shown: set[tuple[str, str]] = set()
        self._misfits: set[tuple[str, str]] = set()
        """Streams and columns that have a series of misfits."""
        self._first_records: dict[StreamId, FirstRecords] = {}
        self._states = StateGauges(working.evaluator)
        self._show_memory()

    def look(self, now_ms: int) -> None:
        """Set the gateway's own figures of all streams, and the evaluator's figures of a fifth of the streams.

        Raises:
            OperationalError: Redis does not answer.
        """
        streams = list(self._working.inventory.streams.values())
        for kept in (self._changed, self._output, self._evaluated, self._cores, self._first_records):
            for gone in kept.keys() - self._working.inventory.streams.keys():
                del kept[gone]
        self._states.forget(self._working.inventory.streams)
        for stream in streams:
            self._size(stream, now_ms)
        some = streams[self._turn :: _TURNS]
        self._turn = (self._turn + 1) % _TURNS
        if some:
            self._count(some)
            self._costs(some, now_ms)
            self._states.show(some)
            self._first_records |= self._working.evaluator.first_records([stream.stream_id for stream in some])
        if self._turn == 0:
            self._count_misfits([stream for stream in streams if stream.lenient])
        self._show_costliest()
        self._show_memory()

    def warning(self, stream_id: StreamId) -> str | None:
        """Return the latest warning about the first records of a stream; None without a warning."""
        return self._first_records.get(stream_id, FirstRecords()).warning

    def _count_misfits(self, streams: Sequence[Stream]) -> None:
        """Set the misfits: for each stream, the columns with the most misfits, and the sum of all other columns."""
        found = self._working.evaluator.misfits([stream.stream_id for stream in streams]) if streams else {}
        shown: dict[tuple[str, str], int] = {}
        for stream in streams:
            counts = found[stream.stream_id]
            most = heapq.nlargest(_MOST_COLUMNS, counts, counts.__getitem__)
            shown |= {(stream.name, column): counts[column] for column in most}
            if rest := sum(counts.values()) - sum(counts[column] for column in most):
                shown[stream.name, _OTHER_COLUMNS] = rest
        for labels in self._misfits - shown.keys():
            MISFITS.remove(*labels)
        for labels, count in shown.items():
            MISFITS.labels(*labels).set(count)
        self._misfits = set(shown)

    def _size(self, stream: Stream, now_ms: int) -> None:
        inventory, stream_id = self._working.inventory, stream.stream_id
        version = inventory.versions[stream_id]
        known, since_ms = self._changed.setdefault(stream_id, (version, now_ms))
        if version != known:
            since_ms = now_ms
            self._changed[stream_id] = version, now_ms
        rows = inventory.next_numbers.get(stream_id, 0) - len(inventory.free_numbers.get(stream_id, ()))
        LIVE_CQS.labels(stream.name).set(inventory.live_cqs[stream_id])
        GROUPS.labels(stream.name).set(len(inventory.groups(stream_id)))
        TABLE_ROWS.labels(stream.name).set(rows)
        TABLE_VERSION.labels(stream.name).set(version)
        TABLE_AGE.labels(stream.name).set((now_ms - since_ms) / 1000)

    def _count(self, streams: Sequence[Stream]) -> None:
        """Add the output of tasks to the counters. The totals restart at zero after Redis has lost its data."""
        names = {stream.stream_id: stream.name for stream in streams}
        for stream_id, output in self._working.evaluator.outputs(list(names)).items():
            before = self._output.get(stream_id, Output())
            self._output[stream_id] = output
            for counter, now, then in zip(_COUNTERS, output, before, strict=True):
                counter.labels(names[stream_id]).inc(now - then if now >= then else now)

    def _costs(self, streams: Sequence[Stream], now_ms: int) -> None:
        """Estimate the cores that groups take: events per second times the recent time per event."""
        self._admission.forget()
        self._admission.refresh([stream.stream_id for stream in streams], now_ms)
        for stream, offsets in zip(streams, self._working.evaluator.evaluated(streams), strict=True):
            stream_id = stream.stream_id
            statistics = self._admission.statistics(stream_id, now_ms)
            TABLE_BYTES.labels(stream.name).set(statistics.table_bytes or 0)
            now = _GaugedStream(now_ms, sum(offsets.values()))
            before = self._evaluated.get(stream_id, now)
            self._evaluated[stream_id] = now
            seconds = (now.at_ms - before.at_ms) / 1000
            rate = max(now.positions - before.positions, 0) / seconds if seconds > 0 else 0.0
            loads = {each: statistics.group(each) for each in self._working.inventory.groups(stream_id)} if rate else {}
            cores = {each: rate * load.per_event(load.micros) / 1e6 for each, load in loads.items() if load is not None}
            self._cores[stream_id] = {
                each: cores[each] for each in heapq.nlargest(_COSTLIEST, cores, cores.__getitem__)
            }

    def _show_memory(self) -> None:
        figure, limit = self._admission.memory.fullest
        TABLE_MEMORY.set(figure)
        TABLE_MEMORY_LIMIT.set(limit)

    def _show_costliest(self) -> None:
        streams = self._working.inventory.streams
        found = [
            (value, streams[key].name, str(group)) for key, each in self._cores.items() for group, value in each.items()
        ]
        costliest = {(stream, group): value for value, stream, group in heapq.nlargest(_COSTLIEST, found)}
        for labels in self._shown - costliest.keys():
            GROUP_CORES.remove(*labels)
        for labels, value in costliest.items():
            GROUP_CORES.labels(*labels).set(value)
        self._shown = set(costliest)
