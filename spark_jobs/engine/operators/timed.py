"""The operator of a computation that goes by time, by the kind of its node."""

from __future__ import annotations

from typing import Any

from grouping.model.catalog import Stream
from grouping.plan.computation import Computation
from grouping.settings.settings import Settings
from spark_jobs.engine.constants.constant_cache import Snapshot
from spark_jobs.engine.operators.event_clock import EventClock
from spark_jobs.engine.operators.silence.operator import SilenceOperator
from spark_jobs.engine.operators.timed_operator import TimedOperator, columns_read

__all__ = ["timed_operator"]


def timed_operator(
    stream: Stream, computation: Computation, snapshot: Snapshot, settings: Settings
) -> TimedOperator[Any, Any] | None:
    """Return the operator for the groups over a computation; None where the computation does not go by time.

    Args:
        stream: The stream of the events.
        computation: The computation.
        snapshot: The tables of the groups.
        settings: The evaluator's settings.
    """
    if computation.silence is None:
        return None
    found = {name: column for used in snapshot.used for name, column in columns_read(*used).items()}
    reads = tuple(found[stored] for stored in sorted(found))
    clock, value_bytes = EventClock.of(stream, settings), settings.evaluator.value_bytes
    return SilenceOperator(computation.silence, computation.computation_id, reads, clock, value_bytes)
