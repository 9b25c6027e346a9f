"""Chooses the operator of an event-time computation, by the kind of its node."""

from __future__ import annotations

from typing import Any

from grouping.model.catalog import Stream
from grouping.model.expression import TableColumn
from grouping.plan.computation import Computation
from grouping.plan.lasting import LastingMatches
from grouping.plan.silence import SilentKeys
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
    stream: Stream, computation: Computation, node: SilentKeys | LastingMatches, snapshot: Snapshot, settings: Settings
) -> TimedOperator[Any, Any]:
    """Return the operator for the groups over a computation.

    Args:
        stream: The stream of the events.
        computation: The computation.
        node: The computation's node whose rows wait for the watermark.
        snapshot: The constant tables of the groups.
        settings: The evaluator's settings.
    """
    found = {name: column for used in snapshot.used for name, column in columns_read(stream, *used).items()}
    reads = tuple(found[stored] for stored in sorted(found))
    name, clock = computation.computation_id, EventClock.of(stream, settings)
    inner_keys = tuple(TableColumn(node.prefix, node.keys[0].column) for node in computation.nodes if not node.outer)
    value_bytes = settings.evaluator.value_bytes
    if isinstance(node, SilentKeys):
        return SilenceOperator(node, name, reads, clock, inner_keys, value_bytes)
    parts = (part.rows.begins for table in snapshot.tables for part in table.parts)
    begins = tuple(each for each in parts if each is not None)
    kept_ms = _EVER_MS if stream.changes_of else round(settings.limits.last_row_days * _DAY_MS)
    variants = [part.variants for table in snapshot.tables for part in table.parts]
    exits = snapshot.exits is not None and any(snapshot.exits[each].any() for each in variants)
    return LastingOperator(node, name, reads, clock, inner_keys, value_bytes, begins, kept_ms, exits)
