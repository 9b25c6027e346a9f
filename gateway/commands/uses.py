"""Counts of CQs: for each group that a subscriber sees, and for the parts of a query."""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

from gateway.model.unit import CqKey
from gateway.registry.registry import Registry
from gateway.state.table_upkeep import TableUpkeep
from gateway.state.working_copy import WorkingCopy
from grouping.access.explain_tree import SourceUse, Use
from grouping.model.catalog import Catalog
from grouping.model.ids import CqName, GroupId, StreamId, Subscriber
from grouping.plan.computation import Computation
from grouping.plan.group import GroupPlan
from grouping.plan.table_changes import readable_streams

__all__ = ["GroupUse", "all_groups", "own_groups", "use_of"]

_COUNTED = 10_000
"""The largest number of CQs of a subscriber that are counted. All other commands wait meanwhile."""
_LOADED = 1_000
"""The number of CQs that one request reads from Redis."""


class GroupUse(NamedTuple):
    """The counts of one group."""

    stream_id: StreamId
    cqs: int
    constants: int
    """The number of distinct rows of constants."""


def all_groups(working: WorkingCopy, upkeep: TableUpkeep, catalog: Catalog) -> dict[GroupId, GroupUse]:
    """Return the groups of all streams of a catalog, and of the changes of its tables."""
    uses: dict[GroupId, GroupUse] = {}
    for stream_id in readable_streams(catalog):
        if not (groups := working.inventory.groups(stream_id)):
            continue
        rows = upkeep.distinct_rows(stream_id)
        for group_id, cqs in groups.items():
            uses[group_id] = GroupUse(stream_id, cqs, rows.get(group_id, 0))
    return uses


def own_groups(working: WorkingCopy, subscriber: Subscriber) -> dict[GroupId, GroupUse]:
    """Return the groups of a subscriber's first 10,000 CQs by name; only these CQs are counted."""
    cqs: dict[GroupId, int] = {}
    rows: dict[GroupId, set[str]] = {}
    streams: dict[GroupId, StreamId] = {}
    keys = (CqKey(subscriber, CqName(name)) for name in islice(working.names(subscriber).after(""), _COUNTED))
    while some := list(islice(keys, _LOADED)):
        loaded = working.load(some)
        for key in some:
            destination = loaded.destination_of(loaded.existing(key))
            group_id = destination.group_id
            streams[group_id] = destination.stream_id
            cqs[group_id] = cqs.get(group_id, 0) + 1
            rows.setdefault(group_id, set()).add(destination.constants)
    return {group_id: GroupUse(streams[group_id], count, len(rows[group_id])) for group_id, count in cqs.items()}


def use_of(plan: GroupPlan, working: WorkingCopy, registry: Registry, now_ms: int) -> Use:
    """Return how many CQs use the parts of a plan. The plan may belong to a query that is not a CQ.

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
