"""The work units (`grouping.store.work_units`) of a task, and which of them are evaluated apart."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from grouping.store.work_units import SLOW
from spark_jobs.engine.isolation.hang_guard import HangGuard

__all__ = ["Division", "UnitSelection"]

_LOTS = 32
"""The number of lots into which suspects are divided.

Each lot is marked before its evaluation. If the worker dies, only the units of the marked lot are suspects in the next
try of the batch.
"""


class Division(NamedTuple):
    """Work units, by how they are evaluated."""

    together: list[str]
    apart: list[list[str]]
    """The lots of units; each lot is evaluated by itself, before the units that are evaluated together."""
    left_out: list[str]


class UnitSelection:
    """Which work units a task evaluates together, apart, or not at all."""

    def __init__(
        self,
        left_out: Mapping[str, str] | None = None,
        watched: Collection[str] = (),
        suspects: Collection[str] | None = None,
        mark: Callable[[Sequence[str]], None] | None = None,
        guard: HangGuard | None = None,
        quarantine: Callable[[Sequence[str]], None] = lambda units: None,
    ) -> None:
        """Begin a task.

        Args:
            left_out: Quarantined units, with the reason.
            watched: Units that were quarantined before, and are tried again.
            suspects: Units that may have killed a worker during this batch; if empty, all units are suspects. None if
                no worker died.
            mark: Notes which units are evaluated now, for the case that the worker dies.
            guard: Ends a worker that hangs.
            quarantine: Notes that units are quarantined because they were too slow.
        """
        self.left_out = dict(left_out or {})
        """Quarantined units, with the reason."""
        self._watched = watched
        self._suspects = suspects
        self._mark = mark
        self._guard = guard
        self._quarantine = quarantine
        self.marked: Sequence[str] = ()
        """The units that are marked now."""

    def concerns(self, failed: Collection[str]) -> bool:
        """Tell whether any unit is left out, or evaluated apart.

        Args:
            failed: Units that have raised an error in this worker.
        """
        return bool(failed or self.left_out or self._watched) or self._suspects is not None

    def divide(self, units: Sequence[str], failed: Collection[str]) -> Division:
        """Divide units by how they are evaluated; `failed` are the units that have raised an error in this worker."""
        left_out = [unit for unit in units if unit in self.left_out]
        tried = [unit for unit in units if unit not in self.left_out] if left_out else units
        separate = [unit for unit in tried if unit in failed or unit in self._watched or self._suspected(unit)]
        chosen = set(separate)
        together = [unit for unit in tried if unit not in chosen]
        size = -(-len(separate) // _LOTS) or 1
        apart = [separate[start : start + size] for start in range(0, len(separate), size)]
        return Division(together, apart, left_out)

    def quarantine(self, units: Sequence[str]) -> None:
        """Leave units out from now on, because they were too slow."""
        self.left_out |= dict.fromkeys(units, SLOW)
        self._quarantine(units)

    def begin_step(self, units: Sequence[str]) -> None:
        """Begin a step of the evaluation, and mark units.

        Args:
            units: The units that the step evaluates, if they are suspected; otherwise empty.
        """
        if self._guard is not None:
            self._guard.begin_step(suspected=bool(units))
        self.mark(units)

    def mark(self, units: Sequence[str]) -> None:
        """Mark units; the units that were marked before are no longer marked."""
        if self._mark is not None and units != self.marked:
            self._mark(units)
            self.marked = units

    def _suspected(self, unit: str) -> bool:
        return self._suspects is not None and (not self._suspects or unit in self._suspects)
