"""The rights on streams, tables and views: who may read, drop and grant them."""

from __future__ import annotations

from gateway.access.roles import is_operator
from grouping.model.catalog import Catalog, Stream
from grouping.model.errors import InputError
from grouping.model.query import SourceKind
from grouping.model.table import Table, View
from grouping.settings.settings import Settings

__all__ = ["Source", "SourceRights", "kind_of"]

Source = Stream | Table | View


class SourceRights:
    """The rights of subscribers on sources, which follow from the owners, the grants and the settings."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._default = settings.streams.access

    def is_operator(self, subscriber: str) -> bool:
        """Tell whether a subscriber is an operator, who may see the sources and groups of all subscribers."""
        return is_operator(self._settings, subscriber)

    def may_read(self, subscriber: str, source: Source) -> bool:
        """Tell whether a subscriber may read a source in queries. Other subscribers must not learn of the source."""
        if source.access.admits(subscriber, self._default) or source.owner == subscriber:
            return True
        return is_operator(self._settings, subscriber)

    def seen_by(self, subscriber: str, catalog: Catalog) -> Catalog:
        """Return the sources of a catalog that a subscriber may read."""
        return catalog.seen_by(lambda source: self.may_read(subscriber, source))

    def described(self, source: Source) -> dict[str, object]:
        """Return the owner and access of a source, for replies."""
        return {"owner": source.owner or None, "access": source.access.kind or self._default}

    def owns(self, subscriber: str, source: Source) -> bool:
        """Tell whether a subscriber may drop and alter a source, and grant and revoke access to it.

        The owner of the source may, and operators may.

        A source without an owner, from an early version of the product, belongs to everybody.
        """
        return source.owner in (subscriber, "") or is_operator(self._settings, subscriber)

    def check_owner(self, subscriber: str, source: Source, act: str) -> None:
        """Check that a subscriber may drop or alter a source, or grant or revoke access to it.

        Args:
            subscriber: The sender of the statement, who must have the right to read the source.
            source: The source.
            act: The first words of the statement, in capitals, for the message: "DROP STREAM", for example.

        Raises:
            InputError: ``not-allowed``.
        """
        if not self.owns(subscriber, source):
            kind = kind_of(source)
            raise InputError(
                f'{kind} "{source.name}" belongs to another subscriber',
                code="not-allowed",
                detail=f'Its owner is "{source.owner}".',
                hint=f"{act} is for its owner and for operators.",
            )


def kind_of(source: Source) -> SourceKind:
    """Return the kind of a source: ``stream``, ``table`` or ``view``."""
    return "stream" if isinstance(source, Stream) else "table" if isinstance(source, Table) else "view"
