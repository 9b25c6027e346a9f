"""A worker treats its first micro-batch as written already, and skips the batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

from tests.chaos.planted import replace, when_imported

__all__ = ["plant"]

_FIRST_BATCHES = 3
"""The first micro-batches of a stream, which are evaluated."""


def plant() -> None:
    """Plant the fault."""
    when_imported("spark_jobs.runtime.worker.worker", _change)


def _change(worker: ModuleType) -> None:
    from pyspark import TaskContext  # noqa: PLC0415 - the gateway, where this is planted too, does not have it

    evaluate = worker.Evaluation.__call__
    tasks: list[int] = []

    def skip_first(self: Any, batches: Iterable[Any]) -> Iterator[Any]:
        context = TaskContext.get()
        assert context is not None, "called in a task"
        tasks.append(int(context.getLocalProperty("streaming.sql.batchId") or -1))
        if len(tasks) == 1 and tasks[0] > _FIRST_BATCHES:
            return iter(())
        return evaluate(self, batches)

    replace(worker.Evaluation, "__call__", skip_first)
