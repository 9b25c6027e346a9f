"""In which pane matches are: by store, between the neighbouring bounds of all who read it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from spark_jobs.index import Ints

__all__ = ["Panes"]

_NEVER = np.iinfo(np.int64).min
_Places = NDArray[np.intp]


class Panes:
    """The panes of stores of groups."""

    def __init__(self, bounds: Mapping[int, bytes]) -> None:
        """Take the bounds (`grouping.model.panes`) of stores, by their numbers."""
        self._bounds = bounds

    def begins(self, stores: NDArray[np.int32], times: Ints) -> Ints:
        """Return where the pane of each match begins, epoch milliseconds.

        Args:
            stores: By match, the number of the store.
            times: By match, the time of its event.
        """
        if not stores.size:
            return times
        distinct, which = np.unique(stores, return_inverse=True)
        known: dict[bytes, int] = {}
        set_of = np.array([known.setdefault(self._bounds[each], len(known)) for each in distinct.tolist()], np.int64)
        own = set_of[which]
        sets = [_unpacked(packed) for packed in known]
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
                earlier = found < first[of]  # its pane begins in the period before
                begin = at_ms - at_ms % period + np.where(earlier, phase[end[of] - 1] - period, phase[found])
            else:
                found = _before(owner, phase, int(phase.max()) + 1, of, np.clip(at_ms, -1, phase.max()))
                begin = np.where(found < first[of], _NEVER, phase[found])
            begins[matches] = np.maximum(begins[matches], begin)
        return begins


def _before(owner: Ints, phase: Ints, span: int, of: Ints, at: Ints) -> _Places:
    """Return the place of the owner's last phase that is not after `at`; before its first one if there is none.

    Args:
        owner: Of each phase; ascending.
        phase: Ascending for each owner, less than `span`.
        span: More than any phase.
        of: The owners that are asked for.
        at: From -1 on, less than `span`.
    """
    return np.searchsorted(owner * (span + 1) + phase, of * (span + 1) + at, side="right") - 1


@lru_cache(maxsize=20_000)
def _unpacked(packed: bytes) -> Ints:
    """Return periods and phases as two rows."""
    return np.ascontiguousarray(np.frombuffer(packed, np.int64).reshape(-1, 2).T)
