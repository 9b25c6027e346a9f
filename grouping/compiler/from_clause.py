"""FROM and JOIN: sources are combined into a scope and, if tables are joined, a computation.

A view or a subquery is inlined: its columns become expressions, and its WHERE becomes a condition of the query. So a
query that names a view is in the same group as the query that contains the view's text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from msgspec.structs import replace
from sqlglot import exp

from grouping.binding.bind import Binder
from grouping.binding.bound import Bound, Leaf, Term, with_leaves, without_positions
from grouping.binding.budget import Budget
from grouping.binding.constants import settle
from grouping.binding.operands import boolean, comparable
from grouping.binding.scope import BoundSource, Scope, stream_source
from grouping.compiler.join_conditions import divide, find_keys, split, without_keys
from grouping.compiler.normalize import conjuncts_of, normalize
from grouping.compiler.order import order
from grouping.model.catalog import Catalog, Stream
from grouping.model.errors import InputError
from grouping.model.expression import LEFT_ON, Column, TableColumn, Value
from grouping.model.refusals import unsupported
from grouping.model.sql_type import BOOLEAN, STRING
from grouping.model.table import Table, View
from grouping.plan.computation import Computation
from grouping.plan.lookup_join import LookupJoin, table_columns

__all__ = ["InlinedSelect", "Relation", "read_from"]


class InlinedSelect(NamedTuple):
    """The plan of a view or a subquery, whose columns the enclosing query reads by name."""

    base: Stream | Table
    scope: Scope | None
    """The scope of the SELECT over a stream; None for a SELECT over a table without a stream."""
    where: tuple[Bound, ...]
    columns: tuple[tuple[str, Bound], ...]


class Relation(NamedTuple):
    """A source after FROM or JOIN, before joining."""

    base: Stream | Table
    source: BoundSource
    where: tuple[Bound, ...] = ()
    scope: Scope | None = None
    """The scope of the SELECT of a view or subquery over a stream; None for other sources."""

    def scope_alone(self, budget: Budget) -> Scope:
        """Return the scope of a SELECT over a table without a stream."""
        return Scope(None, (self.source,), budget, where=self.where)


Inline = Callable[[exp.Select | View], InlinedSelect]
"""A function that returns the plan of a view or a subquery."""


def read_from(tree: exp.Select, catalog: Catalog, inline: Inline, budget: Budget) -> Scope | Relation:
    """Return the source of a SELECT: the scope of a stream and its joined tables, or the relation of a single table.

    Raises:
        InputError: ``unknown-stream``, ``unknown-column``, ``type-mismatch``; ``unsupported-query`` for unsupported
            joins.
    """
    source = tree.args.get("from_")
    if source is None:
        raise InputError(
            "the SELECT has no FROM", code="syntax-error", detail="A query reads a stream.", hint="Name a stream."
        )
    first = _relation(source.this, catalog, inline)
    joins = tree.args.get("joins") or []
    if isinstance(first.base, Table):
        if joins:
            raise unsupported(
                "a join that begins with a table", "Results come from a stream's events.", "Write the stream first."
            )
        return first
    if first.scope is None:
        scope = Scope(first.base, (first.source,), budget, where=first.where)
    else:
        scope = first.scope._replace(sources=(first.source,), where=first.where)
    for join in joins:
        scope = _joined(scope, join, catalog, inline)
    return scope


def _relation(node: exp.Expr, catalog: Catalog, inline: Inline) -> Relation:
    """Return the relation of an item after FROM or JOIN."""
    if isinstance(node, exp.Subquery):
        select = node.this
        if not isinstance(select, exp.Select):
            raise unsupported("a subquery that is no SELECT", "FROM takes a SELECT in parentheses.")
        return _inlined(inline(select), _alias(node) or "the subquery", "subquery")
    if not isinstance(node, exp.Table) or not all(isinstance(part, exp.Identifier) for part in node.parts):
        raise unsupported("a table function", "FROM names streams, tables and views.")
    for name, value in node.args.items():
        if value and name not in ("this", "db", "catalog", "alias", "joins"):
            raise unsupported(f"{name.strip('_').upper()} after FROM", "FROM names streams, tables and views.")
    alias = _alias(node)
    base = catalog.source(".".join(part.name for part in node.parts))
    if isinstance(base, View):
        return _inlined(inline(base), alias or base.name, "view", base.name)
    if isinstance(base, Table):
        return Relation(base, _table_source(base, alias))
    return Relation(base, stream_source(base, alias))


def _alias(node: exp.Expr) -> str | None:
    alias = node.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        raise unsupported("renaming columns after FROM", "An alias renames the source only.")
    return alias.name if alias is not None else None


def _inlined(select: InlinedSelect, name: str, kind: str, own_name: str = "") -> Relation:
    columns = {shown.casefold(): (shown, value) for shown, value in select.columns}
    return Relation(select.base, BoundSource(name, columns, {}, kind, own_name=own_name), select.where, select.scope)


def _table_source(table: Table, alias: str | None) -> BoundSource:
    declared = zip(table.columns, table_columns(table, table.name), strict=True)
    columns = {column.name.casefold(): (column.name, joined) for column, joined in declared}
    return BoundSource(alias or table.name, columns, {}, "table", own_name=table.name)


# -- joins -------------------------------------------------------------------------------------------------------------


def _joined(scope: Scope, node: exp.Join, catalog: Catalog, inline: Inline) -> Scope:
    """Return the scope with one more table."""
    outer = _check_kind(node)
    right = _relation(node.this, catalog, inline)
    if not isinstance(right.base, Table):
        raise unsupported(
            "a join of two streams",
            f'"{right.source.name}" is {_kind(right)}. A CQ does not join two streams.',
            "Join the stream with a table (CREATE TABLE).",
        )
    table, prefix = right.base, _free_prefix(scope, right.base.name)
    if prefix != table.name:
        right = _renamed(right, table.name, prefix)
    if any(right.source.name.casefold() == source.name.casefold() for source in scope.sources):
        raise InputError(
            f'"{right.source.name}" names two sources',
            code="syntax-error",
            detail="A column's qualifier would be ambiguous.",
            hint="Give one of them an alias.",
        )
    conditions, merged = _conditions(scope, right, node)
    keys, rest = split(conditions, prefix, table, outer)
    if not keys:
        raise without_keys(conditions, prefix, right.source.name)
    single = {key.column for key in keys} >= set(table.key)
    free, bound = divide(rest, prefix, outer=outer)
    join = LookupJoin(table.table_id, prefix, tuple(keys), outer, single=single)
    source = right.source._replace(merged=merged)
    if not single:
        equal, _ = find_keys(conditions, prefix)
        join = replace(join, unique={*table.key} <= {*equal}, undecided=bool(outer and bound))
    if outer and single and bound:
        source = _conditional(source, (*free, *bound))
        free = bound = ()
    elif outer and bound:
        # The constants of the condition are lifted, so the group evaluates the condition and decides which rows join.
        bound = (Term(LEFT_ON, (Value(prefix, str(STRING)), _all_of(bound)), BOOLEAN),)
    elif single and not outer:
        free, bound = (), rest
    join = replace(join, rest=tuple(map(settle, order(free)[0])))
    assert scope.stream is not None, "the first source is a stream"
    computation = Computation.of(scope.stream.stream_id, (*scope.nodes, join))
    own = tuple(TableColumn(prefix, name) for name in table.key if name not in {key.column for key in keys})
    return scope._replace(
        sources=(*scope.sources, source),
        computation=computation,
        where=(*scope.where, *bound),
        row_keys=(*scope.row_keys, *own),
    )


def _kind(right: Relation) -> str:
    kind = right.source.kind
    return "a stream" if kind == "stream" else f'a {kind} over stream "{right.base.name}"'


def _check_kind(node: exp.Join) -> bool:
    """Tell whether a join is a LEFT join; refuse all but LEFT and inner joins."""
    side, kind, method = (str(node.args.get(name) or "").upper() for name in ("side", "kind", "method"))
    if method or kind not in ("", "INNER", "OUTER"):
        what = f"{method or kind} JOIN"
        what = what if what != "CROSS JOIN" else "a join without an equality"
        raise unsupported(what, "ON names the joined columns.")
    if side in ("RIGHT", "FULL"):
        raise unsupported(f"{side} JOIN", "A result belongs to an event of the stream.", "Use JOIN or LEFT JOIN.")
    if not node.args.get("on") and not node.args.get("using"):
        raise unsupported("a join without an equality", "ON or USING names the joined columns.", "Write JOIN … ON.")
    return side == "LEFT"


def _free_prefix(scope: Scope, name: str) -> str:
    taken = {node.prefix for node in scope.nodes}
    number, prefix = 1, name
    while prefix in taken:
        number += 1
        prefix = f"{name} {number}"
    return prefix


def _renamed(relation: Relation, old: str, new: str) -> Relation:
    """Return a relation with another prefix of its columns, for a table that the query joins more than once."""

    def rename(leaf: Leaf) -> Leaf:
        if not isinstance(leaf, Column):
            return leaf
        match leaf.reference:
            case TableColumn(prefix, name) if prefix == old:
                return Column.of(TableColumn(new, name), leaf.type_text)
        return leaf

    columns = {name: (shown, with_leaves(value, rename)) for name, (shown, value) in relation.source.columns.items()}
    where = tuple(with_leaves(condition, rename) for condition in relation.where)
    return relation._replace(source=relation.source._replace(columns=columns), where=where)


def _conditions(scope: Scope, right: Relation, node: exp.Join) -> tuple[list[Bound], frozenset[str]]:
    """Return the conditions of a join as conjuncts, and the names of the columns of USING.

    If the right side is a view or a subquery, the conjuncts of its WHERE come first.
    """
    both = scope._replace(sources=(*scope.sources, right.source))
    conditions = conjuncts_of(right.where)
    using = node.args.get("using") or []
    for identifier in using:
        _, left = scope.resolve("", identifier.name)
        _, merged = both.resolve(right.source.name, identifier.name)
        conditions += normalize(Term("=", comparable((left, merged)), BOOLEAN))
    condition = node.args.get("on")
    if condition is not None:
        conditions += normalize(boolean(Binder(both).bind(condition), "ON"))
    return conditions, frozenset(identifier.name.casefold() for identifier in using)


def _all_of(conditions: tuple[Bound, ...]) -> Bound:
    return conditions[0] if len(conditions) == 1 else Term("and", conditions, BOOLEAN)


def _conditional(source: BoundSource, conditions: tuple[Bound, ...]) -> BoundSource:
    """Return the table of a LEFT JOIN by the primary key, with further conditions in ON.

    The table's columns are NULL unless these conditions are TRUE. The conditions are put in canonical order, so that
    equal SELECT lists stay equal if the order in ON differs.
    """
    condition = without_positions(_all_of(order(conditions)[0]))
    columns = {
        name: (shown, Term("case", (condition, value), value.type)) for name, (shown, value) in source.columns.items()
    }
    return source._replace(columns=columns)
