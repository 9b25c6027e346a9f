"""CREATE VIEW and DROP VIEW: names for SELECTs."""

from __future__ import annotations

from gateway.model.records import instant
from gateway.registry.source_topics import check_name
from gateway.state.working_copy import WorkingCopy
from grouping.compiler.plan import plan_view
from grouping.model.catalog import Catalog
from grouping.model.errors import InputError
from grouping.model.query import CreateView, DropView
from grouping.model.view import View
from grouping.model.wording import are, counted
from grouping.settings import Settings

__all__ = ["create_view", "describe_view", "drop_view"]


def create_view(
    settings: Settings, working: WorkingCopy, catalog: Catalog, statement: CreateView, owner: str, now_ms: int
) -> View:
    """Declare a view, whose SELECT must be one that a query could read.

    Raises:
        InputError: stream-exists, quota-exceeded; and what is wrong with its SELECT.
    """
    check_name(catalog, statement.name)
    own = sum(view.owner == owner for view in working.inventory.views.values())
    if own >= (limit := settings.limits.views_per_subscriber):
        raise InputError(
            f'subscriber "{owner}" has too many views',
            code="quota-exceeded",
            detail=f"There {are(own)} {own}; the limit is {limit}.",
            hint="Drop views that are not needed any more.",
        )
    reads = plan_view(statement.select, catalog)
    view = View(statement.name, statement.select, tuple(sorted(reads)), instant(now_ms), owner)
    working.unit.add_view(view)
    catalog.add(view)
    return view


def drop_view(working: WorkingCopy, catalog: Catalog, statement: DropView) -> View:
    """Forget a view that no CQ and no other view reads.

    Raises:
        InputError: unknown-stream, stream-in-use.
    """
    view = catalog.view(statement.name)
    views = sorted(each.name for each in working.inventory.views.values() if view.name in each.reads)
    cqs = working.unit.view_cqs(view.name)
    if views or cqs:
        uses = [counted(cqs, "CQ")] if cqs else []
        uses += [f"{counted(len(views), 'view')} ({', '.join(views)})"] if views else []
        raise InputError(
            f'view "{view.name}" is in use',
            code="stream-in-use",
            detail=f"It is read by {' and '.join(uses)}.",
            hint="Drop these first.",
        )
    working.unit.remove_view(view.name)
    catalog.remove(view)
    return view


def describe_view(view: View) -> dict[str, object]:
    """Return a view as CREATE VIEW, DESCRIBE VIEW and SHOW VIEWS answer it."""
    return {"view": view.name, "select": view.select, "reads": list(view.reads), "created_at": view.created_at}
