"""Runs a step of the evaluation so that a fault in one work unit does not affect the other units.

All units are evaluated together, so the guard costs the same for any number of units. If the evaluation raises an
error, each half of the units is tried, and so on, until the unit at fault is found. This unit is left out: its events
become dead letters, and from then on the worker evaluates the unit apart. A unit that takes more CPU time than its
budget is stopped midway and quarantined. Quarantined units are not evaluated. Units that may have killed a worker
(*suspects*) are evaluated apart, in lots; each lot is marked before its evaluation (`unit_selection`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain

from grouping.store.work_units import SLOW, parts_of
from spark_jobs.engine.isolation.not_evaluated import NotEvaluatedLetters
from spark_jobs.engine.isolation.step import AnyStep, PlainStep, Records, SharedStep, Step, Units
from spark_jobs.engine.isolation.unit_selection import UnitSelection
from spark_jobs.engine.rows.cpu_budget import CpuBudget, CpuExceeded, StoppedEvaluation, charged
from spark_jobs.engine.rows.faults import FAULTS, halved

__all__ = ["UnitGuard"]

log = logging.getLogger(__name__)


class UnitGuard:
    """Runs the steps of one task."""

    def __init__(
        self, selection: UnitSelection, letters: NotEvaluatedLetters, failed: set[str], budget: CpuBudget
    ) -> None:
        """Begin a task.

        Args:
            selection: The units to evaluate, and which of them apart.
            letters: Makes dead letters.
            failed: Units that have raised an error in this worker; the guard adds further units.
            budget: The CPU time of each unit.
        """
        self.selection = selection
        self.not_evaluated = letters
        self.failed = failed
        self._budget = budget
        self._steps: list[Step] = []
        """The steps under way, inner steps after outer steps."""

    @contextmanager
    def batch(self, events: int) -> Iterator[None]:
        """Evaluate a batch of some events within the block."""
        with self._budget.batch(events):
            yield

    def add(self, events: int) -> None:
        """Add the CPU time for further events to the batch, when its events have made further rows."""
        self._budget.add(events)

    def run(self, step: AnyStep) -> Records:
        """Yield the records of a step, and the dead letters of units that are left out.

        Suspects are evaluated first, so that no other unit can be the cause of a death during their evaluation.
        """
        if isinstance(step, PlainStep):
            yield from step.work()
        elif isinstance(step, SharedStep):
            yield from self._shared(step)
        else:
            self._steps.append(step)
            try:
                yield from self._run(step)
            finally:
                self._steps.remove(step)

    def _shared(self, step: SharedStep) -> Records:
        """Run a step that does the same work for all of its units. If one is suspected, all are marked."""
        selection, units = self.selection, step.shared_by()
        marks: Units = ()
        if selection.concerns(self.failed):
            together, apart, left_out = selection.divide(units, self.failed)
            if not together and not apart:
                for unit in left_out:
                    yield from step.rest(self.not_evaluated, unit, selection.left_out[unit])
                return
            marks = [*together, *chain.from_iterable(apart)] if apart else ()
        while not step.ended:
            selection.begin_step(marks)
            try:
                with charged(step.account, lambda: units):
                    piece = step.piece()
            except CpuExceeded:
                reason = SLOW
                selection.quarantine(units)
            except FAULTS as fault:
                reason = f"its {step.kind} failed with {type(fault).__name__}"
                for unit in units:
                    self.report(unit)
                    self.failed.add(unit)
            else:
                yield from step.passed(piece)
                continue
            for unit in units:
                yield from step.rest(self.not_evaluated, unit, reason)
            break
        selection.mark(())  # otherwise the marks would stay: the guard of the task's next partition does not know them

    def _run(self, step: Step) -> Records:
        selection = self.selection
        if not selection.concerns(self.failed):
            yield from self._tried(step, None)
            return
        together, apart, left_out = selection.divide(step.units(), self.failed)
        for lot in apart:
            selection.begin_step(lot)
            yield from self._tried(step, lot)
        selection.begin_step(())
        if together:
            yield from self._tried(step, together if apart or left_out else None)
        for unit in left_out:
            yield from step.letters(self.not_evaluated, unit, selection.left_out[unit], safely=True)

    def _tried(self, step: Step, units: Units | None) -> Records:
        def failed(unit: str, reason: str) -> Records:
            self.failed.add(unit)
            yield from step.letters(self.not_evaluated, unit, reason, safely=False)

        waiting = [units]
        while waiting:
            some = waiting.pop()
            try:
                yield from halved(some, step.units, step.records, self.report, failed)
                continue
            except CpuExceeded:
                stopped = self._budget.stopped
                suspects, others = _parted(step.units() if some is None else some, stopped)
                if not suspects:
                    raise  # no unit of this step is at fault
            # This code is after the handler, because within it the exception keeps the stopped evaluation's memory.
            self._budget.again()
            waiting += _halves(others)
            if stopped.alike or len(suspects) == 1:
                self.selection.quarantine(suspects)
                for unit in suspects:
                    log.error("quarantined, it took too much CPU time", extra={"unit": unit})
                    yield from step.letters(self.not_evaluated, unit, SLOW, safely=True)
            else:
                for half in _halves(suspects):
                    self._budget.narrow(stopped.suspects.intersection(chain.from_iterable(map(parts_of, half))))
                    waiting.append(half)

    def report(self, unit: str) -> None:
        """Log the exception that is being handled; only once for each unit, since it occurs again with every batch."""
        if unit not in self.failed:
            log.exception("not evaluated", extra={"unit": unit})

    def quarantine_stopped(self, stopped: StoppedEvaluation, quarantine: Callable[[Units], None]) -> None:
        """Quarantine the units of an evaluation that does not return. Another thread may call this method.

        Units that all run the same evaluation are quarantined together. If it is unknown which of several units are
        slow, no unit is quarantined: all of them are marked, and become suspects when the worker dies.

        Args:
            stopped: The evaluation.
            quarantine: Writes quarantines.
        """
        suspects: Units = sorted(stopped.suspects)  # groups, if the evaluation belongs to a join
        for step in reversed(self._steps):
            known = [unit for unit in step.units() if not stopped.suspects.isdisjoint(parts_of(unit))]
            if known:
                suspects = known
                break
        if stopped.alike or len(suspects) == 1:
            quarantine(suspects)
        else:
            self.selection.mark(suspects)


def _parted(units: Units, stopped: StoppedEvaluation) -> tuple[list[str], list[str]]:
    """Return the units that `stopped` names, and the other units. If it names none, the first list has all units."""
    suspects = [unit for unit in units if not stopped.suspects.isdisjoint(parts_of(unit))]
    found = set(suspects)
    return suspects or [*units], [unit for unit in units if unit not in found] if suspects else []


def _halves(units: Units) -> list[Units]:
    return [half for half in (units[: len(units) // 2], units[len(units) // 2 :]) if half]
