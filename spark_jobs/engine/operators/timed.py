"""Chooses the operator of an event-time computation, by the kind of its node."""

from __future__ import annotations

from typing import Any

from grouping.model.catalog import Stream
from grouping.model.expression import TableColumn
from grouping.plan.computation import Computation
from grouping.settings.settings import Settings
from spark_jobs.engine.constants.constant_cache import Snapshot
from spark_jobs.engine.operators.event_clock import EventClock
from spark_jobs.engine.operators.lasting.operator import LastingOperator
from spark_jobs.engine.operators.silence.operator import SilenceOperator
from spark_jobs.engine.operators.timed_operator import TimedOperator, columns_read

__all__ = ["timed_operator"]

_DAY_MS = 24 * 3600 * 1000
_EVER_MS = 1 << 60
"""The time for which keys of a table are kept: they are never forgotten."""


def timed_operator(
    stream: Stream, computation: Computation, snapshot: Snapshot, settings: Settings
) -> TimedOperator[Any, Any] | None:
    """Return the operator for the groups over a computation; None if the rows of the computation need no watermark.

    Args:
        stream: The stream of the events.
        computation: The computation.
        snapshot: The constant tables of the groups.
        settings: The evaluator's settings.
    """
    if computation.timed is None:
        return None
    found = {name: column for used in snapshot.used for name, column in columns_read(stream, *used).items()}
    reads = tuple(found[stored] for stored in sorted(found))
    name, clock = computation.computation_id, EventClock.of(stream, settings)
    inner_keys = tuple(TableColumn(node.prefix, node.keys[0].column) for node in computation.nodes if not node.outer)
    value_bytes = settings.evaluator.value_bytes
    if computation.lasting is None:
        assert computation.silence is not None, "a computation with event time has a node of one of the two kinds"
        return SilenceOperator(computation.silence, name, reads, clock, inner_keys, value_bytes)
    parts = (part.rows.begins for table in snapshot.tables for part in table.parts)
    begins = tuple(each for each in parts if each is not None)
    kept_ms = _EVER_MS if stream.changes_of else round(settings.limits.last_row_days * _DAY_MS)
    variants = [part.variants for table in snapshot.tables for part in table.parts]
    exits = snapshot.exits is not None and any(snapshot.exits[each].any() for each in variants)
    return LastingOperator(computation.lasting, name, reads, clock, inner_keys, value_bytes, begins, kept_ms, exits)
