"""The rows with which stays end.

A row matches a constant if its value is above the constant (``temp > 90``). So a key is in for all constants below the
lowest value since it entered, and one stay stands for all these constants. A row with a new lowest value ends the stay
for the constants between the old and the new lowest value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spark_jobs.engine.index import Ints
from spark_jobs.engine.operators.lasting.lowest_values import KeyedValues

__all__ = ["Falls", "OpenStays"]

_BREAK = 0
"""The rank of a row that ends all stays, below the ranks of all values."""


class Falls(NamedTuple):
    """Pairs of a stay and a row with which the stay ends for some constants."""

    stay: Ints
    row: Ints
    high: Ints
    """The lowest value before the row: the stay ends for the constants from the row's value to below `high`."""


class OpenStays(NamedTuple):
    """Stays that began before a batch or with a row of it. The key is in for the constants in [floor, high)."""

    first: Ints
    """The first row of the batch that may end the stay."""
    key: Ints
    """The index of the stay's key in the batch."""
    floor: Ints
    is_floored: NDArray[np.bool_]
    """Whether `floor` is a bound; otherwise the key is in for all constants below `high`."""
    high: Ints
    begin: Ints
    """The offset of the row with which the stay began. The stay is only for entries that begin at or before this
    offset."""
    after: Ints
    """The stay is only for entries that begin after this offset; -1 for no such bound."""
    until: Ints
    """The event time at which the interval of FOR ends; `NO_TIME` if the interval has ended."""

    @classmethod
    def joined(cls, parts: list[OpenStays]) -> tuple[OpenStays, Ints]:
        """Return the stays that go on for at least one constant, and each stay's index in the joined parts."""
        fields: Iterator[Any] = (np.concatenate(each) for each in zip(*parts, strict=True))
        found = cls(*fields)
        places = np.flatnonzero(~found.is_floored | (found.high > found.floor))
        return found.taken(places), places

    def taken(self, places: Ints) -> OpenStays:
        """Return some of the stays."""
        fields: Iterator[Any] = (field[places] for field in self)
        return OpenStays(*fields)

    def falls(self, rows: KeyedValues) -> Falls:
        """Return the pairs of a stay and a row with which the stay ends for some constants."""
        distinct, ranks = np.unique(np.concatenate([rows.values, self.high, self.floor]), return_inverse=True)
        own, high, floor = np.split(ranks.reshape(-1) + 1, [rows.values.size, rows.values.size + self.high.size])
        own = np.where(rows.is_match & ~rows.is_renewed, own, _BREAK)
        floor = np.where(self.is_floored, floor, _BREAK)
        search = _LowerValues(own)
        following = search.first_below(np.arange(own.size) + 1, rows.ends[rows.key], own)
        stay = np.arange(self.high.size)
        row = search.first_below(self.first, rows.ends[self.key], high)
        found = [np.empty((3, 0), np.int64)]
        while (some := np.flatnonzero(row < rows.ends[self.key[stay]])).size:
            stay, row, high = stay[some], row[some], high[some]
            found.append(np.stack([stay, row, distinct[high - 1]]))
            high = own[row]
            left = np.flatnonzero(high > floor[stay])
            stay, row, high = stay[left], following[row[left]], high[left]
        return Falls(*np.concatenate(found, axis=1))


class _LowerValues:
    """Finds the first value below a bound in any run of values."""

    def __init__(self, values: Ints) -> None:
        self._levels = [values]  # level n has, for each place, the lowest of the 2 ** n values that begin there
        while self._levels[-1].size > (width := 1 << (len(self._levels) - 1)):
            level = self._levels[-1]
            self._levels.append(np.minimum(level[:-width], level[width:]))

    def first_below(self, first: Ints, end: Ints, bound: Ints) -> Ints:
        """Return for each run [first, end) the place of the first value below the bound, or `end`."""
        place = first.copy()
        for number in range(len(self._levels) - 1, -1, -1):
            level, width = self._levels[number], 1 << number
            fits = np.flatnonzero(place + width <= end)
            passed = fits[level[place[fits]] >= bound[fits]]
            place[passed] += width
        return place
