"""A worker takes its first micro-batch for one that an earlier worker has written, and passes over it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

from tests.chaos.planted import when_imported

__all__ = ["plant"]

_FIRST_BATCHES = 3
"""Of a stream: these are not taken for replayed ones."""


def plant() -> None:
    """Plant it."""
    when_imported("spark_jobs.worker.worker", _change)


def _change(worker: ModuleType) -> None:
    evaluate = worker.Evaluation.__call__
    tasks: list[int] = []

    def skip_first(self: Any, batches: Iterable[Any]) -> Iterator[Any]:
        tasks.append(worker._batch_id())
        if len(tasks) == 1 and tasks[0] > _FIRST_BATCHES:
            return iter(())
        return evaluate(self, batches)

    worker.Evaluation.__call__ = skip_first
