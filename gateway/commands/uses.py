"""How many CQs use each part of a query, for EXPLAIN."""

from __future__ import annotations

from gateway.registry.registry import Registry
from gateway.state.working_copy import WorkingCopy
from grouping.access.explain_tree import SourceUse, Use
from grouping.plan.computation import Computation
from grouping.plan.group import GroupPlan

__all__ = ["use_of"]


def use_of(plan: GroupPlan, working: WorkingCopy, registry: Registry, now_ms: int) -> Use:
    """Return who uses the parts of a plan, which may be of a query that nobody has created.

    Raises:
        StoreUnavailable: Redis does not answer.
    """
    inventory = working.inventory
    group, stream = inventory.groups(plan.stream_id).get(plan.group_id, 0), inventory.live_cqs[plan.stream_id]
    if plan.computation is None:
        return Use(group=group, stream=stream)
    live = registry.computations.find(plan.computation.computation_id)
    return Use(
        group=group,
        computation=live.cqs if live else 0,
        computation_groups=len(live.groups) if live else 0,
        stream=stream,
        tables=_tables(plan.computation, working, registry, now_ms),
    )


def _tables(computation: Computation, working: WorkingCopy, registry: Registry, now_ms: int) -> dict[str, SourceUse]:
    found = {}
    for table_id in computation.table_ids:
        table = working.inventory.tables[table_id]
        figures = registry.admission.replicas.of(table, now_ms)
        rows = None if figures is None else figures.rows
        found[table_id] = SourceUse(table.name, registry.computations.cqs(table_id), rows)
    return found
