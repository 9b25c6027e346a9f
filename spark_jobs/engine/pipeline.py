"""The pipeline of a task, as data: from the records of a batch to the records that are written.

A stage turns its input into steps, and the guard of work units runs each step: isolation is around the stages, and no
stage has isolation of its own. A step gives its output to the next stages, so a batch passes all stages in slices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from spark_jobs.engine.isolation.step import AnyStep, Records
from spark_jobs.engine.stages.counting_stage import WritingStep, counted
from spark_jobs.engine.stages.decode_stage import decoded, given
from spark_jobs.engine.stages.lookup_stage import matched
from spark_jobs.engine.stages.operator_stage import advanced, operated
from spark_jobs.engine.stages.output_stage import output
from spark_jobs.engine.stages.task import Task, Then

__all__ = ["CLOCK", "OPERATORS", "ROWS", "STAGES", "TABLE_ROWS", "PipelineStage", "end_records", "evaluate"]


@dataclass(frozen=True, slots=True)
class PipelineStage:
    """A stage, and the stages that get its output."""

    steps: Callable[[Task, Any, Then], Iterator[AnyStep]]
    followers: tuple[PipelineStage, ...] = ()


ROWS = PipelineStage(matched, (PipelineStage(output),))
"""The stages for the rows of a snapshot, and of a computation: match → output."""
OPERATORS = PipelineStage(operated, (ROWS, PipelineStage(counted)))
"""The stages after decoding."""
STAGES = PipelineStage(decoded, (OPERATORS,))
"""decode → operators → match → output; and after the matches of all rows: operators → count."""
TABLE_ROWS = PipelineStage(given, (OPERATORS,))
"""The stages for the rows of a table at a tick: as `STAGES`, without decoding."""
CLOCK = PipelineStage(advanced, (ROWS,))
"""A mark of the clock → match → output."""


def evaluate(task: Task, given: Any, stage: PipelineStage = STAGES) -> Records:
    """Yield the records of a stage and of the stages after it.

    Args:
        task: The task.
        given: The stage's input; for `STAGES` a batch of source records.
        stage: The stage.
    """

    def then(made: Any) -> Records:
        for follower in stage.followers:
            yield from evaluate(task, made, follower)

    for step in stage.steps(task, given, then):
        yield from task.guard.run(step)


def end_records(task: Task) -> Iterator[pa.RecordBatch]:
    """Yield the records of a task's end: partial aggregates, for the task's whole range of offsets."""
    counting, left_out = task.counting, task.guard.not_evaluated
    writing = WritingStep(counting, task.stream.stream_id, task.version, left_out.reasons, task.settings)
    with task.guard.batch(0):
        yield from task.guard.run(writing)
    for unit, offsets, matches in counting.incomplete.values():
        yield left_out.incomplete(unit, offsets, matches)
