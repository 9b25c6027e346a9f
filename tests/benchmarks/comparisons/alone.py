"""The comparison for grouping: each query by itself, as a compiled predicate over the decoded batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_jobs.engine.rows.events import Events
from tests.benchmarks.comparisons.paper_queries import Setting

__all__ = ["Predicate", "compiled", "run_alone"]

Predicate = Callable[[Events], NDArray[np.uint64]]
"""Returns the events that a query meets."""

_KERNELS = {"=": pc.equal, "<": pc.less, ">": pc.greater}


def compiled(settings: Sequence[Setting]) -> list[Predicate]:
    """Compile each query to calls of Arrow's kernels, its constants bound."""
    return [_predicate(setting.columns, constants) for setting in settings for constants in setting.constants]


def _predicate(columns: tuple[tuple[str, str], ...], constants: tuple[str | float, ...]) -> Predicate:
    terms = [
        (column, _KERNELS[op], pa.scalar(constant))
        for (column, op), constant in zip(columns, constants, strict=True)
    ]  # fmt: skip
    (first, compare, bound), others = terms[0], terms[1:]

    def holds(events: Events) -> NDArray[np.uint64]:
        rows = pc.indices_nonzero(compare(events.column(first), bound))
        for column, kernel, constant in others if len(rows) else ():
            rows = rows.filter(kernel(events.column(column).take(rows), constant))
        found: NDArray[np.uint64] = rows.to_numpy()
        return found

    return holds


def run_alone(predicates: Sequence[Predicate], events: Events) -> int:
    """Run the queries in sequence over a batch; return how many pairs of event and query were found."""
    return sum(predicate(events).size for predicate in predicates)
