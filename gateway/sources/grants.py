"""GRANT and REVOKE: the owner of a stream, table or view decides who may read it."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from gateway.access.source_rights import SourceRights
from gateway.sources.readers import FoundReaders, SourceReaders
from gateway.state.working_copy import WorkingCopy
from grouping.model.catalog import Catalog, Stream
from grouping.model.errors import InputError
from grouping.model.ids import Subscriber
from grouping.model.query import ChangeAccess
from grouping.model.source_access import Access
from grouping.model.table import Table, View

__all__ = ["SourceGrants", "readers_of"]

_MOST_READERS = 1_000
"""The largest number of subscribers that GRANT can name for a source. The number is limited because all names are in
the source's record and in replies."""
_DROPPED_AT_ONCE = 2_000
"""The largest number of CQs that a REVOKE … CASCADE drops, since a unit of work is limited to some thousand CQs."""


class SourceGrants:
    """Carries out GRANT and REVOKE within the working copy's unit."""

    def __init__(self, rights: SourceRights, working: WorkingCopy, readers: SourceReaders) -> None:
        self._rights = rights
        self._working = working
        self._readers = readers

    def change(self, statement: ChangeAccess, catalog: Catalog, subscriber: str) -> Stream | Table | View:
        """Change who may read a source, and return the changed source.

        Args:
            statement: The parsed command.
            catalog: The sources that the sender may see. The changed source replaces the old one in `catalog.whole`.
            subscriber: The sender.

        Raises:
            InputError: unknown-stream, not-allowed, quota-exceeded.
        """
        source = _find(catalog, statement)
        self._rights.check_owner(subscriber, source, "GRANT" if statement.granted else "REVOKE")
        changed = _with_access(source, _changed(source.access, statement))
        if len(changed.access.readers) > _MOST_READERS:
            raise InputError(
                f'{statement.kind} "{source.name}" has too many readers',
                code="quota-exceeded",
                detail=f"GRANT can name {_MOST_READERS} subscribers for one {statement.kind}.",
                hint="GRANT … TO ALL lets everybody read it.",
            )
        if statement.granted:
            self._readers.forget(source)
        if changed != source:
            _put(self._working, changed)
            catalog.whole.add(changed)
        return changed

    def losers(self, statement: ChangeAccess, source: Stream | Table | View) -> FoundReaders:
        """Return CQs whose subscribers have lost the right to read a source.

        Args:
            statement: The REVOKE, which must have been carried out already.
            source: The source after the REVOKE.

        Raises:
            StoreUnavailable: Redis does not answer.
        """
        names: Iterable[Subscriber] = map(Subscriber, statement.readers) if statement.readers else self._subscribers()
        losing = [name for name in names if not self._rights.may_read(name, source)]
        return self._readers.find(source, losing, _DROPPED_AT_ONCE)

    def _subscribers(self) -> list[Subscriber]:
        return self._working.subscribers()


def readers_of(source: Stream | Table | View) -> list[str] | str:
    """Return the subscribers that GRANT has named, in the form for replies to the owner: a list, or ``ALL``."""
    return "ALL" if source.access.everybody else list(source.access.readers)


def _find(catalog: Catalog, statement: ChangeAccess) -> Stream | Table | View:
    match statement.kind:
        case "stream":
            return catalog.stream(statement.name)
        case "table":
            return catalog.table(statement.name)
        case "view":
            return catalog.view(statement.name)


def _changed(access: Access, statement: ChangeAccess) -> Access:
    granted = statement.granted
    if not statement.readers:
        return msgspec.structs.replace(access, everybody=granted)
    named = set(statement.readers)
    readers = set(access.readers) | named if granted else set(access.readers) - named
    return msgspec.structs.replace(access, readers=tuple(sorted(readers)))


def _with_access(source: Stream | Table | View, access: Access) -> Stream | Table | View:
    return source if access == source.access else msgspec.structs.replace(source, access=access)


def _put(working: WorkingCopy, source: Stream | Table | View) -> None:
    sources = working.unit.sources
    match source:
        case Stream():
            sources.replace_stream(source)
        case Table():
            sources.put_table(source)
        case View():
            sources.add_view(source)
