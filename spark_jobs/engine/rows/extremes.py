"""The highest and lowest values of each key's events, which decide whether the key is in for a query with UNTIL.

For a query with ``v > :a … UNTIL v < :b`` and b <= a, a key is in if its last event with ``v > :a`` is later than its
last event with ``v < :b``, and not before the query's begin. The last event with ``v > :a`` is a *peak*: an event whose
value is greater than the values of all later events. The last event with ``v < :b`` is a *low*: an event whose value is
less than the values of all later events. So only peaks and lows are kept, whatever the constants. If no peak lies
between two neighbouring lows, both give the same answer, and the later low is dropped at the next event. So a key whose
value only rises has few lows.

Values are represented by integers in the same order; for ``v < :a … UNTIL v > :b``, in the reversed order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grouping.model.expression import Column
from spark_jobs.engine.rows.arrays import Ints

__all__ = ["Extremes", "ExtremesBuilder", "extremes_name", "is_extremes", "stored_column"]

_ABOVE, _BELOW = "\x1d>", "\x1d<"
"""Prefixes of the names of columns of extremes, for keys that enter with large values and with small values.

The stored text of the column follows the prefix. No other name has a control character.
"""

_ROOT = 0
"""The node at the bottom of every chain; it has no event."""
_NO_EVENT = -1
_HIGHEST = (1 << 63) - 1


def extremes_name(column: Column, *, above: bool) -> str:
    """Return the name of the column of extremes for a column.

    Args:
        column: The column whose values decide whether keys are in.
        above: Whether keys enter with large values; otherwise with small values.
    """
    return (_ABOVE if above else _BELOW) + column.stored


def is_extremes(name: str) -> bool:
    """Tell whether a stored name belongs to a column of extremes."""
    return name.startswith((_ABOVE, _BELOW))


def stored_column(name: str) -> tuple[str, bool]:
    """Return the arguments of `extremes_name` for a name: the column's stored text, and `above`."""
    return name[len(_ABOVE) :], name.startswith(_ABOVE)


class _Chains:
    """For each key, the events whose value is greater than the values of all later events: a stack, called a chain.

    The latest event, which has the smallest value, is at the top. Each event has a link to the event below it in the
    chain, which is earlier and has a greater value. No node is ever removed. So the chains of a key before each of its
    rows share nodes, and the chains of all keys are one tree with a common root. A second link of each event leaps over
    many events, so a search in a chain takes a number of steps that is logarithmic in the chain's length.
    """

    def __init__(self) -> None:
        self.values = [0]
        self.offsets = [_NO_EVENT]
        self.below = [_ROOT]
        self._leap = [_ROOT]
        self._depth = [0]

    def put(self, below: int, value: int, offset: int) -> int:
        """Put an event on top of another event, and return the new event's node."""
        leap, depth = self._leap, self._depth
        over = leap[below]
        alike = depth[below] - depth[over] == depth[over] - depth[leap[over]]
        self.values.append(value)
        self.offsets.append(offset)
        self.below.append(below)
        leap.append(leap[over] if alike else below)
        depth.append(depth[below] + 1)
        return len(depth) - 1

    def without(self, top: int, value: int) -> int:
        """Return the topmost node whose value is greater than `value`, in the chain that begins at the node `top`."""
        values, below = self.values, self.below
        while top and values[top] <= value:
            top = below[top]
        return top

    def packed(self, top: int) -> list[int]:
        """Return a chain as numbers: its length, then its values, then its offsets, each from the bottom to the top."""
        values, offsets = [], []
        while top:
            values.append(self.values[top])
            offsets.append(self.offsets[top])
            top = self.below[top]
        return [len(values), *reversed(values), *reversed(offsets)]

    def unpacked(self, numbers: list[int]) -> tuple[int, list[int]]:
        """Put a packed chain on the root; return its top, and the numbers that follow the packed chain."""
        count, top = numbers[0], _ROOT
        for place in range(1, count + 1):
            top = self.put(top, numbers[place], numbers[place + count])
        return top, numbers[1 + 2 * count :]

    def found(self, tops: Ints, is_found: Callable[[Ints, Ints], NDArray[np.bool_]]) -> Ints:
        """Return for each of some chains the offset of the topmost node for which a condition is TRUE, or -1.

        Args:
            tops: The top of each chain.
            is_found: Takes places in `tops` and, for each place, a node of the chain there. Returns for each of these
                pairs whether the condition is TRUE. If the condition is TRUE for a node, it must also be TRUE for all
                nodes below that node.
        """
        below, leap, offsets = self._arrays
        at = tops.copy()
        active = np.flatnonzero(at != _ROOT)
        while active.size:
            active = active[~is_found(active, at[active])]
            leaps = leap[at[active]]
            near = leaps == _ROOT
            far = np.flatnonzero(~near)
            near[far] = is_found(active[far], leaps[far])
            at[active] = np.where(near, below[at[active]], leaps)
            active = active[at[active] != _ROOT]
        found: Ints = offsets[at]
        return found

    @cached_property
    def _arrays(self) -> tuple[Ints, Ints, Ints]:
        """The two links and the offset of each node, as arrays; to be read only after all events were put."""
        return np.array(self.below), np.array(self._leap), np.array(self.offsets)


