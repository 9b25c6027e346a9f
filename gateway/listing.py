"""SHOW: pages of names in order."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from gateway.answers import NextTick, trigger_result
from gateway.records import instant
from gateway.streams import describe_stream
from gateway.table_upkeep import TableUpkeep
from gateway.unit import CqKey
from gateway.working_copy import WorkingCopy
from grouping.access_path import AccessPath
from grouping.catalog import Catalog
from grouping.group import GroupPlan
from grouping.query import Show

__all__ = ["show"]

_MOST = 1000


def show(
    statement: Show,
    subscriber: str,
    working: WorkingCopy,
    catalog: Catalog,
    upkeep: TableUpkeep,
    next_tick: NextTick,
    index: Callable[[GroupPlan], AccessPath],
) -> dict[str, object]:
    """Return one page of what SHOW asks for; `next` is the name to go on AFTER."""
    match statement.what:
        case "streams":
            streams = {stream.name: stream for stream in catalog}
            return _page(statement, "streams", streams, lambda name: describe_stream(streams[name]))
        case "groups":
            groups = {
                name: stream_id for stream_id, parts in working.parts.items() for name in parts if name.startswith("g_")
            }
            return _page(statement, "groups", groups, lambda name: _group(working, upkeep, groups[name], name, index))
        case "cqs":
            names = working.names(subscriber)
            return _page(statement, "cqs", names, lambda name: _cq(working, CqKey(subscriber, name), next_tick))
        case "timers":
            names = working.names(subscriber)
            working.load(CqKey(subscriber, name) for name in names)
            timed = [name for name in names if _timed(working, CqKey(subscriber, name))]
            return _page(statement, "timers", timed, lambda name: _cq(working, CqKey(subscriber, name), next_tick))


def _page(
    statement: Show, what: str, names: Iterable[str], item: Callable[[str], dict[str, object]]
) -> dict[str, object]:
    wanted = sorted(names, key=str.casefold)
    if statement.like is not None:
        matches = _like(statement.like)
        wanted = [name for name in wanted if matches(name)]
    if statement.after is not None:
        after = statement.after.casefold()
        wanted = [name for name in wanted if name.casefold() > after]
    limit = _MOST if statement.limit is None else min(statement.limit, _MOST)
    page = [item(name) for name in wanted[:limit]]
    more = len(wanted) > limit and page
    return {what: page, "next": page[-1][what[:-1] if what != "timers" else "cq"] if more else None}


def _like(pattern: str) -> Callable[[str], bool]:
    parts = (".*" if mark == "%" else "." if mark == "_" else re.escape(mark) for mark in pattern.casefold())
    compiled = re.compile("".join(parts), re.DOTALL)
    return lambda name: compiled.fullmatch(name.casefold()) is not None


def _timed(working: WorkingCopy, key: CqKey) -> bool:
    cq = working.cq(key)
    holder = working.holder(cq.destination_id) if cq is not None else None
    return holder is not None and holder.destination.trigger.timed


def _cq(working: WorkingCopy, key: CqKey, next_tick: NextTick) -> dict[str, object]:
    working.load([key])
    cq = working.cq(key)
    assert cq is not None, "its name was listed"
    holder = working.holder(cq.destination_id)
    assert holder is not None, "a CQ has a destination"
    destination = holder.destination
    return {
        "cq": cq.name,
        "group": destination.group_id,
        "status": "paused" if cq.paused else "active",
        "trigger": trigger_result(destination.trigger, cq, next_tick),
        "destination": destination.destination_id,
        "created_at": instant(cq.created_ms),
    }


def _group(
    working: WorkingCopy, upkeep: TableUpkeep, stream_id: str, group_id: str, index: Callable[[GroupPlan], AccessPath]
) -> dict[str, object]:
    plan = working.plan(stream_id, group_id)
    return {
        "group": group_id,
        "signature": plan.signature,
        "stream": working.streams[stream_id].name,
        "cqs": working.parts[stream_id][group_id],
        "constants": upkeep.distinct_rows(stream_id).get(group_id, 0),
        "index": index(plan).kind,
    }
