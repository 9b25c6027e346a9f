"""The rows of a batch by key, and for each rise the lowest value of the rows that follow within its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spark_jobs.engine.index import Ints, Ranges

__all__ = ["BatchRows", "KeyedValues", "LastMatches", "Lowest", "Waits"]

_PAIRS = 1_000_000
"""The largest number of pairs of a rise and a row that are in memory at once."""
_HIGHEST = np.iinfo(np.int64).max


class LastMatches(NamedTuple):
    """The last row of each of some keys, or the row before each of some rows."""

    offset: Ints
    """-1 where the row was no match for any constants."""
    time: Ints
    value: Ints


class Waits(NamedTuple):
    """Rises and exits that wait for rows of a batch."""

    first: Ints
    """By rise, the first row of the batch that may follow the rise."""
    key: Ints
    """By rise, the index of its key in the batch."""
    until: Ints
    """By rise, the end of its interval: the largest event time of a row that follows the rise."""
    least: Ints
    """By rise, the lowest value before the batch."""
    floor: Ints
    """By rise, the value of the row before it."""
    is_bounded: NDArray[np.bool_]
    """By rise, whether it ends when its lowest value is not above its floor."""

    @classmethod
    def joined(cls, parts: Sequence[Waits]) -> Waits:
        """Return all parts as one."""
        return cls(*(np.concatenate(fields) for fields in zip(*parts, strict=True)))


class Lowest(NamedTuple):
    """The rises after a batch."""

    least: Ints
    """By rise, the lowest value of all rows that count."""
    stays: NDArray[np.bool_]
    """Whether all rows that count were matches. If the rise is bounded, the lowest value is above the floor, too."""


@dataclass(frozen=True)
class KeyedValues:
    """The rows of a batch ordered by key, then by arrival, without late rows."""

    key: Ints
    """By row, the index of its key; ascending."""
    times: Ints
    after: Ints
    """The watermark after the row."""
    values: Ints
    is_match: NDArray[np.bool_]
    is_renewed: NDArray[np.bool_]
    """Whether the row before is too old: then the stays so far are over, without exits."""

    @cached_property
    def begins(self) -> Ints:
        """By key, its first row."""
        return np.flatnonzero(np.diff(self.key, prepend=-1))

    @cached_property
    def ends(self) -> Ints:
        """By key, the row behind its last row."""
        return np.append(self.begins[1:], self.key.size)

    def lows(self, first: Ints, key: Ints) -> tuple[Ints, Ints]:
        """Return by key the lowest value from a row on, and 1 if all of these rows are matches and none is renewed."""
        end = self.ends[key]
        breaks = np.concatenate([[0], np.cumsum(~self.is_match | self.is_renewed)])
        return self._run_minima(first, end), (breaks[end] == breaks[first]).astype(np.int64)

    def lowest(self, waits: Waits) -> Lowest:
        """Return the lowest value of each rise and of the rows that follow it.

        A row follows a rise if it comes later and its event time is at most `until`. All rows of the key follow up to
        the first row with a later time: they are a run. After the run, only rows that come out of order can follow, and
        only until the watermark passes `until`.
        """
        count = self.times.size
        _, ranks = np.unique(np.concatenate([self.times, self.after, waits.until]), return_inverse=True)
        own, passed, limit = np.split(ranks.reshape(-1), [count, 2 * count])
        stride = ranks.size + 1
        own, passed, limit = own + self.key * stride, passed + self.key * stride, limit + waits.key * stride
        latest = np.maximum.accumulate(own)
        run_end = np.maximum(waits.first, np.searchsorted(latest, limit, side="right"))
        breaks = np.concatenate([[0], np.cumsum(~self.is_match)])
        stays = breaks[run_end] == breaks[waits.first]
        least = np.minimum(waits.least, self._run_minima(waits.first, run_end))
        stays &= ~waits.is_bounded | (least > waits.floor)
        disordered = np.flatnonzero(own < latest)
        if disordered.size:
            end = np.searchsorted(passed, limit, side="right")
            some = np.flatnonzero(stays)
            runs = Ranges(
                disordered.astype(np.int32),
                np.searchsorted(disordered, run_end[some]),
                np.searchsorted(disordered, end[some]),
            )
            for rise, row in runs.pairs(_PAIRS):
                follows = self.times[row] <= waits.until[some[rise]]
                rises, rows = some[rise[follows]], row[follows]
                np.minimum.at(least, rises, np.where(self.is_match[rows], self.values[rows], _HIGHEST))
                stays[rises[~self.is_match[rows]]] = False
            stays &= ~waits.is_bounded | (least > waits.floor)
        return Lowest(least, stays)

    def _run_minima(self, first: Ints, end: Ints) -> Ints:
        """Return the lowest value of the matches in each run [first, end); `_HIGHEST` for a run without matches."""
        found = np.full(first.size, _HIGHEST)
        lengths = end - first
        level = np.where(self.is_match, self.values, _HIGHEST)
        width = 1  # `level` has the lowest value of the `width` rows from each row on
        while (some := np.flatnonzero(lengths >= width)).size:
            exact = some[lengths[some] < 2 * width]
            found[exact] = np.minimum(level[first[exact]], level[end[exact] - width])
            level = np.minimum(level[:-width], level[width:])
            width *= 2
        return found


class BatchRows(NamedTuple):
    """The rows of a batch that are not left out, ordered by key, then by arrival."""

    places: Ints
    """The place of each row in the batch."""
    offsets: Ints
    numbers: Ints
    """The number of each distinct key."""
    values: KeyedValues
    last: LastMatches
    """By key of the batch, its last row before the batch."""
    before: LastMatches
    """By row, the row before; without an offset where that row is too old to count."""
