"""SHOW: pages of names in order."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeVar

import msgspec

from gateway.access.source_rights import SourceRights
from gateway.commands.answers import NextTick, trigger_result
from gateway.commands.group_uses import GroupUse, all_groups, own_groups
from gateway.commands.quarantines import Quarantines
from gateway.commands.source_statements import describe_source
from gateway.model.records import instant
from gateway.model.unit import CqKey
from gateway.registry.computations import Computations, LiveComputation
from gateway.state.table_upkeep import TableUpkeep
from gateway.state.working_copy import WorkingCopy
from grouping.access.access_path import AccessPath
from grouping.access.function_guide import function_item, function_names
from grouping.compiler.signature import render_joins, render_name
from grouping.model.catalog import Catalog, Stream
from grouping.model.ids import CqName, GroupId, Subscriber
from grouping.model.query import Show
from grouping.model.table import Table
from grouping.model.view import View
from grouping.plan.group import GroupPlan
from grouping.statements.tokens import NAME_LENGTH

__all__ = ["cq_item", "like_filter", "page_limit", "page_of", "search", "show"]

_MOST = 1000
_SEARCHED = 50_000
"""Most names examined for one page: all commands wait while a LIKE goes through a million names."""
_PAGE_BYTES = 4 << 20
"""Bytes at which a page ends: a thousand items of any size would not fit into a reply."""
_LONGEST_PATTERN = 6 * NAME_LENGTH + 1
"""Characters of the longest useful LIKE pattern: a folded character becomes at most three, each with a % before it."""
_JSON = msgspec.json.Encoder()

_T = TypeVar("_T")


def show(
    statement: Show,
    subscriber: Subscriber,
    working: WorkingCopy,
    rights: SourceRights,
    catalog: Catalog,
    upkeep: TableUpkeep,
    next_tick: NextTick,
    index: Callable[[GroupPlan], AccessPath],
    quarantines: Quarantines,
    computations: Computations,
) -> dict[str, object]:
    """Return one page of a SHOW; `next` is the name to go on AFTER.

    The catalog is the sender's view: SHOW lists nothing about unreadable sources.
    """

    def source(found: Stream | Table | View) -> dict[str, object]:
        return describe_source(found) | rights.described(found)

    match statement.what:
        case "streams":
            streams = {stream.name: stream for stream in catalog}
            return _listed(statement, "streams", streams, lambda name: source(streams[name]))
        case "tables":
            tables = {table.name: table for table in catalog.tables()}
            return _listed(statement, "tables", tables, lambda name: source(tables[name]))
        case "views":
            views = {view.name: view for view in catalog.views()}
            return _listed(statement, "views", views, lambda name: source(views[name]))
        case "groups":
            everything = rights.is_operator(subscriber)
            groups = all_groups(working, upkeep, catalog) if everything else own_groups(working, subscriber)

            def item(name: str) -> dict[str, object]:
                group_id, use = GroupId(name), groups[GroupId(name)]
                resting = {
                    "quarantined": quarantines.of_group(use.stream_id, group_id),
                    "paused": quarantines.pause(use.stream_id, group_id),
                }
                return _group(working, group_id, use, index) | resting

            return _listed(statement, "groups", groups, item)
        case "functions":
            return _listed(statement, "functions", function_names(), function_item)
        case "computations":
            streams_seen = {stream.stream_id for stream in catalog}
            tables_seen = {table.table_id for table in catalog.tables()}
            known = {
                live.computation.computation_id: live
                for live in computations.live()
                if live.stream_id in streams_seen and tables_seen.issuperset(live.computation.table_ids)
            }
            return _listed(statement, "computations", known, lambda name: _computation(working, known[name]))
        case "cqs":
            return _cqs(statement, subscriber, working, working.names(subscriber).after, next_tick)
        case "timers":
            return _cqs(statement, subscriber, working, partial(working.timed_names, subscriber), next_tick)


def _cqs(
    statement: Show,
    subscriber: Subscriber,
    working: WorkingCopy,
    names_after: Callable[[str], Iterator[str]],
    next_tick: NextTick,
) -> dict[str, object]:
    limit, behind = page_limit(statement.limit), names_after((statement.after or "").casefold())
    names, searched_to = search(behind, like_filter("%" if statement.like is None else statement.like), limit)
    chosen = [CqKey(subscriber, CqName(name)) for name in names]
    working.load(chosen)
    return page_of(statement.what, "cq", chosen, limit, lambda key: cq_item(working, key, next_tick), searched_to)


def search(items: Iterable[_T], matches: Callable[[_T], bool], limit: int) -> tuple[list[_T], _T | None]:
    """Return a page's items, one more if there are more, and the last item examined if the search was cut short.

    Args:
        items: The items to choose from, in order.
        matches: Tells which are wanted.
        limit: How many a page has, at most.
    """
    chosen: list[_T] = []
    for number, item in enumerate(items, 1):
        if matches(item):
            chosen.append(item)
            if len(chosen) > limit:
                break
        if number == _SEARCHED:
            return chosen, item
    return chosen, None


def page_limit(limit: int | None) -> int:
    """Return how many items a page has, at most, for the LIMIT of a statement."""
    return _MOST if limit is None else min(limit, _MOST)


def _listed(
    statement: Show, what: str, names: Iterable[str], item: Callable[[str], dict[str, object]]
) -> dict[str, object]:
    wanted = sorted(names, key=str.casefold)
    if statement.like is not None:
        matches = like_filter(statement.like)
        wanted = [name for name in wanted if matches(name)]
    if statement.after is not None:
        after = statement.after.casefold()
        wanted = [name for name in wanted if name.casefold() > after]
    return page_of(what, what[:-1], wanted, page_limit(statement.limit), item)


def page_of(
    what: str,
    name: str,
    wanted: Sequence[_T],
    limit: int,
    item: Callable[[_T], dict[str, object]],
    searched_to: str | None = None,
) -> dict[str, object]:
    """Return the first wanted items, at least one, and the name of the last if there are more.

    If there are no more, the name is the end of a search cut short, or None at the end of the list.
    """
    page: list[dict[str, object]] = []
    size = 0
    for one in wanted[:limit]:
        if size >= _PAGE_BYTES:
            break
        page.append(item(one))
        size += len(_JSON.encode(page[-1]))
    return {what: page, "next": page[-1][name] if len(wanted) > len(page) else searched_to}


def like_filter(pattern: str) -> Callable[[str], bool]:
    """Return a function to check names against a LIKE pattern, in any case; an overlong pattern matches none."""
    pattern = re.sub("%+", "%", pattern.casefold())
    if len(pattern) > _LONGEST_PATTERN:
        return lambda name: False
    first, *rest = ["".join("." if mark == "_" else re.escape(mark) for mark in part) for part in pattern.split("%")]
    if rest:
        # The text between two % is matched at its first occurrence and, as the group is atomic, never searched for
        # again: otherwise a few % would keep the gateway busy for hours.
        first += "".join(f"(?>.*?{part})" for part in rest[:-1]) + ".*" + rest[-1]
    compiled = re.compile(first, re.DOTALL)
    return lambda name: compiled.fullmatch(name.casefold()) is not None


def cq_item(working: WorkingCopy, key: CqKey, next_tick: NextTick) -> dict[str, object]:
    """Return how SHOW lists a CQ; it must have been loaded."""
    cq = working.unit.cq(key)
    assert cq is not None, "its name was listed"
    membership = working.unit.membership(cq.destination_id)
    assert membership is not None, "a CQ has a destination"
    destination = membership.destination
    return {
        "cq": cq.name,
        "group": destination.group_id,
        "status": "paused" if cq.paused else "active",
        "trigger": trigger_result(destination.trigger, cq, next_tick),
        "destination": destination.destination_id,
        "created_at": instant(cq.created_ms),
    }


def _computation(working: WorkingCopy, live: LiveComputation) -> dict[str, object]:
    stream, computation = working.inventory.streams[live.stream_id].name, live.computation
    return {
        "computation": computation.computation_id,
        "stream": stream,
        "tables": [working.inventory.tables[table_id].name for table_id in computation.table_ids],
        "text": f"{render_name(stream)}{render_joins(computation)}",
        "rows_per_event": "one" if computation.single else "several",
        "groups": len(live.groups),
        "cqs": live.cqs,
    }


def _group(
    working: WorkingCopy, group_id: GroupId, use: GroupUse, index: Callable[[GroupPlan], AccessPath]
) -> dict[str, object]:
    plan = working.plan(use.stream_id, group_id)
    return {
        "group": group_id,
        "signature": plan.signature,
        "stream": working.inventory.streams[use.stream_id].name,
        "cqs": use.cqs,
        "constants": use.constants,
        "index": index(plan).kind,
    }
