"""The time up to which a source partition has come: a few events with a time far ahead do not move it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spark_jobs.engine.index import Ints

__all__ = ["PartitionClock"]

_AGREEING = 8
"""Events in a row that must have a time for the clock to reach it."""
_NEVER = -(1 << 60)


class PartitionClock(NamedTuple):
    """The clock after some events of a partition, a function of their times in their order."""

    time: int = _NEVER
    """Epoch milliseconds."""
    recent: tuple[tuple[int, int], ...] = ()
    """The offsets and times of the last events, too few to move the clock by themselves."""

    def after(self, offsets: Ints, times: Ints) -> tuple[PartitionClock, Ints]:
        """Return the clock after further events, and the time of the clock after each event.

        Example:
            >>> times = np.array([5, 9, 6, 7, 8, 9, 9, 9, 9])
            >>> clock, each = PartitionClock().after(np.arange(9), times)
            >>> clock.time, each[-2:].tolist()
            (6, [5, 6])
        """
        if not times.size:
            return self, times
        known = len(self.recent)
        all_times = np.concatenate([np.array([time for _, time in self.recent], np.int64), times])
        padded = np.concatenate([np.full(_AGREEING - 1, _NEVER), all_times])
        least = np.lib.stride_tricks.sliding_window_view(padded, _AGREEING).min(axis=1)
        each: Ints = np.maximum(np.maximum.accumulate(least[known:]), self.time)
        last = zip(offsets[1 - _AGREEING :].tolist(), times[1 - _AGREEING :].tolist(), strict=True)
        return PartitionClock(int(each[-1]), (*self.recent, *last)[1 - _AGREEING :]), each

    def without(self, position: int) -> PartitionClock:
        """Return the clock before events from a position on, which are told again; its time stays."""
        return PartitionClock(self.time, tuple(each for each in self.recent if each[0] < position))
