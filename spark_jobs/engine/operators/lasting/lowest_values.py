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
    """Earlier rows: the last row of each key of a list of keys, or the key's previous row for each row of a batch."""

    offset: Ints
    """The offset of the earlier row; -1 if there is none, or if the row is no match for any constants."""
    time: Ints
    value: Ints


class Waits(NamedTuple):
    """Rises and exits whose lowest value the rows of a batch may lower. Each array has an element for each of them."""

    first: Ints
    """The first row of the batch that may follow the rise or exit."""
    key: Ints
    """The index of the key in the batch."""
    until: Ints
    """The end of the interval: a row follows only if the row's event time is at most `until`."""
    least: Ints
    """The lowest value before the batch."""
    floor: Ints
    """The value above which the lowest value must stay; for a rise, the value of the key's previous row."""
    is_bounded: NDArray[np.bool_]
    """Whether the rise or exit is removed once `least` is not above `floor`; otherwise `floor` has no effect."""

    @classmethod
    def joined(cls, parts: Sequence[Waits]) -> Waits:
        """Return all parts as one."""
        return cls(*(np.concatenate(fields) for fields in zip(*parts, strict=True)))


class Lowest(NamedTuple):
    """The rises and exits of `Waits` after a batch."""

    least: Ints
    """The lowest value so far: the lower of `Waits.least` and the lowest value of the matches that followed."""
    stays: NDArray[np.bool_]
    """Whether all rows that followed were matches and, if the rise is bounded, `least` is above its floor."""


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
    """Whether the key's previous row is too old: then the key's stays end without exits."""

    @cached_property
    def begins(self) -> Ints:
        """The first row of each key."""
        return np.flatnonzero(np.diff(self.key, prepend=-1))

    @cached_property
    def ends(self) -> Ints:
        """For each key, the index after its last row."""
        return np.append(self.begins[1:], self.key.size)

    def lows(self, first: Ints, key: Ints) -> tuple[Ints, Ints]:
        """Return the lowest value of the matches from each first row to the last row of its key.

        Args:
            first: The first rows.
            key: The index of each first row's key.

        Returns:
            The lowest values, and for each first row a number: 1 if all rows from this row on are matches and none is
            renewed, else 0.
        """
        end = self.ends[key]
        breaks = np.concatenate([[0], np.cumsum(~self.is_match | self.is_renewed)])
        return self._run_minima(first, end), (breaks[end] == breaks[first]).astype(np.int64)

    def lowest(self, waits: Waits) -> Lowest:
        """Return the lowest value of each rise and exit after the rows of the batch.

        A row follows a rise if the row has the same key, comes later, and its event time is at most the rise's `until`.
        So all rows of the key up to its first row with an event time after `until` follow the rise: these rows are a
        run. Rows after the run follow only if they come out of order, and before the watermark passes `until`.
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
        width = 1  # for each row, `level` has the lowest value of the `width` rows that begin with this row
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
    """For each key of the batch, its last row before the batch."""
    before: LastMatches
    """For each row, the previous row of the same key; the offset is -1 also if the previous row is too old."""
