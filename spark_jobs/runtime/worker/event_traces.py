"""The spans of a sampled event: the wait for a task, decoding, matching, and the split into results.

Whether an event is sampled depends only on its position. So an event that is evaluated twice is sampled twice or not
at all.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from grouping.model.catalog import Stream
from grouping.model.ids import GroupId
from grouping.process.traces import Span, trace_id
from grouping.settings.settings import Settings
from spark_jobs.engine.index import Ints
from spark_jobs.engine.rows.headers import event_ids
from spark_jobs.engine.rows.matches import Matches
from spark_jobs.engine.rows.row_source import RowSource

if TYPE_CHECKING:
    from grouping.process.trace_exporter import Traces

__all__ = ["EventTraces", "Trail", "sampled"]

_GOLDEN, _FIRST, _SECOND = (np.uint64(each) for each in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
_MOST_GROUPS = 20
"""The largest number of matching groups that a span names."""


def sampled(partitions: NDArray[np.int32], offsets: Ints, share: float) -> Ints:
    """Return the sampled rows, chosen by a hash of their positions: splitmix64 (Steele, Lea, Flood, OOPSLA 2014, §5).

    Example:
        >>> len(sampled(np.zeros(100_000, np.int32), np.arange(100_000), 0.01))
        1018
    """
    mixed = (partitions.astype(np.uint64) << np.uint64(48)) + (offsets.astype(np.uint64) + np.uint64(1)) * _GOLDEN
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _FIRST
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND
    mixed ^= mixed >> np.uint64(31)
    return np.flatnonzero((mixed >> np.uint64(11)) < np.uint64(share * (1 << 53)))


class _EventMatches(NamedTuple):
    """The matches of a sampled event."""

    matches: int
    groups: tuple[GroupId, ...]


class EventTraces:
    """Samples the events of a task."""

    def __init__(self, traces: Traces, stream: Stream, batch: int, version: int) -> None:
        """Begin.

        Args:
            traces: Sends the spans.
            stream: The stream of the events.
            batch: The number of the micro-batch.
            version: The version of the constant tables.
        """
        self._traces = traces
        self._stream = stream
        self._of_task: dict[str, str | int | Sequence[str]] = {
            "cq.stream": stream.name,
            "cq.batch": batch,
            "cq.table_version": version,
        }

    @classmethod
    def of(cls, settings: Settings, stream: Stream, batch: int, version: int) -> EventTraces | None:
        """Return the traces of a task; None if the settings ask for none."""
        if not settings.traces.endpoint:
            return None
        from grouping.process.trace_exporter import (
            Traces,  # optional packages, whose import takes a fifth of a second
        )

        return cls(Traces.to_collector(settings, "evaluator"), stream, batch, version)

    def trail(self, events: RowSource, began_ns: int) -> Trail | None:
        """Return the trail of the sampled events among decoded events; None if no event is sampled.

        Args:
            events: The decoded events.
            began_ns: When the evaluation of their records began, in nanoseconds since 1970.
        """
        rows = sampled(events.partitions, events.offsets, self._traces.share)
        return Trail(self, events, rows, began_ns) if rows.size else None

    def tell(self, trail: Trail) -> None:
        """Report the spans of a trail, after the task's writer has taken the results of the events."""
        ended, events, rows = time.time_ns(), trail.events, trail.rows
        for row, name in zip(rows.tolist(), event_ids(self._stream.name, events, rows).to_pylist(), strict=True):
            matches = trail.matches.get(int(events.offsets[row]), _EventMatches(0, ()))
            # The record's time comes from another clock, and may be later than the begin of the evaluation.
            sent = min(int(events.time_ms[row]) * 1_000_000, trail.began_ns)
            attributes: dict[str, str | int | Sequence[str]] = self._of_task | {
                "messaging.system": "kafka",
                "messaging.destination.name": self._stream.topic,
                "messaging.destination.partition.id": str(events.partitions[row]),
                "messaging.kafka.offset": int(events.offsets[row]) - self._stream.base,
                "cq.event_id": name,
                "cq.matches": matches.matches,
                "cq.groups": matches.groups,
            }
            matched = trail.matched_ns or ended
            parts = (
                Span("wait", sent, trail.began_ns),
                Span("decode", trail.began_ns, trail.decoded_ns),
                Span("match", trail.decoded_ns, matched),
                Span("split", matched, ended),
            )
            self._traces.tell(trace_id(name), Span("event", sent, ended, attributes), parts)


class Trail:
    """The times and matches of the sampled events of an Arrow batch, as far as they are known yet."""

    def __init__(self, traces: EventTraces, events: RowSource, rows: Ints, began_ns: int) -> None:
        """Begin with the sampled rows of decoded events; called by `EventTraces.trail`."""
        self._traces = traces
        self.events = events
        self.rows = rows.astype(np.int32)
        """The sampled rows."""
        self.began_ns, self.decoded_ns = began_ns, time.time_ns()
        self.matched_ns: int | None = None
        """When the first matches of any group were found."""
        self.matches: dict[int, _EventMatches] = {}
        """The matches of each sampled event, by offset; a task has a single partition."""

    def found(self, rows: RowSource, found: Matches) -> None:
        """Take note of matches of the events, or of the rows of a computation over the events."""
        self.matched_ns = self.matched_ns or time.time_ns()
        marked = np.isin(rows.offsets, self.events.offsets[self.rows])
        for match in np.flatnonzero(marked[found.event]).tolist():
            offset = int(rows.offsets[found.event[match]])
            matches, group = self.matches.get(offset, _EventMatches(0, ())), found.groups[found.group[match]]
            known = group in matches.groups or len(matches.groups) >= _MOST_GROUPS
            self.matches[offset] = _EventMatches(
                matches.matches + 1, matches.groups if known else (*matches.groups, group)
            )

    def end(self) -> None:
        """Report the trail, after the task's writer has taken the results."""
        self._traces.tell(self)
