"""CREATE VIEW and DROP VIEW. A view is a name for a SELECT."""

from __future__ import annotations

from gateway.access.source_rights import SourceRights
from gateway.model.records import instant
from gateway.sources.declarations import Declaration, check_name, check_unread, reading_views
from gateway.state.working_copy import WorkingCopy
from grouping.compiler.plan import plan_view
from grouping.model.catalog import Catalog
from grouping.model.query import CreateView
from grouping.model.source_access import Access
from grouping.model.table import View

__all__ = ["create_view", "describe_view", "drop_view"]


def create_view(declaration: Declaration, statement: CreateView) -> View:
    """Declare a view. Its SELECT must be valid as a query of the sender.

    Raises:
        InputError: stream-exists, quota-exceeded, and the errors of the SELECT.
    """
    _, working, catalog, origin = declaration
    check_name(catalog, statement.name)
    declaration.check_count("view", working.inventory.views.values())
    reads = tuple(sorted(plan_view(statement.select, catalog)))
    access, created_at = Access(statement.access), instant(origin.accepted_ms)
    view = View(statement.name, statement.select, reads, created_at, origin.owner, access)
    working.unit.sources.add_view(view)
    catalog.whole.add(view)
    return view


def drop_view(rights: SourceRights, working: WorkingCopy, catalog: Catalog, name: str, subscriber: str) -> View:
    """Drop a view that no CQ and no other view reads.

    Raises:
        InputError: unknown-stream, not-allowed, stream-in-use.
    """
    view = catalog.view(name)
    rights.check_owner(subscriber, view, "DROP VIEW")
    cqs = working.unit.sources.view_cqs(view.name)
    check_unread(catalog, "view", view.name, cqs, reading_views(working.inventory, view.name))
    working.unit.sources.remove_view(view.name)
    catalog.whole.remove(view)
    return view


def describe_view(view: View) -> dict[str, object]:
    """Return the description of a view for the replies to CREATE VIEW, DESCRIBE VIEW and SHOW VIEWS."""
    return {"view": view.name, "select": view.select, "reads": list(view.reads), "created_at": view.created_at}
