"""From a SELECT's text to bound trees: names looked up, operands typed, everything else refused by its name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from sqlglot import exp

from grouping.compiler.bind import Binder
from grouping.compiler.bound import Bound
from grouping.compiler.operands import boolean, unsupported
from grouping.compiler.select_text import read_select
from grouping.model.catalog import Catalog, Stream
from grouping.model.errors import InputError
from grouping.model.expression import Column

__all__ = ["BoundItem", "BoundQuery", "plan"]


class BoundItem(NamedTuple):
    """One output column."""

    name: str
    value: Bound


class BoundQuery(NamedTuple):
    """A SELECT over one stream, its names looked up."""

    stream: Stream
    where: Bound | None
    items: tuple[BoundItem, ...]


_PARTS = {
    "with_": ("WITH", "Common table expressions are not kept running."),
    "distinct": ("DISTINCT", "Each event is a result of its own."),
    "joins": ("a join", "A query is over one stream."),
    "laterals": ("LATERAL VIEW", "A query is over one stream."),
    "group": ("GROUP BY", "Aggregates are not kept running."),
    "having": ("HAVING", "Aggregates are not kept running."),
    "qualify": ("QUALIFY", "Windows are not kept running."),
    "windows": ("WINDOW", "Windows are not kept running."),
    "order": ("ORDER BY", "Results come in the order of their events."),
    "sort": ("SORT BY", "Results come in the order of their events."),
    "cluster": ("CLUSTER BY", "Results come in the order of their events."),
    "distribute": ("DISTRIBUTE BY", "Results come in the order of their events."),
    "limit": ("LIMIT", "A standing query has no last result."),
    "offset": ("OFFSET", "A standing query has no last result."),
    "into": ("INTO", "Results go where PUBLISH says."),
}
"""The parts of a SELECT that are refused, and why."""

_KEPT = frozenset(("expressions", "from_", "where"))


def plan(select: str, catalog: Catalog) -> BoundQuery:
    """Return what a SELECT means over the streams that there are.

    Raises:
        InputError: With the code of contract §3 that says what is wrong.
    """
    tree = read_select(select)
    for name, value in tree.args.items():
        if value and name not in _KEPT:
            raise unsupported(*_PARTS.get(name, (name.strip("_").upper(), "It is no part of a standing query.")))
    stream, qualifiers = _stream(tree, catalog)
    binder = Binder(stream, qualifiers)
    where = tree.args.get("where")
    condition = boolean(binder.bind(where.this), "WHERE") if where else None
    return BoundQuery(stream, condition, _items(tree.expressions, binder))


def _stream(tree: exp.Select, catalog: Catalog) -> tuple[Stream, frozenset[str]]:
    """Return the stream after FROM, and the names that may stand before its columns' dots."""
    source = tree.args.get("from_")
    if source is None:
        raise InputError(
            "the SELECT has no FROM", code="syntax-error", detail="It is over no stream.", hint="Name a stream."
        )
    table = source.this
    if isinstance(table, exp.Subquery):
        raise unsupported("a subquery", "FROM names one stream.")
    if not isinstance(table, exp.Table) or not all(isinstance(part, exp.Identifier) for part in table.parts):
        raise unsupported("a table function", "FROM names one stream.")
    for name, value in table.args.items():
        if value and name not in ("this", "db", "catalog", "alias"):
            raise unsupported(f"{name.strip('_').upper()} after FROM", "FROM names one stream.")
    stream = catalog.stream(".".join(part.name for part in table.parts))
    alias = table.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        raise unsupported("renaming columns after FROM", "An alias names the stream only.")
    return stream, frozenset((alias.name.casefold() if alias is not None else stream.name.casefold(),))


def _items(expressions: Iterable[exp.Expr], binder: Binder) -> tuple[BoundItem, ...]:
    items: list[BoundItem] = []
    for expression in expressions:
        items += _item(expression, binder)
    if not items:
        raise InputError("the SELECT list is empty", code="syntax-error", detail="It names no column.", hint="Write *.")
    seen: set[str] = set()
    for item in items:
        if item.name.casefold() in seen:
            raise unsupported(
                f'a second column "{item.name}"',
                "The names in a SELECT list must differ.",
                "Give one of them an alias.",
            )
        seen.add(item.name.casefold())
    return tuple(items)


def _item(expression: exp.Expr, binder: Binder) -> Iterable[BoundItem]:
    if isinstance(expression, exp.Star) or (
        isinstance(expression, exp.Column) and isinstance(expression.this, exp.Star)
    ):
        star = expression if isinstance(expression, exp.Star) else expression.this
        if any(star.args.values()):
            raise unsupported("* with EXCEPT or REPLACE", "* stands for all columns.", "Name the columns.")
        if isinstance(expression, exp.Column):
            binder.check_qualifier(expression)
        return [BoundItem(column.name, Column(column.name, column.type)) for column in binder.stream.columns]
    if isinstance(expression, exp.Alias):
        return [BoundItem(expression.alias, binder.bind(expression.this))]
    value = binder.bind(expression)
    if not isinstance(value, Column):
        raise unsupported("an expression without an alias", "A result needs a name for it.", "Add AS and a name.")
    return [BoundItem(value.name, value)]
