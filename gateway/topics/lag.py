"""The lag of a stream: how long its oldest unevaluated event has waited, by the gateway's clock.

The times of records cannot be used, since producers set them. So the gateway notes when it first sees each end of a
partition.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

__all__ = ["Lag"]

_MOST_SEEN = 512
"""The largest number of samples of a partition."""


class Lag:
    """The lag of one stream, measured at each call of `seconds`."""

    def __init__(self) -> None:
        """Begin without samples. For events that wait already, the waiting time begins at the first call."""
        self._seen: dict[str, _EndSamples] = {}

    def seconds(self, ends: Mapping[str, int], evaluated: Mapping[str, int], now: float) -> float:
        """Return for how many seconds the oldest unevaluated event has waited; 0 if all events are evaluated.

        Args:
            ends: Partition → offset after its last event.
            evaluated: Partition → offset after its last evaluated event.
            now: Seconds of a monotonic clock.

        Example:
            >>> lag = Lag()
            >>> samples = ((5, 5, 0), (7, 5, 1), (9, 6, 4), (9, 9, 5))
            >>> [lag.seconds({"0": end}, {"0": done}, at) for end, done, at in samples]
            [0.0, 0.0, 3.0, 0.0]
        """
        self._seen = {number: self._seen.get(number) or _EndSamples() for number in ends}
        oldest = [self._seen[number].since(end, evaluated.get(number, 0), now) for number, end in ends.items()]
        return float(now - min(oldest, default=now))


class _EndSamples:
    """Ends of a partition, each with the time at which it was first seen. If there are too many, some are removed."""

    def __init__(self) -> None:
        self._seen: deque[tuple[int, float]] = deque()
        self._apart = 0.0

    def since(self, end: int, evaluated: int, now: float) -> float:
        """Note an end, and return since when the oldest unevaluated event has waited; `now` if there is none."""
        while self._seen and self._seen[0][0] <= evaluated:
            self._seen.popleft()
        if not self._seen:
            self._apart = 0.0
        if end > evaluated and (
            not self._seen or (self._seen[-1][0] != end and now - self._seen[-1][1] >= self._apart)
        ):
            self._seen.append((end, now))
        if len(self._seen) > _MOST_SEEN:
            self._thin_out()
        return self._seen[0][1] if self._seen else now

    def _thin_out(self) -> None:
        """Remove about half of the samples. The remaining samples are at least twice the mean distance apart."""
        self._apart = 2 * (self._seen[-1][1] - self._seen[0][1]) / len(self._seen)
        kept: deque[tuple[int, float]] = deque()
        for end, at in self._seen:
            if not kept or at - kept[-1][1] >= self._apart:
                kept.append((end, at))
        self._seen = kept
