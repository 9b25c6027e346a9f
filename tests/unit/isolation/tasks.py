"""Tasks of which a test has a part of its own: the join, or the output."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from gateway.evaluation.one_entry import VERSION
from grouping.model.catalog import Stream
from grouping.plan.computation import Computation
from spark_jobs.engine.constants.constant_cache import Snapshot
from spark_jobs.engine.isolation.step import AnyStep, Records, Units
from spark_jobs.engine.isolation.unit_guard import UnitGuard
from spark_jobs.engine.pipeline import OPERATORS, PipelineStage, evaluate
from spark_jobs.engine.rows.events import Events
from spark_jobs.engine.rows.matches import Matches
from spark_jobs.engine.stages.lookup_stage import matched
from spark_jobs.engine.stages.operator_stage import operated
from spark_jobs.engine.stages.output_stage import OutputStep
from spark_jobs.engine.stages.task import Found, JoinedGroups, Task, Then
from tests.unit.matching.event_batches import SETTINGS

__all__ = ["Join", "Write", "records_of", "task_of"]

Join = Callable[[Events, Computation], Iterator[tuple[int, Events]]]
Write = Callable[[Events, Matches], Iterable[pa.RecordBatch]]


@dataclass(frozen=True)
class _Joining:
    """An operator that makes rows with a function."""

    join: Join
    computation: Computation

    def begin(self) -> None:
        """Begin without a state."""

    def step(self, state: None, rows: Events, watermark: int | None = None) -> tuple[None, Any]:
        """Return the rows of the function."""
        return None, self.join(rows, self.computation)


@dataclass(frozen=True, slots=True)
class _Writing(OutputStep):
    """An output that is made with a function."""

    write: Write

    def records(self, units: Units | None) -> Records:
        """Yield the records of the function."""
        rows, found = self.found
        yield from self.write(rows, found if units is None else found.only(units))  # type: ignore[arg-type]


def task_of(stream: Stream, guard: UnitGuard, snapshot: Snapshot, join: Join | None = None) -> Task:
    """Return a task; joins are made with a function where one is given."""
    task = Task.of(stream, SETTINGS, VERSION, guard, snapshot, {})
    if join is None:
        return task
    joins = [JoinedGroups(each, _Joining(join, each), over) for each, _, over, *_ in task.joins]  # type: ignore[arg-type]
    return replace(task, joins=joins)


def records_of(task: Task, events: Events, write: Write | None = None) -> Records:
    """Yield the records of events; output is made with a function where one is given."""

    def written(task: Task, found: Found, then: Then) -> Iterator[AnyStep]:
        yield _Writing(task, found, write)  # type: ignore[arg-type]

    stages = (
        OPERATORS if write is None else PipelineStage(operated, (PipelineStage(matched, (PipelineStage(written),)),))
    )
    with task.guard.batch(events.count):
        yield from evaluate(task, events, stages)
