"""The panes of matches. A pane of a store is the time between two neighbouring bounds of the store's readers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from spark_jobs.engine.index import Ints

__all__ = ["Panes", "lengthened"]

_NEVER = np.iinfo(np.int64).min
_RowPlaces = NDArray[np.intp]
_Number = TypeVar("_Number", bound=np.generic)


class Panes:
    """The panes of stores of aggregates."""

    def __init__(self, bounds: Mapping[int, bytes]) -> None:
        """Take the bounds (`grouping.model.panes`) of stores, by their numbers."""
        self._bounds = bounds
        self._sets: dict[bytes, int] = {}
        """The distinct packed bounds of the stores so far, each with a number from 0."""
        self._set_of = np.zeros(0, np.int32)
        """Number of a store → 1 + the number of its bounds in `_sets`; 0 for a store that has had no match yet."""

    def begins(self, stores: NDArray[np.int32], times: Ints) -> Ints:
        """Return the time at which the pane of each match begins, in epoch milliseconds.

        Args:
            stores: The number of each match's store.
            times: The time of each match's event, in epoch milliseconds.
        """
        if not stores.size:
            return times
        own = self._own(stores)
        sets = [_unpacked(packed) for packed in self._sets]
        owners = np.repeat(np.arange(len(sets)), [each.shape[1] for each in sets])
        periods, phases = np.concatenate(sets, axis=1)
        begins = np.full(times.size, _NEVER)
        for period in np.unique(periods).tolist():
            chosen = periods == period
            owner, phase = owners[chosen], phases[chosen]
            first, end = (np.searchsorted(owner, np.arange(len(sets)), side) for side in ("left", "right"))
            matches = np.flatnonzero((end > first)[own])
            of, at_ms = own[matches], times[matches]
            if period:
                found = _before(owner, phase, period, of, at_ms % period)
                earlier = found < first[of]  # the pane begins in the preceding period
                begin = at_ms - at_ms % period + np.where(earlier, phase[end[of] - 1] - period, phase[found])
            else:
                found = _before(owner, phase, int(phase.max()) + 1, of, np.clip(at_ms, -1, phase.max()))
                begin = np.where(found < first[of], _NEVER, phase[found])
            begins[matches] = np.maximum(begins[matches], begin)
        return begins

    def _own(self, stores: NDArray[np.int32]) -> Ints:
        """Return for each match the number of its store's bounds."""
        self._set_of = lengthened(self._set_of, int(stores.max()) + 1)
        own = self._set_of[stores]
        for store in np.unique(stores[own == 0]).tolist():
            self._set_of[store] = self._sets.setdefault(self._bounds[store], len(self._sets)) + 1
        return self._set_of[stores].astype(np.int64) - 1


def _before(owner: Ints, phase: Ints, span: int, of: Ints, at: Ints) -> _RowPlaces:
    """Return for each look-up the place of the owner's last phase that is at most `at`.

    If the owner has no such phase, the place is the one before the owner's first phase.

    Args:
        owner: The owner of each phase; ascending.
        phase: The phases; ascending for each owner, and less than `span`.
        span: A number above all phases.
        of: The owner of each look-up.
        at: The number of each look-up; at least -1 and less than `span`.
    """
    return np.searchsorted(owner * (span + 1) + phase, of * (span + 1) + at, side="right") - 1


def lengthened(values: NDArray[_Number], count: int) -> NDArray[_Number]:
    """Return an array lengthened to at least `count` values; new values are 0.

    A lengthened array is at least 1.5 times as long as before, so that lengthening is rare. New values take no memory
    until they are written.
    """
    if count <= values.size:
        return values
    longer = np.zeros(max(count, values.size * 3 // 2), values.dtype)
    longer[: values.size] = values
    return longer


@lru_cache(maxsize=20_000)
def _unpacked(packed: bytes) -> Ints:
    """Return the periods and the phases of packed bounds as two rows."""
    return np.ascontiguousarray(np.frombuffer(packed, np.int64).reshape(-1, 2).T)
