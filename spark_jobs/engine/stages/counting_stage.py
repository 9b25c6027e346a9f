"""The stage that counts the matches of queries with aggregates, and the step that writes the partial aggregates."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from grouping.model.expression import Reference
from grouping.model.ids import StreamId
from grouping.settings.settings import Settings
from grouping.store.notes import TableVersion
from spark_jobs.engine.isolation.not_evaluated import NotEvaluatedLetters
from spark_jobs.engine.isolation.step import AnyStep, Records
from spark_jobs.engine.operators.aggregate.counting import AggregateCounting, UnitMatches
from spark_jobs.engine.operators.aggregate.records import OversizeAggregate
from spark_jobs.engine.results.pending import pending_output
from spark_jobs.engine.stages.task import GroupRows, Task, Then

__all__ = ["CountingStep", "WritingStep", "counted", "counting_step"]


@dataclass(slots=True)
class CountingStep:
    """The counting of matches of one batch: keys, arguments and FILTERs of aggregates are evaluated."""

    counting: AggregateCounting
    taken: dict[str, UnitMatches]
    """By work unit, the matches that are not counted yet. A counted unit is removed, so that it is not counted again
    after another unit has failed."""
    columns: dict[Reference, pl.Series] = field(default_factory=dict)

    def units(self) -> list[str]:
        """List the units that are not counted yet."""
        return [*self.taken]

    def records(self, units: Collection[str] | None) -> Records:
        """Count the matches of some units, or of all for None; yield dead letters for matches that are too large."""
        for unit in self.units() if units is None else units:
            if (matches := self.taken.get(unit)) is not None:
                letters = [*self.counting.count(matches, self.columns)]
                del self.taken[unit]
                yield from letters

    def letters(self, letters: NotEvaluatedLetters, unit: str, reason: str, *, safely: bool) -> Records:
        """Yield the dead letters of a unit that is left out."""
        if (matches := self.taken.pop(unit, None)) is not None:
            yield from letters(matches.events, np.unique(matches.pairs()[0]).astype(np.int64), unit, reason)


def counting_step(counting: AggregateCounting) -> CountingStep | None:
    """Return the step for the matches that were taken in since the last call; None if no matches were taken in."""
    taken = counting.taken()
    return CountingStep(counting, taken) if taken else None


def counted(task: Task, rows: GroupRows, then: Then) -> Iterator[AnyStep]:
    """Count the matches of rows; this stage runs after all rows were looked up."""
    if (step := counting_step(task.counting)) is not None:
        yield step


@dataclass(frozen=True, slots=True)
class WritingStep:
    """The end of a task: its partial aggregates are merged and written."""

    counting: AggregateCounting
    stream_id: StreamId
    version: TableVersion
    left_out: Collection[str]
    """The units and groups that were left out for some events of the task."""
    settings: Settings

    def units(self) -> list[str]:
        """List the units that were counted."""
        return self.counting.units

    def records(self, units: Collection[str] | None) -> Records:
        """Yield the records of some units, None for all."""
        for place, body in self.counting.records(self.stream_id, self.version, frozenset(self.left_out), units):
            if isinstance(body, OversizeAggregate):
                yield self.counting.oversize_letter(body)
            else:
                yield pending_output([(place, body)], self.settings)

    def letters(self, letters: NotEvaluatedLetters, unit: str, reason: str, *, safely: bool) -> Records:
        """Yield the dead letter of a unit that is left out."""
        yield letters.of_task(self.counting.offsets, unit, reason)
