"""How many CQs and constant rows a group has, as seen by a subscriber: its own, or all for an operator."""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

from gateway.model.unit import CqKey
from gateway.state.table_upkeep import TableUpkeep
from gateway.state.working_copy import WorkingCopy
from grouping.model.catalog import Catalog
from grouping.model.ids import CqName, GroupId, StreamId, Subscriber

__all__ = ["GroupUse", "all_groups", "own_groups"]

_COUNTED = 10_000
"""Most CQs of a subscriber that are counted: a statement must not keep others waiting."""
_LOADED = 1_000
"""CQs that are read from Redis at once."""


class GroupUse(NamedTuple):
    """The counts of one group."""

    stream_id: StreamId
    cqs: int
    constants: int
    """Distinct rows of constants."""


def all_groups(working: WorkingCopy, upkeep: TableUpkeep, catalog: Catalog) -> dict[GroupId, GroupUse]:
    """Return the groups of all streams of a catalog."""
    uses: dict[GroupId, GroupUse] = {}
    for stream in catalog:
        rows = upkeep.distinct_rows(stream.stream_id)
        for group_id, cqs in working.inventory.groups(stream.stream_id).items():
            uses[group_id] = GroupUse(stream.stream_id, cqs, rows.get(group_id, 0))
    return uses


def own_groups(working: WorkingCopy, subscriber: Subscriber) -> dict[GroupId, GroupUse]:
    """Return the groups of a subscriber's CQs, with the counts of these alone; of its first 10,000 CQs by name."""
    cqs: dict[GroupId, int] = {}
    rows: dict[GroupId, set[str]] = {}
    streams: dict[GroupId, StreamId] = {}
    keys = (CqKey(subscriber, CqName(name)) for name in islice(working.names(subscriber).after(""), _COUNTED))
    while some := list(islice(keys, _LOADED)):
        working.load(some)
        for key in some:
            cq = working.unit.cq(key)
            assert cq is not None, "its name was listed"
            membership = working.unit.membership(cq.destination_id)
            assert membership is not None, "a CQ has a destination"
            destination = membership.destination
            group_id = destination.group_id
            streams[group_id] = destination.stream_id
            cqs[group_id] = cqs.get(group_id, 0) + 1
            rows.setdefault(group_id, set()).add(destination.constants)
    return {group_id: GroupUse(streams[group_id], count, len(rows[group_id])) for group_id, count in cqs.items()}
