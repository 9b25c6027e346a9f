"""The stage that splits matches: a match becomes a record, waits for a tick, or is counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from spark_jobs.engine.isolation.not_evaluated import NotEvaluatedLetters
from spark_jobs.engine.isolation.step import AnyStep, Records, Units
from spark_jobs.engine.results.pending import pending_records
from spark_jobs.engine.results.split import split
from spark_jobs.engine.results.updates import without_unchanged
from spark_jobs.engine.rows.arrays import distinct_values
from spark_jobs.engine.stages.task import Found, Task, Then

__all__ = ["OutputStep", "output"]


def output(task: Task, found: Found, then: Then) -> Iterator[AnyStep]:
    """Make the records of matches."""
    yield OutputStep(task, found)


@dataclass(frozen=True, slots=True)
class OutputStep:
    """Makes the records of some matches, and takes in the matches that are counted."""

    task: Task
    found: Found

    def units(self) -> list[str]:
        """List the SELECT lists of the matches."""
        return self.found.matches.units

    def records(self, units: Units | None) -> Records:
        """Yield the records of some SELECT lists, None for all."""
        task, (rows, found) = self.task, self.found
        if units is not None:
            found = found.only(units)
        found = without_unchanged(rows, found, task.evaluate)
        task.observer.found(rows, found)
        for results in split(rows, found, task.stream, task.settings, task.evaluate):
            task.observer.written(results)
            yield results
        yield from pending_records(rows, found, task.stream, task.version, task.settings, task.evaluate)
        task.observer.finished(rows, found)
        task.counting.take(rows, found)

    def letters(self, letters: NotEvaluatedLetters, unit: str, reason: str, *, safely: bool) -> Records:
        """Yield the dead letters of a SELECT list for the rows with matches."""
        rows = distinct_values(self.found.matches.only([unit]).event).astype(np.int64)
        yield from letters(self.found.rows, rows, unit, reason)
