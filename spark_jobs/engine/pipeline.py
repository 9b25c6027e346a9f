"""The stages of a task, as data: they lead from the records of a batch to the records that are written.

A stage makes steps from its input. The guard of work units runs each step and isolates its faults, so no stage needs
its own isolation. A step passes its output to the next stages piece by piece, so that memory is bounded.
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
    """A stage, and the stages that get its output, one after the other."""

    steps: Callable[[Task, Any, Then], Iterator[AnyStep]]
    followers: tuple[PipelineStage, ...] = ()


ROWS = PipelineStage(matched, (PipelineStage(output),))
"""match → output: the stages for rows, such as the rows of a snapshot or of a computation."""
OPERATORS = PipelineStage(operated, (ROWS, PipelineStage(counted)))
"""The rows of the operators go to match → output. Then the stage count counts the matches of these rows."""
STAGES = PipelineStage(decoded, (OPERATORS,))
"""decode → `OPERATORS`: the stages for the records of a batch."""
TABLE_ROWS = PipelineStage(given, (OPERATORS,))
"""The stages for the rows of a table at a tick, which need no decoding."""
CLOCK = PipelineStage(advanced, (ROWS,))
"""operators → match → output, for a mark of the clock."""


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
    """Yield the records that a task writes at its end.

    The records are the partial aggregates of the task's range of offsets. A unit that was left out for some of the
    events has a dead letter in place of its aggregates.
    """
    counting, left_out = task.counting, task.guard.not_evaluated
    writing = WritingStep(counting, task.stream.stream_id, task.version, left_out.reasons, task.settings)
    with task.guard.batch(0):
        yield from task.guard.run(writing)
    for unit, offsets, matches in counting.incomplete.values():
        yield left_out.incomplete(unit, offsets, matches)
