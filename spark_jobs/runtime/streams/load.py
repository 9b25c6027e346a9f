"""The load of a stream: busy, or quiet enough for the lane."""

from __future__ import annotations

from collections import deque

__all__ = ["StreamLoad"]

_WINDOW_SECONDS = 3.0
"""The time over which rates are measured."""
_BUSY_RATE = 1_000.0
"""A stream with more events a second than this needs a query of its own."""
_BUSY_BEHIND = 5_000
"""A stream with more waiting events than this needs a query of its own."""
_BUSY_SHARE = 0.5
"""A stream that takes more than this share of a core needs a query of its own, unless it is alone in the lane."""
_QUIET_SECONDS = 15.0
"""How long a stream must have stayed within `_QUIET_RATE` before it may share the lane again."""
_QUIET_RATE = 200.0
"""The number of events a second, and of waiting events, up to which a stream is quiet."""


class StreamLoad:
    """The events of a stream, and the CPU time of their evaluation, per second over the last `_WINDOW_SECONDS`."""

    def __init__(self) -> None:
        """Begin without a measurement."""
        self._seen: deque[tuple[float, int, float]] = deque()
        self._evaluation = 0.0
        self._loud_at: float | None = None

    def add(self, now: float, events: int, seconds: float = 0.0) -> None:
        """Note how many events were evaluated by now.

        Args:
            now: Monotonic seconds.
            events: The number of events that were evaluated since the evaluator began.
            seconds: The CPU time for which tasks have evaluated the stream since the last call.
        """
        self._evaluation += seconds
        self._seen.append((now, events, self._evaluation))
        while now - self._seen[0][0] > _WINDOW_SECONDS:
            self._seen.popleft()
        if self._loud_at is None or self.rate > _QUIET_RATE:
            self._loud_at = now

    @property
    def rate(self) -> float:
        """Events a second."""
        return self._a_second(1)

    def __str__(self) -> str:
        """Return the load for a log."""
        return f"{self.rate:.0f} events/s, {self._a_second(2):.2f} of a core"

    def _a_second(self, field: int) -> float:
        first, last = self._seen[0], self._seen[-1]
        seconds = last[0] - first[0]
        return (last[field] - first[field]) / seconds if seconds >= _WINDOW_SECONDS / 2 else 0.0

    def is_busy(self, behind: int, *, alone: bool = False) -> bool:
        """Tell whether the stream needs a query of its own.

        Args:
            behind: The number of events that wait.
            alone: Whether the lane has no other stream, so that a long evaluation delays no other stream.
        """
        return self.rate > _BUSY_RATE or behind > _BUSY_BEHIND or (not alone and self._a_second(2) > _BUSY_SHARE)

    @staticmethod
    def is_near(behind: int | None) -> bool:
        """Tell whether few events wait; `behind` is the number of waiting events, None if unknown."""
        return behind is not None and behind <= _BUSY_BEHIND

    def is_quiet(self, behind: int | None) -> bool:
        """Tell whether the stream may share the lane; `behind` is the number of waiting events, None if unknown."""
        if behind is None or behind > _QUIET_RATE or self._loud_at is None:
            return False
        return self._seen[-1][0] - self._loud_at > _QUIET_SECONDS
