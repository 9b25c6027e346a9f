"""The key of edges: the columns of EMIT … BY. All events of a key must lie in one partition of the stream.

EMIT over a table without a stream reads the stream of the table's changes. The key of its edges is the PRIMARY KEY.
"""

from __future__ import annotations

from collections.abc import Sequence

from grouping.binding.bound import Bound, Leaf, with_leaves
from grouping.binding.budget import Budget
from grouping.binding.scope import Scope
from grouping.compiler.frames.framed_query import settled
from grouping.compiler.from_clause import Relation
from grouping.compiler.normalize import conjuncts_of
from grouping.model.catalog import Stream
from grouping.model.expression import Column, TableColumn, stored_reference
from grouping.model.refusals import unsupported
from grouping.model.table import Table
from grouping.plan.computation import Computation
from grouping.plan.expression_text import render_name, render_reference
from grouping.plan.row_before import EDGE, RowBefore
from grouping.plan.table_changes import table_changes
from grouping.statements.clauses import EmitClause, KeyName
from grouping.statements.refused_forms import check_words

__all__ = [
    "bind_key",
    "changes_scope",
    "check_covered",
    "check_unconditional",
    "key_column",
    "key_columns",
    "row_key",
    "with_edge",
    "with_row_before",
]

_KEY = "_key"


def with_row_before(scope: Scope, emit: EmitClause, table: Table | None, *, aggregation: bool) -> Scope:
    """Return the scope of a query with EMIT: its computation pairs each row with the previous row of its key.

    Args:
        scope: FROM.
        emit: EMIT.
        table: The table of FROM, if FROM has no stream.
        aggregation: Whether the query has aggregates.
    """
    if emit.edge == "changes" and table is None:
        check_words(("EMIT", "CHANGES"))
    if emit.without_by is not None and table is None:
        raise emit.without_by
    if aggregation:
        if emit.edge == "changes":
            raise unsupported("EMIT CHANGES with aggregates", "Each change is of a single row.", "Name the columns.")
        raise unsupported(
            "EMIT ON ENTER or EXIT with aggregates",
            "Edges belong to single events.",
            "Leave EMIT out: HAVING decides at each tick of EVERY.",
        )
    before = bind_key(scope, emit.by) if table is None else _table_key(scope, table, emit)
    assert scope.stream is not None, "a table alone is no scope"
    return scope._replace(computation=Computation.of(scope.stream.stream_id, scope.nodes, before))


def bind_key(scope: Scope, names: Sequence[KeyName]) -> RowBefore:
    """Return the node that pairs each row of FROM with the previous row of the same key.

    Args:
        scope: FROM with its joins.
        names: The columns of BY.

    Raises:
        InputError: ``unknown-column``; ``unsupported-query`` if edges are not defined for these rows or this key.
    """
    assert scope.stream is not None, "a table alone was refused"
    columns = key_columns(scope, scope.stream, names)
    missing = [each for each in scope.row_keys if stored_reference(each) not in {column.stored for column in columns}]
    if missing or any(node.undecided for node in scope.nodes):
        by = f" or name {', '.join(map(render_reference, missing))} in BY" if missing else ""
        raise unsupported(
            "EMIT ON ENTER or EXIT over a join that may meet several rows",
            "The previous event of a key would then have several rows.",
            f"Join the table by its whole PRIMARY KEY{by}.",
        )
    return RowBefore.of(columns, settled(conjuncts_of(scope.where)))


def key_columns(scope: Scope, stream: Stream, names: Sequence[KeyName]) -> frozenset[Column]:
    """Return the columns of BY; check that all events of a key lie in one partition of the stream.

    Raises:
        InputError: ``unknown-column``; ``unsupported-query`` for a column or a key that BY cannot have.
    """
    columns = frozenset(key_column(*scope.resolve(name.qualifier, name.name, quoted=name.quoted)) for name in names)
    check_covered(stream, {column.stored for column in columns}, "BY")
    return columns


def check_unconditional(scope: Scope, shown: str) -> None:
    """Refuse FROM with conditions, such as a view with WHERE.

    The rows that such a condition removes would have to be left out before the rows of FROM are compared.

    Args:
        scope: FROM.
        shown: The part of the query that does not support such conditions, for the error.

    Raises:
        InputError: ``unsupported-query``.
    """
    if scope.where:
        raise unsupported(
            shown,
            "WHERE of a view or subquery, or a condition of ON besides equalities, would decide which events exist.",
            "Write the condition in WHERE of the CQ.",
        )


def key_column(shown: str, bound: Bound) -> Column:
    """Return the column of BY as a column of the stream.

    Args:
        shown: The column's name.
        bound: The column's bound tree.

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


def _table_key(scope: Scope, table: Table, emit: EmitClause) -> RowBefore:
    """Return the node that pairs each record of a table with the previous row of its PRIMARY KEY."""
    if emit.edge != "changes":
        check_unconditional(scope, "EMIT ON ENTER or EXIT over a view of a table with conditions")
    return row_key(table, emit)


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
