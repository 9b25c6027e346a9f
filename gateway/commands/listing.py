"""SHOW: pages of names in order."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

import msgspec

from gateway.access.source_rights import SourceRights
from gateway.commands.answers import trigger_result
from gateway.commands.prepared import Answer, PreparedCommand, Result
from gateway.commands.quarantines import Quarantines
from gateway.commands.source_statements import describe_source
from gateway.commands.uses import GroupUse, all_groups, own_groups
from gateway.model.loaded import Loaded
from gateway.model.records import instant
from gateway.model.unit import CqKey
from gateway.registry.computations import LiveComputation
from gateway.registry.operator_states import StateFigures, state_figures, time_figures
from gateway.registry.registry import Registry
from gateway.sources.declarations import Origin
from gateway.state.table_upkeep import TableUpkeep
from gateway.state.working_copy import WorkingCopy
from grouping.access.function_guide import describe_function, function_item, function_names
from grouping.model.catalog import Catalog, Stream
from grouping.model.ids import CqName, GroupId, Subscriber
from grouping.model.query import Describe, Show
from grouping.model.table import Table, View
from grouping.plan.scan import Scan
from grouping.plan.signature import render_before, render_frames, render_source
from grouping.statements.tokens import NAME_LENGTH

__all__ = ["Listing", "cq_item", "like_filter", "page_limit", "page_of", "search"]

_MOST = 1000
_SEARCHED = 50_000
"""The largest number of names that are examined for a page. All other commands wait meanwhile."""
_PAGE_BYTES = 4 << 20
"""A page ends early when it has this many bytes, because a thousand large items would not fit into a reply."""
_LONGEST_PATTERN = 6 * NAME_LENGTH + 1
"""The number of characters of the longest useful LIKE pattern. A folded name has at most three times `NAME_LENGTH`
characters, and the pattern may have a % before each of them and at the end."""
_JSON = msgspec.json.Encoder()

_T = TypeVar("_T")


class Listing:
    """Carries out SHOW, and DESCRIBE FUNCTION."""

    def __init__(
        self,
        working: WorkingCopy,
        rights: SourceRights,
        seen_by: Callable[[str], Catalog],
        upkeep: TableUpkeep,
        registry: Registry,
        quarantines: Quarantines,
        figures: Callable[[str], Result],
    ) -> None:
        self._working = working
        self._rights = rights
        self._seen_by = seen_by
        self._upkeep = upkeep
        self._registry = registry
        self._quarantines = quarantines
        self._figures = figures

    def describe_function(self, command: PreparedCommand[Describe], origin: Origin) -> Answer:
        """Describe a function."""
        return Answer(describe_function(command.statement.name))

    def show(self, command: PreparedCommand[Show], origin: Origin) -> Answer:
        """Return one page of the items that the sender may read; `next` is the name for AFTER in the next SHOW."""
        return Answer(self._page(command.statement, command.key.subscriber, origin.accepted_ms))

    def _page(self, statement: Show, subscriber: Subscriber, now_ms: int) -> Result:
        catalog, working = self._seen_by(subscriber), self._working
        match statement.what:
            case "streams":
                return self._sources(statement, catalog)
            case "tables":
                return self._sources(statement, catalog.tables())
            case "views":
                return self._sources(statement, catalog.views())
            case "groups":
                groups = self._groups(subscriber, catalog)
                return _listed(statement, groups, lambda name: self._group(GroupId(name), groups, now_ms))
            case "functions":
                return _listed(statement, function_names(), function_item)
            case "computations":
                return self._computations(statement, subscriber, catalog, now_ms)
            case "cqs":
                return self._cqs(statement, subscriber, working.names(subscriber).after, now_ms)
            case "timers":
                return self._cqs(statement, subscriber, partial(working.timed_names, subscriber), now_ms)

    def _sources(self, statement: Show, sources: Iterable[Stream | Table | View]) -> Result:
        found = {source.name: source for source in sources}
        return _listed(
            statement, found, lambda name: describe_source(found[name]) | self._rights.described(found[name])
        )

    def _cqs(
        self, statement: Show, subscriber: Subscriber, names_after: Callable[[str], Iterator[str]], now_ms: int
    ) -> Result:
        limit, following = page_limit(statement.limit), names_after((statement.after or "").casefold())
        names, searched_to = search(following, like_filter("%" if statement.like is None else statement.like), limit)
        chosen = [CqKey(subscriber, CqName(name)) for name in names]
        item = partial(cq_item, self._working.load(chosen), now_ms=now_ms)
        return page_of(statement.what, "cq", chosen, limit, item, searched_to)

    def _groups(self, subscriber: Subscriber, catalog: Catalog) -> dict[GroupId, GroupUse]:
        """Return the groups that a subscriber sees; an operator sees all groups over the sources of a catalog."""
        if self._rights.is_operator(subscriber):
            return all_groups(self._working, self._upkeep, catalog)
        return own_groups(self._working, subscriber)

    def _computations(self, statement: Show, subscriber: Subscriber, catalog: Catalog, now_ms: int) -> Result:
        groups, working = self._groups(subscriber, catalog), self._working
        known = {
            live.computation.computation_id: live
            for live in self._registry.computations.live()
            if not groups.keys().isdisjoint(live.groups)
        }
        states = state_figures(working.evaluator, list({live.stream_id for live in known.values()}))

        timed = {live.stream_id for live in known.values() if live.computation.timed is not None}
        streams = [working.inventory.streams[stream_id] for stream_id in sorted(timed)]
        times = time_figures(working.evaluator, streams, self._figures, now_ms)

        def item(name: str) -> Result:
            live = known[name]
            seen = [groups[each].cqs for each in live.groups if each in groups]
            watermark = None if live.computation.timed is None else times[live.stream_id].lowest
            return _computation(working, live, seen, states[live.stream_id].get(name)) | {"watermark": watermark}

        return _listed(statement, known, item)

    def _group(self, group_id: GroupId, groups: Mapping[GroupId, GroupUse], now_ms: int) -> Result:
        use, working = groups[group_id], self._working
        plan = working.plan(use.stream_id, group_id)
        return {
            "group": group_id,
            "signature": plan.signature,
            "stream": working.inventory.streams[use.stream_id].name,
            "cqs": use.cqs,
            "constants": use.constants,
            "index": self._registry.admission.index(plan, now_ms).kind,
            "quarantined": self._quarantines.of_group(use.stream_id, group_id),
            "paused": self._quarantines.pause(use.stream_id, group_id),
        }


def search(items: Iterable[_T], matches: Callable[[_T], bool], limit: int) -> tuple[list[_T], _T | None]:
    """Return up to `limit + 1` wanted items; and the last examined item if the search ended early, else None.

    The search ends early after `_SEARCHED` items.

    Args:
        items: The items to choose from, in order.
        matches: Returns whether an item is wanted.
        limit: The largest number of items of a page.
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
    """Return the largest number of items of a page, from a statement's LIMIT."""
    return _MOST if limit is None else min(limit, _MOST)


