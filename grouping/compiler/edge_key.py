"""The key of edges: the columns of EMIT … BY. All events of a key must lie in one partition of the stream.

EMIT over a table without a stream reads the stream of the table's changes, and its key is the PRIMARY KEY.

With UNTIL, a key that entered stays in until a second condition is TRUE. If no event makes WHERE and UNTIL both TRUE,
the last event for which one of them was TRUE decides whether the key is in. WHERE and UNTIL must be opposite bounds of
one column: then a worker finds this event for all constants at once (`spark_jobs/engine/rows/extremes.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from sqlglot import exp

from grouping.binding.bound import Bound, Leaf, with_leaves
from grouping.binding.budget import Budget
from grouping.binding.scope import Scope
from grouping.compiler.aggregate_binder import has_aggregates
from grouping.compiler.from_clause import Relation
from grouping.model.catalog import Stream
from grouping.model.errors import InputError
from grouping.model.expression import Call, Column, Expression, Slot, TableColumn, walk
from grouping.model.group import ConstantRow
from grouping.model.refusals import unsupported
from grouping.model.sql_type import BIGINT, DATE, DOUBLE, FLOAT, INT, SMALLINT, TIMESTAMP, TINYINT
from grouping.model.table import Table
from grouping.plan.expression_text import render_name, render_part
from grouping.plan.row_before import EDGE, RowBefore
from grouping.plan.stay import Stay, StayBound
from grouping.plan.table_changes import table_changes
from grouping.statements.clauses import EmitClause, KeyName
from grouping.statements.select_text import read_select

__all__ = [
    "STAY_TYPES",
    "bind_key",
    "changes_scope",
    "check_bounds",
    "check_covered",
    "check_unconditional",
    "checked_stay",
    "key_column",
    "read_until",
    "row_key",
    "with_edge",
]

_KEY = "_key"
STAY_TYPES = frozenset((TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DATE, TIMESTAMP))
"""The types that the column of UNTIL may have."""
_FORM = "WHERE temp > 90 EMIT ON ENTER OR EXIT BY device UNTIL temp < 80."
_OPPOSITE = "UNTIL is one comparison of a column with a constant, and WHERE bounds the same column from the other side."


def bind_key(scope: Scope, names: Sequence[KeyName]) -> RowBefore:
    """Return the node that pairs each row of FROM with the previous row of the same key.

    Args:
        scope: FROM with its joins.
        names: The columns of BY.

    Raises:
        InputError: ``unknown-column``; ``unsupported-query`` if edges are not defined for these rows or this key.
    """
    check_unconditional(scope)
    if any(not node.single for node in scope.nodes):
        raise unsupported(
            "EMIT ON ENTER or EXIT over a join that may meet several rows",
            "The previous event of a key would then have several rows.",
            "Join the table by its whole PRIMARY KEY.",
        )
    assert scope.stream is not None, "a table alone was refused"
    columns = frozenset(key_column(*scope.resolve(name.qualifier, name.name, quoted=name.quoted)) for name in names)
    check_covered(scope.stream, {column.stored for column in columns}, "BY")
    return RowBefore.of(columns)


def check_unconditional(scope: Scope) -> None:
    """Refuse FROM with conditions, such as a view with WHERE: the conditions would decide which events exist.

    Raises:
        InputError: ``unsupported-query``.
    """
    if scope.where:
        raise unsupported(
            "EMIT ON ENTER or EXIT over a view or join with conditions",
            "WHERE of a view or subquery, or a condition of ON besides equalities, would decide which events exist.",
            "Write the condition in WHERE of the CQ.",
        )


def key_column(shown: str, bound: Bound) -> Column:
    """Return the column of BY as a column of the stream.

    Args:
        shown: The column's name.
        bound: Its bound tree.

    Raises:
        InputError: ``unsupported-query``.
    """
    if not isinstance(bound, Column):
        raise unsupported(f'BY of "{shown}"', "The column is computed by a view, subquery or join.", "Name a column.")
    if not bound.type.is_ordered:
        raise unsupported(f'BY of "{shown}"', f"Values of type {bound.type} cannot be compared for equality.")
    return bound


def check_covered(stream: Stream, by: set[str], clause: str) -> None:
    """Check that all events of a key lie in one partition.

    Args:
        stream: The stream.
        by: The columns of the key.
        clause: The words before the columns in the query, such as ``BY``.

    Raises:
        InputError: ``unsupported-query``.
    """
    key = stream.partition_key
    if (key and by.issuperset(key)) or (_KEY in by and _KEY in stream.record_fields):
        return
    if key:
        detail = f'PARTITION KEY of stream "{stream.name}" is ({", ".join(map(render_name, key))}).'
        hint = f"Write {clause} {', '.join(map(render_name, key))}; further columns may follow."
    else:
        detail = f'Stream "{stream.name}" does not say which events lie in one partition.'
        hint = (
            f"CREATE STREAM … (…, PARTITION KEY ({', '.join(map(render_name, sorted(by)))})) declares that events with "
            f"equal values lie in one partition; {clause} _key needs no declaration."
        )
    raise unsupported(f"{clause} without the stream's PARTITION KEY", detail, hint)


def with_edge(scope: Scope, emit: EmitClause | None) -> Scope:
    """Return a scope in which the SELECT list of a query with edges can name ``_edge``, the edge of a result."""
    if emit is None or emit.edge not in ("enter", "exit", "both"):
        return scope
    first, *others = scope.sources
    fields = {**first.fields, EDGE.stored: (EDGE.stored, EDGE)}
    return scope._replace(sources=(first._replace(fields=fields), *others))


# -- tables ----------------------------------------------------------------------------------------------------------


def changes_scope(table: Table, relation: Relation, budget: Budget) -> Scope:
    """Return the scope of a CQ's SELECT over a table without a stream, or over a view of a table.

    Args:
        table: The table.
        relation: The table or view that FROM names.
        budget: The budget of the query.
    """
    columns = {name: (shown, with_leaves(value, _plain)) for name, (shown, value) in relation.source.columns.items()}
    where = tuple(with_leaves(condition, _plain) for condition in relation.where)
    return Scope(table_changes(table), (relation.source._replace(columns=columns),), budget, where=where)


def _plain(leaf: Leaf) -> Leaf:
    """Return a column of the table as a column of the stream."""
    if isinstance(leaf, Column) and isinstance(reference := leaf.reference, TableColumn):
        return Column.of(reference.name, leaf.type_text)
    return leaf


def row_key(table: Table, emit: EmitClause) -> RowBefore:
    """Return the node that pairs each record of a table with the previous row of the same PRIMARY KEY.

    Raises:
        InputError: ``unsupported-query`` if BY does not name exactly the columns of the PRIMARY KEY.
    """
    key = {name.casefold() for name in table.key}
    if emit.by and {name.name.casefold() for name in emit.by} != key:
        raise unsupported(
            "BY of a table with other columns than its PRIMARY KEY",
            f'PRIMARY KEY of table "{table.name}" is ({", ".join(map(render_name, table.key))}).',
            "Leave BY out.",
        )
    types = {column.name: column.type_text for column in table.columns}
    return RowBefore.of(frozenset(Column.of(name, types[name]) for name in table.key))


# -- UNTIL -----------------------------------------------------------------------------------------------------------


def read_until(text: str) -> exp.Expr:
    """Return the condition of UNTIL.

    Args:
        text: A SELECT with the condition in WHERE (`grouping.statements.clauses.EmitClause.until`).

    Raises:
        InputError: ``syntax-error``, or ``unsupported-query`` for a clause after the condition.
    """
    if text.rstrip().endswith("WHERE"):
        message, detail = "the condition of UNTIL is missing", "UNTIL ends the query."
        raise InputError(message, code="syntax-error", detail=detail, hint=f"Write {_FORM}")
    tree = read_select(text)
    others = sorted(
        name for name, value in tree.args.items() if value and name not in ("expressions", "from_", "where")
    )
    if others or has_aggregates(tree):
        name = others[0].strip("_").upper() if others else "an aggregate"
        raise unsupported(f"{name} behind UNTIL", "UNTIL has a condition, as WHERE has.", f"Write {_FORM}")
    condition: exp.Expr = tree.args["where"].this
    return condition


def checked_stay(by: Sequence[Column], where: Sequence[Expression], until: Sequence[Expression]) -> Stay:
    """Return the bounds of WHERE and of UNTIL.

    Args:
        by: The columns of the key.
        where: The conjuncts of WHERE, over slots.
        until: The conjuncts of UNTIL, over slots.

    Raises:
        InputError: ``unsupported-query`` for conditions of another form.
    """
    ending = _bound(until[0]) if len(until) == 1 else None
    if ending is None:
        raise unsupported(f'UNTIL "{" AND ".join(map(render_part, until))}"', _OPPOSITE, f"Write {_FORM}")
    if ending.column.type not in STAY_TYPES:
        raise unsupported(
            f"UNTIL with a column of type {ending.column.type}",
            "The column of UNTIL is a number other than DECIMAL, a DATE or a TIMESTAMP.",
            "Declare the column as DOUBLE or BIGINT.",
        )
    beginnings = [found for conjunct in where if (found := _bound(conjunct)) is not None and found.opposes(ending)]
    if len(beginnings) != 1:
        name = render_part(ending.column)
        raise unsupported(
            f'UNTIL "{render_part(until[0])}" without one opposite bound of {name} in WHERE',
            _OPPOSITE,
            f"Write {_FORM}",
        )
    keys = frozenset(column.stored for column in by if column.type not in (FLOAT, DOUBLE))
    for conjunct in where:
        leaves = [leaf for leaf in walk(conjunct) if isinstance(leaf, Column)]
        if conjunct != beginnings[0].conjunct and any(leaf.stored not in keys for leaf in leaves):
            raise unsupported(
                f'UNTIL beside "{render_part(conjunct)}" in WHERE',
                "Beside the bound, WHERE has conditions over the columns of BY alone.",
                "Leave the condition out, or name its columns in BY.",
            )
    return Stay(beginnings[0], ending)


def _bound(conjunct: Expression) -> StayBound | None:
    match conjunct:
        case Call(op, (Column(reference=str() | TableColumn()) as column, Slot(slot))) if op in ("<", "<=", ">", ">="):
            return StayBound(op, column, slot)
    return None


def check_bounds(stay: Stay, row: ConstantRow) -> None:
    """Check that no event makes both WHERE and UNTIL TRUE.

    Raises:
        InputError: ``unsupported-query``.
    """
    begin, end = (row.values[bound.slot] for bound in (stay.begin, stay.end))
    if begin is None or end is None:
        return
    lower, upper = (begin, end) if stay.begin.above else (end, begin)
    least, most = _order(lower), _order(upper)
    if least < most or (least == most and "=" in stay.begin.op and "=" in stay.end.op):
        raise unsupported(
            "an UNTIL that is TRUE together with WHERE",
            "An event between the two constants would make a key enter and leave.",
            f"Choose constants between which neither is TRUE: {_FORM}",
        )


def _order(value: object) -> tuple[bool, object]:
    """Return a sort key for a constant; NaN is above all numbers."""
    missing = isinstance(value, float) and math.isnan(value)
    return missing, 0.0 if missing else value
