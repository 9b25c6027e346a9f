"""The intervals of AT MOST: decides which results of a destination are written. No I/O.

The decision depends only on the state and on the order of the results on `cq.throttled`, so a gateway that takes over
after a crash decides in the same way.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import islice

import msgspec

from gateway.model.records import millis
from gateway.sdk.records.record import Mark
from grouping.model.trigger import Throttle

__all__ = ["Interval", "Throttling", "time_of", "values_of"]

_KEPT_MS = 86_400_000
"""How long an interval is kept after its end, by the times of later results of its destination. A result that is late
by more than that begins an interval of its own."""
_LOOKS = 2
"""The number of old intervals that are looked at for each new interval. With two, the old intervals are forgotten
faster than new ones come."""


class Interval(msgspec.Struct, array_like=True, frozen=True):
    """The current interval of the results with equal values in the columns of BY."""

    begin_ms: int
    """`ce_time` of its first result, epoch milliseconds."""
    written: int
    suppressed: int = 0
    """The number of results that were left out and that no written result has told yet."""


class Throttling:
    """The state of AT MOST for one destination."""

    def __init__(self) -> None:
        self.marks: dict[str, Mark] = {}
        """Source partition, as `<partition>/<source>`, → the place of its last result. Results up to there are
        repeats."""
        self.intervals: dict[bytes, Interval] = {}
        """Values of BY (`values_of`) → their interval."""
        self._settled: dict[bytes, None] = {}
        """The values of intervals without suppressed results, in the order of their last changes."""

    def is_repeat(self, source: str, mark: Mark) -> bool:
        """Tell whether a result came before; note the place of a new result."""
        if mark <= self.marks.get(source, (-1, 0)):
            return True
        self.marks[source] = mark
        return False

    def set(self, values: bytes, interval: Interval | None) -> None:
        """Set the interval of some values, or forget it with None."""
        self._settled.pop(values, None)
        if interval is None:
            self.intervals.pop(values, None)
            return
        self.intervals[values] = interval
        if not interval.suppressed:
            self._settled[values] = None

    def take(self, values: bytes, time_ms: int, throttle: Throttle) -> int | None:
        """Take a new result into its interval.

        Args:
            values: The values of BY.
            time_ms: The result's `ce_time`, epoch milliseconds.
            throttle: AT MOST of the destination.

        Returns:
            For a result that is written, the number of results that were left out before it; None for a result that is
            left out.

        Example:
            >>> hour, state = Throttle(1, timedelta(hours=1)), Throttling()
            >>> [state.take(b"", minute * 60_000, hour) for minute in (0, 10, 59, 60, 120)]
            [0, None, None, 2, 0]
        """
        interval = self.intervals.get(values)
        if interval is None or time_ms >= interval.begin_ms + _milliseconds(throttle.every):
            self.set(values, Interval(time_ms, 1))
            return interval.suppressed if interval else 0
        if interval.written < throttle.most:
            self.set(values, Interval(interval.begin_ms, interval.written + 1))
            return interval.suppressed
        self.set(values, Interval(interval.begin_ms, interval.written, interval.suppressed + 1))
        return None

    def forget_old(self, time_ms: int, throttle: Throttle) -> list[bytes]:
        """Forget some intervals that ended long before a new result, and return their values.

        An interval with suppressed results stays until a written result has told their number.

        Args:
            time_ms: `ce_time` of the new result, epoch milliseconds.
            throttle: AT MOST of the destination.
        """
        oldest = list(islice(self._settled, _LOOKS))
        until_ms = time_ms - _milliseconds(throttle.every) - _KEPT_MS
        gone = [values for values in oldest if self.intervals[values].begin_ms <= until_ms]
        for values in gone:
            self.set(values, None)
        return gone


@lru_cache(maxsize=1_000)
def _milliseconds(interval: timedelta) -> int:
    return interval // timedelta(milliseconds=1)


@lru_cache(maxsize=1_000)
def _reader(columns: tuple[str, ...]) -> Callable[[bytes], object]:
    fields = [(f"f{place}", msgspec.Raw, msgspec.field(name=name)) for place, name in enumerate(columns)]
    return msgspec.json.Decoder(msgspec.defstruct("_Values", fields)).decode


@lru_cache(maxsize=10_000)
def time_of(text: bytes) -> int:
    """Return the instant of a header `ce_time`, epoch milliseconds.

    Example:
        >>> time_of(b"1970-01-01T00:00:01.500Z")
        1500
    """
    return millis(datetime.fromisoformat(text.decode()))


def values_of(row: bytes, columns: tuple[str, ...]) -> bytes:
    """Return the values of some columns of a result as bytes of fixed size, equal exactly for equal values.

    Values are compared as the result shows them, so NaN and infinities are NULL; -0.0 is 0.0.

    Args:
        row: The value of the result's record, a JSON object.
        columns: Columns of the SELECT list; without columns, all results have equal values.

    Example:
        >>> one, other = (values_of(b'{"symbol":"INTC","price":%d}' % price, ("symbol",)) for price in (99, 100))
        >>> one == other, values_of(b'{"symbol":"AMD","price":99}', ("symbol",)) == one
        (True, False)
    """
    if not columns:
        return b""
    found = msgspec.structs.astuple(_reader(columns)(row))  # type: ignore[arg-type]  # a Struct of `defstruct`
    shown = [b"0.0" if (text := bytes(part)) == b"-0.0" else text for part in found]
    return hashlib.blake2b(b"\0".join(shown), digest_size=16).digest()
