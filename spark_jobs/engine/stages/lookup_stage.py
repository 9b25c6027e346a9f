"""The stage that looks rows up in the constant tables, and checks the residuals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from spark_jobs.engine.constants.constant_cache import Snapshot
from spark_jobs.engine.index import Ints
from spark_jobs.engine.isolation.not_evaluated import NotEvaluatedLetters
from spark_jobs.engine.isolation.step import AnyStep, Records, Units
from spark_jobs.engine.match.edges import edge_candidates, edge_matches
from spark_jobs.engine.match.evaluate import candidates, matches
from spark_jobs.engine.match.lasting import lasting_matches
from spark_jobs.engine.match.silences import silent_matches
from spark_jobs.engine.rows.faults import FAULTS
from spark_jobs.engine.rows.matches import Matches
from spark_jobs.engine.rows.row_source import RowSource
from spark_jobs.engine.rows.rows_before import RowsBefore
from spark_jobs.engine.rows.silent_rows import LastingRows, SilentRows
from spark_jobs.engine.stages.task import Found, GroupRows, Task, Then

__all__ = ["matched"]


def matched(task: Task, given: GroupRows, then: Then) -> Iterator[AnyStep]:
    """Look rows up; their matches are passed on in slices."""
    yield LookupStep(task, given.snapshot, given.rows, given.before, then)


@dataclass(frozen=True, slots=True)
class LookupStep:
    """The look-up of groups."""

    task: Task
    snapshot: Snapshot
    rows: RowSource
    before: RowsBefore | None
    """The previous rows of the same keys, if results are edges; else None."""
    then: Then

    def units(self) -> list[str]:
        """List the groups."""
        return [*self.snapshot.groups]

    def records(self, units: Units | None) -> Records:
        """Yield the records of the matches of some groups, None for all."""
        snapshot, selection = self.snapshot if units is None else self.snapshot.only(units), self.task.guard.selection
        marked = selection.marked
        for rows, each in self._found(snapshot):
            yield from self.then(Found(rows, each))
            selection.begin_step(marked)

    def _found(self, snapshot: Snapshot) -> Iterator[tuple[RowSource, Matches]]:
        """Yield the rows of results, and their matches, in slices."""
        rows, loads, value_bytes = self.rows, self.task.loads, self.task.settings.evaluator.value_bytes
        if self.before is not None:
            yield from edge_matches(snapshot, rows, self.before, loads=loads, value_bytes=value_bytes)
            return
        if isinstance(rows, LastingRows):
            found = lasting_matches(snapshot, rows, loads=loads, value_bytes=value_bytes)
        elif isinstance(rows, SilentRows):
            found = silent_matches(snapshot, rows, loads=loads, value_bytes=value_bytes)
        else:
            found = matches(snapshot, rows, loads=loads, value_bytes=value_bytes)
        for each in found:
            yield rows, each

    def letters(self, letters: NotEvaluatedLetters, unit: str, reason: str, *, safely: bool) -> Records:
        """Yield the dead letters of a group for the rows that its index finds; if `safely` is true, for all rows."""
        rows = np.arange(self.rows.count) if safely else self._candidates(unit)
        yield from letters(self.rows, rows, unit, reason)

    def _candidates(self, unit: str) -> Ints:
        try:
            only = self.snapshot.only([unit])
            return candidates(only, self.rows) if self.before is None else edge_candidates(only, self.rows, self.before)
        except FAULTS:
            return np.arange(self.rows.count)
