"""Expected matches of the destinations that were admitted since workers last told their statistics."""

from __future__ import annotations

from bisect import bisect_right

__all__ = ["Expectations"]

_STEPS = 256
"""Versions of the constant tables for which it is known what was admitted before."""
_ALL_OF = 1_000
_ONE_IN = 16
"""Of the first destinations each is estimated, of the others one in so many: estimates take 20 µs."""


class Expectations:
    """A sum over destinations, by the version of the constant tables that they came with."""

    def __init__(self) -> None:
        self._total = 0.0
        self._count = 0
        self._versions: list[tuple[int, int]] = []
        self._before: list[float] = []

    def weight(self) -> int:
        """Return for how many the next one's expectation stands: of many only some are looked at, 0 for the others."""
        if self._count < _ALL_OF:
            return 1
        return 0 if self._count % _ONE_IN else _ONE_IN

    def add(self, version: tuple[int, int], expected: float) -> None:
        """Count one destination; a version is its epoch and number."""
        if not self._versions or self._versions[-1] != version:
            self._versions.append(version)
            self._before.append(self._total)
            del self._versions[:-_STEPS], self._before[:-_STEPS]
        self._total += expected
        self._count += 1

    def remove(self) -> None:
        """Let one go; which one is not known, so that it takes its share of the sum."""
        if self._count:
            self._total -= self._total / self._count
            self._count -= 1

    def since(self, version: tuple[int, int]) -> float:
        """Return what was admitted after a version."""
        first = bisect_right(self._versions, version)
        return max(0.0, self._total - self._before[first]) if first < len(self._before) else 0.0
