"""The exceptions that a worker catches during evaluation, so that a failing work unit harms no other work unit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from polars.exceptions import PanicException

from spark_jobs.engine.rows.cpu_budget import CpuExceeded

__all__ = ["FAULTS", "Records", "Units", "halved"]

FAULTS = (Exception, PanicException)
"""The exceptions that are caught. A panic of Polars is no `Exception`, unlike `MemoryError` and Arrow's errors."""

Records = Iterator[pa.RecordBatch]
"""Rows of `rows.output.OUTPUT`."""
Units = Sequence[str]
"""Names of work units (`grouping.store.work_units`)."""


def halved(
    units: Units | None,
    every: Callable[[], Units],
    work: Callable[[Units | None], Records],
    report: Callable[[str], None],
    left_out: Callable[[str, str], Records],
) -> Records:
    """Yield the records of some work units; if they fail, try each half by itself, and so on down to the unit at fault.

    Records that were yielded before the failure are yielded again by the halves, as in a replay of the batch. The
    records of each unit stay in order.

    Args:
        units: Ids of work units (`grouping.store.work_units`); None for all units.
        every: Returns the ids of all units; called only if all units together fail.
        work: Makes the records of some units; its argument is None for all units.
        report: Is called with a unit that fails, while the failure is being handled.
        left_out: Makes the dead letters for a unit that fails; its arguments are the unit and the reason.

    Raises:
        CpuExceeded: The work took too long; `CpuBudget.stopped` names the suspects.
        Exception: The work failed, and there are no units.
    """
    try:
        yield from work(units)
        return
    except CpuExceeded:
        raise
    except FAULTS as fault:
        # The reason goes into dead letters, and the fault's text may quote a subscriber or an event.
        reason = f"it failed with {type(fault).__name__}"
        some = every() if units is None else units
        if not some:
            raise  # the work is of no unit
        if len(some) == 1:
            report(some[0])
    # This part is outside of the handler, since the exception keeps the memory of the failed work.
    if len(some) == 1:
        yield from left_out(some[0], reason)
        return
    for half in (some[: len(some) // 2], some[len(some) // 2 :]):
        if half:
            yield from halved(half, every, work, report, left_out)
