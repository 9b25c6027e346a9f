"""Views: names for SELECTs. A query reads FROM a view as FROM a subquery with the view's text."""

from __future__ import annotations

import msgspec

from grouping.model.source_access import Access

__all__ = ["View"]


class View(msgspec.Struct, frozen=True):
    """A view. After its creation, only GRANT and REVOKE change it."""

    name: str
    select: str
    """The SELECT's text."""
    reads: tuple[str, ...]
    """The names of the streams, tables and views after its FROM and JOIN, spelt as these were created."""
    created_at: str
    owner: str = ""
    """The subscriber that created the view; the view counts against the limits of this subscriber."""
    access: Access = Access()
    """The subscribers besides the owner that may read the view; they need no grant on the view's sources."""
