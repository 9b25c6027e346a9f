"""The evaluation of a task's events, stage by stage, each under the guard of `UnitGuard`.

Every stage evaluates expressions of queries: joins, look-ups with their residuals, SELECT lists, and the keys and
arguments of aggregates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np

from grouping.model.computation import Computation
from grouping.store.work_units import SLOW
from spark_jobs.engine.constants.constant_cache import Snapshot
from spark_jobs.engine.constants.load import Loads
from spark_jobs.engine.index import Ints
from spark_jobs.engine.isolation.not_evaluated import NotEvaluatedLetters
from spark_jobs.engine.isolation.unit_guard import Records, Stage, UnitGuard, Units
from spark_jobs.engine.isolation.unit_selection import UnitSelection
from spark_jobs.engine.match.evaluate import candidates, matches
from spark_jobs.engine.rows.cpu_budget import CpuExceeded, charged
from spark_jobs.engine.rows.event_column import VALUE_BYTES
from spark_jobs.engine.rows.events import Events
from spark_jobs.engine.rows.faults import FAULTS
from spark_jobs.engine.rows.matches import Matches
from spark_jobs.engine.rows.row_source import RowSource

__all__ = ["Isolation", "Join", "Write"]

Write = Callable[[RowSource, Matches], Records]
"""Makes the records of matches."""
Join = Callable[[Events, Computation], Iterator[tuple[int, RowSource | None]]]
"""Makes the rows of a computation over events, in slices, each with the number of events done after it.

None stands for the rows of an event that makes too many.
"""


class Isolation:
    """Evaluates the events of one task."""

    def __init__(
        self,
        guard: UnitGuard,
        snapshot: Snapshot,
        write: Write,
        loads: Loads,
        value_bytes: int = VALUE_BYTES,
        join: Join | None = None,
        counting: Callable[[], Stage | None] = lambda: None,
    ) -> None:
        """Begin a task.

        Args:
            guard: Runs the stages.
            snapshot: The constant tables.
            write: Makes the records of matches.
            loads: Where to count what each table costs.
            value_bytes: Longest text that an expression computes.
            join: Makes the rows of a computation; None where no group is over one.
            counting: Returns the stage that counts the matches written since the last call, if any are to be counted.
        """
        self._guard = guard
        self._alone = snapshot.over("")
        self._over = [(each, snapshot.over(each.computation_id)) for each in snapshot.computations]
        self._join = join
        self._counting = counting
        self._write = write
        self._loads = loads
        self._value_bytes = value_bytes

    def records(self, events: Events) -> Records:
        """Yield the records of some events."""
        with self._guard.batch(events.count):
            yield from self._evaluated(self._alone, events)
            for computation, snapshot in self._over:
                yield from self._joined(computation, snapshot, events)

    def _evaluated(self, snapshot: Snapshot, rows: RowSource) -> Records:
        guard = self._guard
        yield from guard.run(_Lookup(snapshot, rows, self._loads, self._value_bytes, self._written, guard.selection))
        if (counting := self._counting()) is not None:
            yield from guard.run(counting)

    def _written(self, events: RowSource, found: Matches) -> Records:
        yield from self._guard.run(_Output(events, found, self._write))

    def _joined(self, computation: Computation, snapshot: Snapshot, events: Events) -> Records:
        """Yield the records of the groups over a join; a join that fails leaves these groups out.

        They are marked together while the join is made, as it is made for all of them.
        """
        assert self._join is not None, "groups over computations come with what makes these"
        guard, selection = self._guard, self._guard.selection
        marks: Units = ()
        if selection.concerns(guard.failed):
            together, apart, left_out = selection.divide(snapshot.groups, guard.failed)
            if not together and not apart:
                for unit in left_out:
                    yield from self._letters(events, 0, unit, selection.left_out[unit])
                return
            marks = [*together, *chain.from_iterable(apart)] if apart else ()
        slices, done = self._join(events, computation), 0
        while done < events.count:
            selection.begin_step(marks)
            try:
                with charged(computation.computation_id, lambda: snapshot.groups):
                    done, rows = next(slices)
            except CpuExceeded:
                selection.quarantine(snapshot.groups)
                for unit in snapshot.groups:
                    yield from self._letters(events, done, unit, SLOW)
                return
            except FAULTS as fault:
                reason = f"its join failed with {type(fault).__name__}"
                for unit in snapshot.groups:
                    guard.report(unit)
                    guard.failed.add(unit)
                    yield from self._letters(events, done, unit, reason)
                return
            if rows is None:
                yield guard.not_evaluated.too_many_rows(events, done - 1, computation)
            elif rows.count:
                yield from self._evaluated(snapshot, rows)

    def _letters(self, events: Events, done: int, unit: str, reason: str) -> Records:
        yield from self._guard.not_evaluated(events, np.arange(done, events.count), unit, reason)


@dataclass(frozen=True, slots=True)
class _Lookup:
    """The look-up of groups, with their residuals."""

    snapshot: Snapshot
    events: RowSource
    loads: Loads
    value_bytes: int
    written: Write
    selection: UnitSelection

    def units(self) -> list[str]:
        return [*self.snapshot.groups]

    def records(self, units: Units | None) -> Records:
        snapshot = self.snapshot if units is None else self.snapshot.only(units)
        marked = self.selection.marked
        for found in matches(snapshot, self.events, loads=self.loads, value_bytes=self.value_bytes):
            yield from self.written(self.events, found)
            self.selection.begin_step(marked)

    def letters(self, letters: NotEvaluatedLetters, unit: str, reason: str, *, safely: bool) -> Records:
        rows = np.arange(self.events.count) if safely else self._candidates(unit)
        yield from letters(self.events, rows, unit, reason)

    def _candidates(self, unit: str) -> Ints:
        try:
            return candidates(self.snapshot.only([unit]), self.events)
        except FAULTS:
            return np.arange(self.events.count)


@dataclass(frozen=True, slots=True)
class _Output:
    """The output for matches: SELECT lists of groups, encoded."""

    events: RowSource
    found: Matches
    write: Write

    def units(self) -> list[str]:
        return self.found.units

    def records(self, units: Units | None) -> Records:
        yield from self.write(self.events, self.found if units is None else self.found.only(units))

    def letters(self, letters: NotEvaluatedLetters, unit: str, reason: str, *, safely: bool) -> Records:
        rows = np.unique(self.found.only([unit]).event).astype(np.int64)
        yield from letters(self.events, rows, unit, reason)