def _listed(statement: Show, names: Iterable[str], item: Callable[[str], Result]) -> Result:
    wanted = sorted(names, key=str.casefold)
    if statement.like is not None:
        matches = like_filter(statement.like)
        wanted = [name for name in wanted if matches(name)]
    if statement.after is not None:
        after = statement.after.casefold()
        wanted = [name for name in wanted if name.casefold() > after]
    return page_of(statement.what, statement.what[:-1], wanted, page_limit(statement.limit), item)


def page_of(
    what: str,
    name: str,
    wanted: Sequence[_T],
    limit: int,
    item: Callable[[_T], dict[str, object]],
    searched_to: str | None = None,
) -> dict[str, object]:
    """Return a page of items, and `next`, the value for AFTER in the next SHOW.

    Args:
        what: The name of the result's field that holds the page.
        name: The field of an item whose value goes into `next`.
        wanted: The items from which the page is made, in order; there may be more than fit into the page.
        limit: The largest number of items of the page.
        item: Makes an item of the page.
        searched_to: The value of `next` if the page has all of `wanted`: None at the end of the list, otherwise the
            place at which the search ended early.
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
    """Return a function that tells whether a LIKE pattern matches a name, ignoring case.

    A pattern that is longer than any name can need matches no name.
    """
    pattern = re.sub("%+", "%", pattern.casefold())
    if len(pattern) > _LONGEST_PATTERN:
        return lambda name: False
    first, *rest = ["".join("." if mark == "_" else re.escape(mark) for mark in part) for part in pattern.split("%")]
    if rest:
        # An atomic group matches the text between two % at its first occurrence, without backtracking, which could
        # take hours.
        first += "".join(f"(?>.*?{part})" for part in rest[:-1]) + ".*" + rest[-1]
    compiled = re.compile(first, re.DOTALL)
    return lambda name: compiled.fullmatch(name.casefold()) is not None


def cq_item(loaded: Loaded, key: CqKey, now_ms: int) -> dict[str, object]:
    """Return a CQ as SHOW CQS lists it."""
    cq = loaded.existing(key)
    destination = loaded.destination_of(cq)
    return {
        "cq": cq.name,
        "group": destination.group_id,
        "status": "paused" if cq.paused else "active",
        "trigger": trigger_result(destination, cq, now_ms),
        "destination": destination.destination_id,
        "created_at": instant(cq.created_ms),
    }


def _computation(
    working: WorkingCopy, live: LiveComputation, seen: Sequence[int], state: StateFigures | None
) -> Result:
    """Return a computation as SHOW COMPUTATIONS lists it.

    Args:
        working: The working copy, which knows the sources.
        live: The computation.
        seen: For each group of the computation that the sender sees, the number of CQs that the sender sees.
        state: The size of the computation's state in the workers; None if no worker has reported it.
    """
    stream, computation = working.inventory.streams[live.stream_id], live.computation
    source = render_source(Scan(stream), computation) + render_frames(computation) + render_before(computation)
    source += f" UNTIL {computation.switch.until}" if computation.switch else ""
    return {
        "computation": computation.computation_id,
        "signature": source,
        "stream": stream.name,
        "streams": [stream.name],
        "tables": [working.inventory.tables[table_id].name for table_id in computation.table_ids],
        "text": source,
        "rows_per_event": "one" if computation.single else "several",
        "groups": len(seen),
        "cqs": sum(seen),
        "keys": None if state is None else state.keys,
        "rows": None if state is None else state.rows,
        "bytes": None if state is None else state.nbytes,
    }
