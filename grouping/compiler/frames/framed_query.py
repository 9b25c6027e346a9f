"""Queries with window functions: the node of the frames, and the division of WHERE between this node and the group."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
from sqlglot import exp

from grouping.binding.bound import Bound, Constant, Term, nodes, without_positions
from grouping.binding.constants import settle
from grouping.binding.scope import Scope
from grouping.compiler.normalize import conjuncts_of, normalize
from grouping.compiler.order import order
from grouping.model.expression import Column, Expression
from grouping.model.refusals import unsupported
from grouping.model.sql_type import DOUBLE, FLOAT
from grouping.plan.computation import Computation
from grouping.plan.frame_value import FrameValue
from grouping.plan.frames import Frames
from grouping.plan.row_before import RowBefore
from grouping.statements.clauses import EmitClause

__all__ = [
    "PlacedConditions",
    "check_frames",
    "columns_of",
    "divided",
    "equal_column",
    "exact_columns",
    "has_frames",
    "place_conditions",
    "settled",
    "with_frames",
]


class PlacedConditions(NamedTuple):
    """The conditions of WHERE, divided between the group and the node below the group."""

    key: frozenset[Column]
    """The key, with the columns that are compared with constants for equality."""
    above: tuple[Bound, ...]
    """Conditions that the group decides; their constants are lifted."""
    below: tuple[Expression, ...]
    """Conditions by which the node selects its rows, in canonical order."""


def has_frames(tree: exp.Select) -> bool:
    """Tell whether a SELECT has QUALIFY, or window functions in its SELECT list.

    Raises:
        InputError: ``unsupported-query`` for a window function in WHERE.
    """
    where = tree.args.get("where")
    if where is not None and _has_window(where):
        raise unsupported(
            "a window function in WHERE",
            "WHERE decides which events the frames hold.",
            "Write the condition in QUALIFY, after WHERE.",
        )
    return bool(tree.args.get("qualify")) or any(map(_has_window, tree.expressions))


def _has_window(node: exp.Expr) -> bool:
    return any(isinstance(each, exp.Window) for each in node.walk(prune=lambda below: isinstance(below, exp.Subquery)))


def check_frames(
    scope: Scope | None, emit: EmitClause | None, *, outermost: bool, aggregation: bool, of_table: bool
) -> Scope:
    """Return the scope of a query with window functions; FROM must be a single stream without joins.

    Args:
        scope: The scope of FROM; None if FROM names only a table, and the query has no EMIT.
        emit: EMIT of the query.
        outermost: Whether the SELECT is the CQ's own, and not that of a view or subquery.
        aggregation: Whether the SELECT has GROUP BY or aggregates.
        of_table: Whether FROM names only a table.

    Raises:
        InputError: ``unsupported-query``.
    """
    if not outermost:
        detail = "Only the SELECT of the CQ itself can have window functions."
        raise unsupported("a window function in a view or subquery", detail, "Write the window function in the CQ.")
    if aggregation:
        raise unsupported(
            "a window function with GROUP BY or with an aggregate without OVER",
            "An aggregate without OVER is computed at each tick of EVERY.",
            "Write OVER after each aggregate, without GROUP BY.",
        )
    if scope is None or scope.nodes or of_table:
        detail = "Frames hold the events of one stream."
        raise unsupported("a window function over a table or a join", detail, "Read only the stream.")
    if emit is not None and emit.edge == "changes":
        detail = "The values of an event's frames never change."
        raise unsupported("EMIT CHANGES with window functions", detail, "Leave EMIT out.")
    return scope


def with_frames(
    scope: Scope,
    by: frozenset[Column],
    values: Iterable[FrameValue],
    where: Sequence[Bound],
    qualify: Bound | None,
    before: RowBefore | None,
) -> tuple[Scope, tuple[Bound, ...]]:
    """Return the scope of a query with window functions, and the conditions that its group decides.

    Args:
        scope: The scope of the stream.
        by: The columns of PARTITION BY.
        values: The window functions with their frames.
        where: The conditions from the WHERE clauses of the query and of the views that it reads.
        qualify: The condition of QUALIFY, if any.
        before: For a query with edges, the node that pairs each event with the previous event of its key.

    Raises:
        InputError: ``unsupported-query`` for QUALIFY without a window function.
    """
    if not by:
        raise unsupported("QUALIFY without a window function", "QUALIFY compares the values of frames.", "Write WHERE.")
    placed = place_conditions(by, where) if before is None else _below_edges(by, before, scope, where)
    decided = (*placed.above, *([] if qualify is None else [qualify]))
    assert scope.stream is not None, "a table alone was refused"
    if before is not None:
        read = {column.stored for each in decided for part in normalize(each) for column in columns_of(part)}
        before = msgspec.structs.replace(before, reads=tuple(sorted(read)))
    frames = Frames.of(placed.key, placed.below, values, shares=before is None)
    computation = Computation.of(scope.stream.stream_id, (), before, frames)
    return scope._replace(computation=computation), decided


def place_conditions(by: frozenset[Column], where: Sequence[Bound]) -> PlacedConditions:
    """Divide conditions between the node and the group above the node.

    The node selects its rows by its conditions. The group decides conditions that read only columns of the key, except
    for FLOAT and DOUBLE columns (`exact_columns`). A column that is compared with a constant for equality is added to
    the key, so that the constant can be lifted.

    Args:
        by: The columns of the key.
        where: The conditions from the WHERE clauses of the query and of the views that it reads.
    """
    conjuncts = conjuncts_of(where)
    keys = by | {column for each in conjuncts if (column := equal_column(each)) is not None}
    exact = exact_columns(keys)
    above: list[Bound] = []
    below: list[Bound] = []
    for each in conjuncts:
        (above if equal_column(each) is not None or columns_of(each) <= exact else below).append(each)
    return PlacedConditions(keys, tuple(above), settled(below))


def _below_edges(by: frozenset[Column], before: RowBefore, scope: Scope, where: Sequence[Bound]) -> PlacedConditions:
    """Divide conditions as `place_conditions` does, for edges.

    The group decides only conditions that have the same value for all events with an edge's key. All other conditions
    stay in the node, with their constants, because the node must find the events for which one of these conditions is
    not TRUE: such an event has no frames, and its key exits.

    `where` begins with the conditions of FROM (`scope.where`). They stay in the node too, although `before` decides
    them as well.
    """
    of_from, own = conjuncts_of(scope.where), conjuncts_of(where[len(scope.where) :])
    above, below = divided(own, exact_columns(by.intersection(before.by)))
    return PlacedConditions(by, above, settled((*of_from, *below)))


def divided(conjuncts: Iterable[Bound], fixed: set[Column]) -> tuple[tuple[Bound, ...], tuple[Bound, ...]]:
    """Return the conditions that read only columns of `fixed`, which a group can decide, and all other conditions."""
    above: list[Bound] = []
    below: list[Bound] = []
    for each in conjuncts:
        (above if columns_of(each) <= fixed else below).append(each)
    return tuple(above), tuple(below)


def equal_column(conjunct: Bound) -> Column | None:
    """Return the column that a condition compares with a constant for equality; None for any other condition."""
    match conjunct:
        case Term("=", (Column() as column, Constant())) if column.type.is_ordered:
            return column
    return None


def columns_of(conjunct: Bound) -> set[Column]:
    """Return the columns that a condition reads."""
    return {node for node in nodes(conjunct) if isinstance(node, Column)}


def exact_columns(by: Iterable[Column]) -> set[Column]:
    """Return the columns that have the same value in equal keys: not FLOAT and DOUBLE, since 0.0 and -0.0 are equal."""
    return {column for column in by if column.type not in (FLOAT, DOUBLE)}


def settled(conjuncts: Iterable[Bound]) -> tuple[Expression, ...]:
    """Return conditions as a computation contains them: with their constants, in canonical order."""
    return tuple(map(settle, order(map(without_positions, conjuncts))[0]))
