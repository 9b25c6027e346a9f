"""The stage that decodes the records of a batch, and the stage for rows that are decoded already."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pyarrow as pa

from spark_jobs.engine.isolation.step import AnyStep, PlainStep, Records
from spark_jobs.engine.operators.lookup_join.table_events import decode_stream
from spark_jobs.engine.rows.events import Events
from spark_jobs.engine.stages.task import Task, Then

__all__ = ["decoded", "given"]


def decoded(task: Task, batch: pa.RecordBatch, then: Then) -> Iterator[AnyStep]:
    """Decode records; a bad record becomes a dead letter."""
    yield PlainStep(partial(_records, task, batch, then))


def _records(task: Task, batch: pa.RecordBatch, then: Then) -> Records:
    selection = task.guard.selection
    for events, letters in decode_stream(batch, task.stream, task.settings):
        selection.begin_step(selection.marked)  # so that each piece gets the full time of a step
        if letters is not None:
            yield letters
        task.observer.decoded(events, letters)
        yield from _events(task, events, then)


def given(task: Task, rows: Events, then: Then) -> Iterator[AnyStep]:
    """Take the rows of a table's partition, in the order of their offsets, in place of decoded records."""
    yield PlainStep(partial(_events, task, rows, then))


def _events(task: Task, events: Events, then: Then) -> Records:
    if events.count:
        offsets = events.offsets
        task.counting.extend(int(events.partitions[0]), int(offsets[0]), int(offsets[-1]))
        with task.guard.batch(events.count):
            yield from then(events)
