"""Finds the CQs for which a subscriber needs the right to read a source.

REVOKE reports how many of these CQs have lost the right, and REVOKE … CASCADE drops them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import NamedTuple

from gateway.model.loaded import Loaded
from gateway.model.records import Cq
from gateway.model.unit import CqKey
from gateway.registry.computations import Computations
from gateway.state.working_copy import WorkingCopy
from grouping.compiler.plan import source_names
from grouping.model.catalog import Stream
from grouping.model.ids import CqName, Subscriber
from grouping.model.table import Table, View
from grouping.plan.table_changes import changes_id
from grouping.statements.clauses import cut_emit
from grouping.statements.command import stored_select
from grouping.statements.select_text import read_select

__all__ = ["FoundReaders", "SourceReaders"]

_SEARCHED = 20_000
"""The largest number of CQs that a search examines. All other commands wait during a search, for some tenths of a
second."""
_LOADED = 1_000
"""The number of CQs that are read from Redis together."""


class FoundReaders(NamedTuple):
    """The CQs that a search found."""

    keys: list[CqKey]
    more: bool
    """Whether the search ended before it had examined all CQs."""


class SourceReaders:
    """Searches the CQs of subscribers. If a search was cut short, the next search skips CQs that need no right."""

    def __init__(self, working: WorkingCopy, computations: Callable[[], Computations]) -> None:
        self._working = working
        self._computations = computations
        self._unconcerned: dict[str, dict[Subscriber, str]] = {}
        """Source → subscriber → the name up to which no CQ of the subscriber needs the right, for searches that were
        cut short. A CQ that was found is never skipped: a REVOKE without CASCADE leaves the CQ, and a unit of work that
        is carried out again restores the CQ."""

    def find(self, source: Stream | Table | View, subscribers: Iterable[Subscriber], most: int) -> FoundReaders:
        """Return CQs that name a source in their text, or read the source through views of their own subscriber.

        A CQ that reads the source only through another subscriber's view needs no right to read the source itself, so
        it is left out.

        Args:
            source: The stream, table or view.
            subscribers: The owners of the CQs.
            most: The number of found CQs at which the search ends.

        Raises:
            StoreUnavailable: Redis does not answer.
        """
        found: list[CqKey] = []
        if not self._is_read(source):
            return FoundReaders(found, False)
        left = _SEARCHED
        unconcerned = self._unconcerned.setdefault(_identity(source), {})
        for subscriber in subscribers:
            names = self._working.names(subscriber).after(unconcerned.get(subscriber, ""))
            before = len(found)
            while some := [CqKey(subscriber, CqName(name)) for name in islice(names, _LOADED)]:
                loaded = self._working.load(some)
                for key in some:
                    if self._reads(loaded, key, source):
                        found.append(key)
                        if len(found) == most:
                            return FoundReaders(found, True)
                    elif len(found) == before:
                        unconcerned[subscriber] = key.name
                left -= len(some)
                if left <= 0:
                    return FoundReaders(found, True)
        self.forget(source)
        return FoundReaders(found, False)

    def forget(self, source: Stream | Table | View) -> None:
        """Make the next search examine all CQs, since a GRANT lets subscribers create CQs that read the source."""
        self._unconcerned.pop(_identity(source), None)

    def _is_read(self, source: Stream | Table | View) -> bool:
        match source:
            case Stream():
                return self._working.inventory.live_cqs[source.stream_id] > 0
            case Table():
                return self._computations().cqs(source.table_id) > 0
            case View():
                return self._working.unit.sources.view_cqs(source.name) > 0

    def _reads(self, loaded: Loaded, key: CqKey, source: Stream | Table | View) -> bool:
        cq = loaded.existing(key)
        if not self._reaches(loaded, cq, source):
            return False
        if not cq.views:
            return True
        return self._names(stored_select(str(cq.text)), source.name.casefold(), key.subscriber)

    def _reaches(self, loaded: Loaded, cq: Cq, source: Stream | Table | View) -> bool:
        """Tell whether a CQ reads a source, directly or not."""
        if isinstance(source, View):
            return any(name.casefold() == source.name.casefold() for name in cq.views)
        destination = loaded.destination_of(cq)
        if isinstance(source, Stream):
            return destination.stream_id == source.stream_id
        if destination.stream_id == changes_id(source.table_id):
            return True
        return source.table_id in self._working.plan(destination.stream_id, destination.group_id).table_ids

    def _names(self, select: str, name: str, subscriber: Subscriber) -> bool:
        """Tell whether a SELECT names a source, directly or through views that the subscriber owns."""
        views, names = self._working.inventory.views, source_names(read_select(cut_emit(select)[0]))
        own = (view for each in names if (view := views.get(each)) is not None and view.owner == subscriber)
        return name in names or any(self._names(view.select, name, subscriber) for view in own)


def _identity(source: Stream | Table | View) -> str:
    match source:
        case Stream():
            return source.stream_id
        case Table():
            return source.table_id
        case View():
            return f"{source.name}/{source.created_at}"
