"""The key of edges: the columns of EMIT … BY, which must hold a key that the stream's partitions keep together."""

from __future__ import annotations

from collections.abc import Sequence

from grouping.binding.bound import Bound
from grouping.binding.scope import Scope
from grouping.model.catalog import Stream
from grouping.model.expression import Column
from grouping.model.refusals import unsupported
from grouping.plan.expression_text import render_name
from grouping.plan.row_before import EDGE, RowBefore
from grouping.statements.clauses import KeyName

__all__ = ["bind_key", "check_covered", "key_column", "with_edge"]

_KEY = "_key"


def bind_key(scope: Scope, names: Sequence[KeyName]) -> RowBefore:
    """Return the node that gives each row of FROM the row before it of the same key.

    Args:
        scope: FROM with its joins.
        names: The columns of BY.

    Raises:
        InputError: ``unknown-column``; ``unsupported-query`` where edges of these rows or by this key cannot be told.
    """
    if scope.where:
        raise unsupported(
            "EMIT ON ENTER or EXIT over a view or join with conditions",
            "WHERE of a view or subquery, or a condition of ON besides equalities, would decide which events exist.",
            "Write the condition in WHERE of the CQ.",
        )
    if any(not node.single for node in scope.nodes):
        raise unsupported(
            "EMIT ON ENTER or EXIT over a join that may meet several rows",
            "The event before would be several rows.",
            "Join the table by its whole PRIMARY KEY.",
        )
    assert scope.stream is not None, "a table alone was refused"
    columns = frozenset(key_column(*scope.resolve(name.qualifier, name.name, quoted=name.quoted)) for name in names)
    check_covered(scope.stream, {column.stored for column in columns}, "BY")
    return RowBefore.of(columns)


def key_column(shown: str, bound: Bound) -> Column:
    """Return the column of a key.

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
        clause: The words before the columns in the query.

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


def with_edge(scope: Scope) -> Scope:
    """Return a scope in which the SELECT list can name ``_edge``, the edge of a result."""
    first, *others = scope.sources
    fields = {**first.fields, EDGE.stored: (EDGE.stored, EDGE)}
    return scope._replace(sources=(first._replace(fields=fields), *others))