class ExtremesBuilder:
    """Takes in the events of a batch, key by key."""

    def __init__(self, count: int) -> None:
        """Begin without events; `count` is the number of rows of the batch."""
        self._peaks, self._lows = _Chains(), _Chains()
        self._tops = np.zeros((2, count), np.int64)
        self._peak = self._low = _ROOT

    def begin(self, packed: bytes | None) -> None:
        """Begin with a key.

        Args:
            packed: The bytes that the method `packed` returned for the key's earlier events; None if there are none.
        """
        self._peak = self._low = _ROOT
        if packed is not None:
            self._peak, rest = self._peaks.unpacked(np.frombuffer(packed, np.int64).tolist())
            self._low, _ = self._lows.unpacked(rest)

    def add(self, row: int, value: int | None, offset: int) -> None:
        """Take in the key's next event; an event without a value changes nothing."""
        self._tops[0, row], self._tops[1, row] = self._peak, self._low
        if value is None:
            return
        peaks, lows = self._peaks, self._lows
        peak, low = peaks.without(self._peak, value), lows.without(self._low, ~value)
        latest, below, offsets = peaks.offsets[peak], lows.below, lows.offsets
        while low and latest <= offsets[below[low]]:  # no peak lies between this low and the preceding low
            low = below[low]
        self._peak, self._low = peaks.put(peak, value, offset), lows.put(low, ~value, offset)

    def latest(self, value: int) -> tuple[int, int]:
        """Return the offset of the key's last event whose value is at least `value`, and the lowest later value.

        The offset is -1 if there is no such event. The lowest value is `_HIGHEST` if no event followed.
        """
        peak, low, lows = self._peaks.without(self._peak, value - 1), self._low, self._lows
        offset, lowest = self._peaks.offsets[peak], _HIGHEST
        while lows.offsets[low] > offset:
            low, lowest = lows.below[low], ~lows.values[low]
        return offset, lowest

    def packed(self) -> bytes:
        """Return the key's events as bytes for `begin`."""
        numbers = [*self._peaks.packed(self._peak), *self._lows.packed(self._low)]
        return np.array(numbers, np.int64).tobytes()

    def finished(self, values: Callable[[Ints], pa.Array]) -> Extremes:
        """Return the extremes before each row; `values` converts integers back to values of the column."""
        lows = ~np.array(self._lows.values)
        peaks = np.array(self._peaks.values)
        return Extremes(self._peaks, self._lows, self._tops, values(peaks), values(lows))


@dataclass(frozen=True, slots=True)
class Extremes:
    """The peaks and lows of each row's key before the row."""

    _peaks: _Chains
    _lows: _Chains
    _tops: Ints
    peak_values: pa.Array
    """The value of the column at each node of the chain of peaks."""
    low_values: pa.Array
    """The value of the column at each node of the chain of lows."""

    def last_peaks(self, rows: Ints, is_found: Callable[[Ints, Ints], NDArray[np.bool_]]) -> Ints:
        """Return for each row the offset of the last earlier event that satisfies the bound of WHERE, or -1.

        Args:
            rows: The rows.
            is_found: Takes places in `rows` and, for each, a place in `peak_values`; returns whether the bound is TRUE.
        """
        return self._peaks.found(self._tops[0, rows], is_found)

    def last_lows(self, rows: Ints, is_found: Callable[[Ints, Ints], NDArray[np.bool_]]) -> Ints:
        """Return for each row the offset of the last earlier event that satisfies the bound of UNTIL, or -1.

        The result may instead be the offset of an even earlier event that satisfies the bound, if no peak lies between
        the two events: a comparison with a peak then has the same outcome. `is_found` takes places in `rows` and in
        `low_values`.
        """
        return self._lows.found(self._tops[1, rows], is_found)
