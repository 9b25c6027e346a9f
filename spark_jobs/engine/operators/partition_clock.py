"""The clock of a source partition: the time that its events have reached, even if a few events have wrong times."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spark_jobs.engine.index import Ints

__all__ = ["PartitionClock"]

_RECENT = 8
"""The clock reaches a time when at least six of this many (eight) successive events have this time or a later time.

So two events with a much too early time do not hold the clock back, and five events with a much too late time do not
move the clock.
"""
_NEVER, _EVER = -(1 << 60), 1 << 60


class PartitionClock(NamedTuple):
    """The clock after some events of a partition. The clock depends only on the events' times and on their order."""

    time: int = _NEVER
    """Epoch milliseconds."""
    recent: tuple[tuple[int, int], ...] = ()
    """The offsets and times of the last seven events, which the next events are compared with."""

    def after(self, offsets: Ints, times: Ints) -> tuple[PartitionClock, Ints]:
        """Return the clock after further events, and the time of the clock after each event.

        Example:
            >>> times = np.array([5, 9, 6, 7, 8, 0, 9, 9, 9])
            >>> clock, each = PartitionClock().after(np.arange(9), times)
            >>> clock.time, each[-4:].tolist()
            (7, [0, 5, 6, 7])
        """
        if not times.size:
            return self, times
        known = len(self.recent)
        all_times = np.concatenate([np.array([time for _, time in self.recent], np.int64), times])
        each: Ints = np.maximum(np.maximum.accumulate(_third_least(all_times)[known:]), self.time)
        last = zip(offsets[1 - _RECENT :].tolist(), times[1 - _RECENT :].tolist(), strict=True)
        return PartitionClock(int(each[-1]), (*self.recent, *last)[1 - _RECENT :]), each

    def without(self, position: int) -> PartitionClock:
        """Return the clock for reading the events from a position on again: the same time, without these events."""
        return PartitionClock(self.time, tuple(each for each in self.recent if each[0] < position))


def _third_least(times: Ints) -> Ints:
    """Return for each event the third least time among the times of this event and of the seven events before it.

    If an event has fewer than seven events before it, each missing event counts as earlier than all events.
    """
    padded = np.concatenate([np.full(_RECENT - 1, _NEVER), times])
    least, second, third = (np.full(times.size, _EVER) for _ in range(3))
    for place in range(_RECENT):
        each = padded[place : place + times.size]
        third = np.minimum(third, np.maximum(second, each))
        second = np.minimum(second, np.maximum(least, each))
        least = np.minimum(least, each)
    return third
