"""The intervals of AT MOST: decides which results of a destination are written. No I/O.

The decision depends only on the state and on the order of the results on `cq.throttled`, so a gateway that takes over
after a crash decides in the same way.
"""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from itertools import islice

import msgspec

from gateway.model.records import millis
from gateway.sdk.records.record import Mark
from grouping.model.trigger import Throttle

__all__ = ["Interval", "ThrottleState", "time_of"]

_KEPT_MS = 86_400_000
"""How long an interval is kept after its last change, in addition to its length."""
_LOOKS = 2
"""The number of old intervals that are looked at for each new result. With two, old intervals are forgotten faster than
new ones come."""


class Interval(msgspec.Struct, array_like=True, frozen=True):
    """The current interval of the results with equal values in the columns of BY."""

    begin_ms: int
    """`ce_time` of its first result, epoch milliseconds."""
    changed_ms: int
    """When its latest result came to `cq.throttled`, epoch milliseconds."""
    written: int
    suppressed: int = 0
    """The number of results that were left out and that no written result has told yet."""


class ThrottleState:
    """The state of AT MOST for one destination."""

    def __init__(self) -> None:
        self.marks: dict[str, Mark] = {}
        """Source partition, as `<partition>/<source>`, → the place of its last result. Results up to there are
        repeats."""
        self.intervals: dict[bytes, Interval] = {}
        """Values of BY (`by_values`) → their interval, in the order of the last changes."""
        self._settled: dict[bytes, None] = {}
        """The values of intervals without suppressed results, in the order of the last changes."""

    def is_repeat(self, source: str, mark: Mark) -> bool:
        """Tell whether a result came before; note the place of a new result."""
        if mark <= self.marks.get(source, (-1, 0)):
            return True
        self.marks[source] = mark
        return False

    def set(self, values: bytes, interval: Interval | None) -> None:
        """Set the interval of some values, or forget it with None."""
        self._settled.pop(values, None)
        self.intervals.pop(values, None)
        if interval is not None:
            self.intervals[values] = interval
            if not interval.suppressed:
                self._settled[values] = None

    def take(self, values: bytes, time_ms: int, came_ms: int, throttle: Throttle) -> int | None:
        """Take a new result into its interval.

        A result whose time is before the interval's first result counts in the interval, if it is earlier by less than
        the interval's length. A much earlier or a later result begins an interval, so a single wrong time does not
        hold back the results after it.

        Args:
            values: The values of BY.
            time_ms: The result's `ce_time`, epoch milliseconds.
            came_ms: When the result came to `cq.throttled`, epoch milliseconds.
            throttle: AT MOST of the destination.

        Returns:
            For a result that is written, the number of results that were left out before it; None for a result that is
            left out.

        Example:
            >>> from datetime import timedelta
            >>> hour, state = Throttle(1, timedelta(hours=1)), ThrottleState()
            >>> [state.take(b"", minute * 60_000, 0, hour) for minute in (0, 10, 59, 60, 120)]
            [0, None, None, 2, 0]
        """
        interval = self.intervals.get(values)
        if interval is None or abs(time_ms - interval.begin_ms) >= throttle.every_ms:
            self.set(values, Interval(time_ms, came_ms, 1))
            return interval.suppressed if interval else 0
        begin_ms, written, suppressed = interval.begin_ms, interval.written, interval.suppressed
        if written < throttle.most:
            self.set(values, Interval(begin_ms, came_ms, written + 1))
            return suppressed
        self.set(values, Interval(begin_ms, came_ms, written, suppressed + 1))
        return None

    def forget_old(self, came_ms: int, throttle: Throttle) -> list[bytes]:
        """Forget some intervals that ended long before a new result came, and return their values.

        An interval with suppressed results stays until a written result has told their number.

        Args:
            came_ms: When the new result came to `cq.throttled`, epoch milliseconds.
            throttle: AT MOST of the destination.
        """
        until_ms = came_ms - throttle.every_ms - _KEPT_MS
        oldest = list(islice(self._settled, _LOOKS))
        gone = [values for values in oldest if self.intervals[values].changed_ms <= until_ms]
        for values in gone:
            self.set(values, None)
        return gone


@lru_cache(maxsize=10_000)
def time_of(text: bytes) -> int:
    """Return the instant of a header `ce_time`, epoch milliseconds.

    Example:
        >>> time_of(b"1970-01-01T00:00:01.500Z")
        1500
    """
    return millis(datetime.fromisoformat(text.decode()))
