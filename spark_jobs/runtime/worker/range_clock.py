"""The event time of a source partition: the driver gives a task the marks, and the task reports the event time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from grouping.plan.computation import Computation
from spark_jobs.engine.operators.framed_states import timed_state
from spark_jobs.engine.operators.log_state import LogState
from spark_jobs.engine.operators.timed_state import NEVER
from spark_jobs.runtime.states.log_states import StateClock

__all__ = ["RangeBegin", "RangeTime", "time_of"]


class RangeBegin(NamedTuple):
    """Where a task's records of a source partition begin."""

    partition: int
    first: int
    """The offset of the first record."""
    clock: StateClock | None = None
    """The marks of the clock at this offset, from the driver; None if the task must look for marks itself."""


class RangeTime(NamedTuple):
    """The event time of a source partition after a task, in epoch milliseconds."""

    watermark: int
    due: int | None
    """The watermark at which the next result is due; None if no row waits."""


def time_of(computations: Iterable[Computation], states: Mapping[str, LogState]) -> RangeTime | None:
    """Return the time of a partition; None without an event-time computation.

    Args:
        computations: The computations of the stream's queries.
        states: By computation id, the states in the partition.
    """
    watermarks, due = [], NEVER
    for each in computations:
        whole = states.get(each.computation_id)
        state = timed_state(whole)
        if whole is not None and state is not None and not whole.torn and each.timed is not None:
            watermarks.append(state.watermark)
            if (earliest := state.earliest) != NEVER:
                due = min(due, earliest + each.timed.due_after)
    return RangeTime(max(watermarks), None if due == NEVER else due) if watermarks else None
