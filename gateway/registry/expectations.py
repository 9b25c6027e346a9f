"""Sums for admission: expected matches (or bytes) of admitted destinations, and the fixed time of a micro-batch."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping

from grouping.model.ids import GroupId, StreamId

__all__ = ["BatchTimes", "Expectations"]

_STEPS = 256
"""For this many versions of the constant tables, the latest ones, the sum of all earlier expectations is kept."""
_ALL_OF = 1_000
_ONE_IN = 16
"""After the first `_ALL_OF` destinations, only every 16th destination is estimated, since an estimate takes 20 µs."""


class Expectations:
    """Expected matches (or bytes) of admitted destinations, summed by the first table version of each destination."""

    def __init__(self) -> None:
        self._total = 0.0
        self._count = 0
        self._versions: list[tuple[int, int]] = []
        self._before: list[float] = []

    def weight(self) -> int:
        """Return the weight of the next destination's estimate; 0 if the destination is not estimated.

        The weight is 1 for the first 1,000 destinations. From then on, every 16th destination has the weight 16.
        """
        if self._count < _ALL_OF:
            return 1
        return 0 if self._count % _ONE_IN else _ONE_IN

    def add(self, version: tuple[int, int], expected: float) -> None:
        """Add a destination's expectation.

        Args:
            version: The epoch and version of the first constant tables that include the destination.
            expected: The expected matches, multiplied by the weight of the estimate.
        """
        if not self._versions or self._versions[-1] != version:
            self._versions.append(version)
            self._before.append(self._total)
            del self._versions[:-_STEPS], self._before[:-_STEPS]
        self._total += expected
        self._count += 1

    def remove(self) -> None:
        """Remove a destination; subtract the mean, because the expectations of single destinations are not stored."""
        if self._count:
            self._total -= self._total / self._count
            self._count -= 1

    def since(self, version: tuple[int, int]) -> float:
        """Return the expected matches of destinations admitted after a version."""
        first = bisect_right(self._versions, version)
        return max(0.0, self._total - self._before[first]) if first < len(self._before) else 0.0


class BatchTimes:
    """Expected µs that the groups of a stream take in each micro-batch, even if the micro-batch has few events."""

    def __init__(self) -> None:
        self._streams: dict[StreamId, dict[GroupId, float]] = {}
        self._totals: dict[StreamId, tuple[object, float]] = {}
        """Stream → the statistics from which the sum was last computed, and the sum including groups added later."""

    def expected(
        self, stream_id: StreamId, known: object, live: Mapping[GroupId, int], micros: Callable[[GroupId], float | None]
    ) -> float:
        """Return the sum over the live groups of a stream.

        Args:
            stream_id: The stream.
            known: The present statistics of the stream. If they are another object than at the last call, the sum is
                computed again.
            live: The stream's groups.
            micros: Returns the µs of a group that `add` never counted; None if unknown.
        """
        at, total = self._totals.get(stream_id, (None, 0.0))
        if at is not known:
            before = self._streams.get(stream_id, {})
            found = {group: before[group] if group in before else micros(group) for group in live}
            counted = self._streams[stream_id] = {group: own for group, own in found.items() if own is not None}
            total = sum(counted.values())
            self._totals[stream_id] = known, total
        return total

    def add(self, stream_id: StreamId, group_id: GroupId, micros: float) -> None:
        """Count a new group of a stream; `expected` must have been called for this stream."""
        counted, (known, total) = self._streams[stream_id], self._totals[stream_id]
        if group_id not in counted:
            counted[group_id] = micros
            self._totals[stream_id] = known, total + micros

    def forget(self, stream_id: StreamId) -> None:
        """Forget a dropped stream."""
        self._streams.pop(stream_id, None)
        self._totals.pop(stream_id, None)
