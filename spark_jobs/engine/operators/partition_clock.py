"""The time up to which a source partition has come, whatever the times of a few events."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spark_jobs.engine.index import Ints

__all__ = ["PartitionClock"]

_RECENT = 8
"""Events in a row, of which all but two must have a time for the clock to reach it.

Two events with a time far behind do not hold the clock back, and five events with a time far ahead do not move it.
"""
_NEVER, _EVER = -(1 << 60), 1 << 60


class PartitionClock(NamedTuple):
    """The clock after some events of a partition, a function of their times in their order."""

    time: int = _NEVER
    """Epoch milliseconds."""
    recent: tuple[tuple[int, int], ...] = ()
    """The offsets and times of the last events, too few to move the clock by themselves."""

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
        """Return the clock without the events from a position on, which come again; its time stays."""
        return PartitionClock(self.time, tuple(each for each in self.recent if each[0] < position))


def _third_least(times: Ints) -> Ints:
    """Return by event the third least time of the event and the seven before it; times before all count as least."""
    padded = np.concatenate([np.full(_RECENT - 1, _NEVER), times])
    least, second, third = (np.full(times.size, _EVER) for _ in range(3))
    for place in range(_RECENT):
        each = padded[place : place + times.size]
        third = np.minimum(third, np.maximum(second, each))
        second = np.minimum(second, np.maximum(least, each))
        least = np.minimum(least, each)
    return third
