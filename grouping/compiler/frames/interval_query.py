"""EMIT with an interval (ON SILENCE, FOR): the node whose rows wait, and the conditions that are part of the node."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET
from msgspec.structs import replace

from grouping.binding.bound import Bound, without_positions
from grouping.binding.scope import Scope
from grouping.compiler.edge_key import (
    check_unconditional,
    key_columns,
    row_key,
)
from grouping.compiler.frames.framed_query import (
    columns_of,
    divided,
    equal_column,
    exact_columns,
    place_conditions,
    settled,
)
from grouping.compiler.frames.until import height, switch_of
from grouping.compiler.normalize import conjuncts_of, normalize
from grouping.compiler.order import order
from grouping.model.catalog import Stream
from grouping.model.change_format import is_change_format
from grouping.model.expression import Column
from grouping.model.refusals import unsupported
from grouping.plan.computation import Computation
from grouping.plan.frames import Frames
from grouping.plan.lasting import Height, LastingMatches
from grouping.plan.passing import PASSING
from grouping.plan.silence import SilentKeys
from grouping.plan.switch import SWITCH_STAY
from grouping.plan.table_changes import changed_table
from grouping.statements.clauses import EmitClause

__all__ = ["with_framed_interval", "with_interval"]

_SILENCE = "EMIT ON SILENCE", "The result is the latest event of a key."
_FOR = "EMIT … FOR", "The result is the event with which a key enters."
"""The name of the clause, and why the query cannot have aggregates."""


def with_interval(
    scope: Scope | None, emit: EmitClause, where: Sequence[Bound], until: Bound | None, *, aggregation: bool
) -> tuple[Scope, tuple[Bound, ...]]:
    """Return the scope of a query with EMIT and an interval, and the conditions that its group decides.

    Args:
        scope: The scope of FROM; if FROM names only a table, the scope of the stream of its changes.
        emit: EMIT.
        where: The conditions of FROM (`scope.where`), and then the condition of WHERE.
        until: The condition of UNTIL; None without UNTIL.
        aggregation: Whether the query has aggregates.

    Raises:
        InputError: ``unknown-column``; ``syntax-error`` without BY; ``unsupported-query`` for rows or a key that
            EMIT with an interval does not support.
    """
    shown, aggregated = _SILENCE if emit.edge == "silence" else _FOR
    if aggregation:
        raise unsupported(f"{shown} with aggregates", aggregated, "Name the columns.")
    assert scope is not None and scope.stream is not None, "a table is read as the stream of its changes"
    _check_single(scope, shown)
    by = _row_key(scope.stream, emit) if scope.stream.changes_of else _key(scope, scope.stream, emit)
    if emit.edge == "silence":
        placed = place_conditions(by, where)
        silence = SilentKeys.of(placed.key, emit.interval_ms, placed.below)
        computation, above = Computation.of(scope.stream.stream_id, scope.nodes, silence=silence), placed.above
    else:
        _check_elements(scope.stream)
        if scope.stream.changes_of:
            check_unconditional(scope, "EMIT … FOR over a view of a table with conditions")
        lasting, above = _lasting(by, emit.interval_ms, where[len(scope.where) :], until)
        of_from = settled(conjuncts_of(scope.where))
        lasting = replace(lasting, of_from=of_from)
        computation = Computation.of(scope.stream.stream_id, scope.nodes, lasting=lasting)
    return scope._replace(computation=computation), above


def with_framed_interval(
    scope: Scope, emit: EmitClause, where: Sequence[Bound], until: Bound | None, selected: frozenset[str]
) -> tuple[Scope, tuple[Bound, ...]]:
    """Return the scope of a query with window functions and an interval, and the conditions that its group decides.

    The node of the interval stands above the frames. Only queries that read the same columns share the node, since the
    state cannot compute the window functions of earlier rows again.

    Args:
        scope: The scope, with the computation of edges over frames.
        emit: EMIT.
        where: The conditions of WHERE and QUALIFY that the group of a query without an interval would decide.
        until: The condition of UNTIL; None without UNTIL.
        selected: The stored texts of the columns that the SELECT list reads.

    Raises:
        InputError: ``unsupported-query`` for FOR over elements of records.
    """
    computation = scope.computation
    assert scope.stream is not None and computation is not None, "EMIT over frames"
    assert computation.before is not None and computation.frames is not None, "EMIT over frames"
    by, frames, stream = frozenset(computation.before.by), computation.frames, scope.stream
    passing = (PASSING,) if frames.where else ()
    if emit.edge == "silence":
        above, below = divided(conjuncts_of(where), exact_columns(by))
        silence = SilentKeys.of(by, emit.interval_ms, (*settled(below), *passing), _read(above, selected))
        return scope._replace(computation=Computation.of(stream.stream_id, (), frames=frames, silence=silence)), above
    _check_elements(stream)
    lasting, above = _lasting(by, emit.interval_ms, where, until, frames)
    if until is None:
        lasting = replace(lasting, where=(*lasting.where, *passing))
    lasting = replace(lasting, of_from=computation.before.of_from, reads=_read(above, selected))
    return scope._replace(computation=Computation.of(stream.stream_id, (), frames=frames, lasting=lasting)), above


def _read(above: Sequence[Bound], selected: frozenset[str]) -> tuple[str, ...]:
    """Return the stored texts of the columns that conditions of the group and the SELECT list read, ascending."""
    return tuple(sorted(selected.union(column.stored for each in above for column in columns_of(each))))


def _check_elements(stream: Stream) -> None:
    """Refuse FOR over elements of records, since the elements of a record have one offset."""
    if stream.explode is not UNSET:
        raise unsupported(
            "EMIT … FOR over a stream with explode",
            "The elements of a record have one offset, and FOR orders the events of a key by their offsets.",
            "EMIT ON ENTER OR EXIT without FOR reports each change.",
        )


def _key(scope: Scope, stream: Stream, emit: EmitClause) -> frozenset[Column]:
    """Return the columns of BY."""
    if emit.without_by is not None:
        raise emit.without_by
    return key_columns(scope, stream, emit.by)


def _row_key(stream: Stream, emit: EmitClause) -> frozenset[Column]:
    """Return the key of a query over the changes of a table, which is the PRIMARY KEY."""
    if emit.edge == "silence":
        detail = "A row of a table stays until it is replaced or removed."
        raise unsupported("EMIT ON SILENCE over a table", detail, "EMIT ON ENTER FOR '1 hour' reports rows that stay.")
    if is_change_format(stream.format):
        detail = "A record may lack values that only the row before has."
        raise unsupported(f"EMIT … FOR over a table of {stream.format}", detail, "Leave FOR out.")
    return frozenset(row_key(changed_table(stream), emit).by)


def _lasting(
    by: frozenset[Column],
    milliseconds: int,
    where: Sequence[Bound],
    until: Bound | None,
    frames: Frames | None = None,
) -> tuple[LastingMatches, tuple[Bound, ...]]:
    """Return the node of EMIT with FOR, and the conditions that the group decides.

    The group decides conditions that read only the key, and the comparison of one column with a constant. All other
    conditions are part of the node: an event for which one of them is not TRUE ends the stay of its key.

    With UNTIL, the group decides all conditions if WHERE and UNTIL are opposite bounds of one column. Otherwise, the
    group decides only conditions over the key, and all other conditions and UNTIL are the node's switch.
    """
    if until is not None:
        switch, above_all = switch_of(by, where, until, frames=frames)
        end = SWITCH_STAY.end if switch else height(normalize(until)[0])
        assert end is not None, "without a switch, UNTIL compares one column with a constant"
        opposite = Height(end.column, not end.above)
        return LastingMatches.of(by, milliseconds, opposite, (), until=True, switch=switch), above_all
    exact = exact_columns(by)
    above: list[Bound] = []
    others: list[Bound] = []
    for each in conjuncts_of(where):
        (above if equal_column(each) in by or columns_of(each) <= exact else others).append(each)
    heights = {order([without_positions(each)])[0][0]: each for each in others if height(each) is not None}
    compared: Height | None = None
    if heights:
        first = order(heights)[0][0]
        compared, chosen = height(first), heights[first]
        above.append(chosen)
        others.remove(chosen)
    below = settled(others)
    return LastingMatches.of(by, milliseconds, compared, below), tuple(above)


def _check_single(scope: Scope, shown: str) -> None:
    """Refuse joins by which an event may have several rows.

    Args:
        scope: FROM with its joins.
        shown: The clause that needs a single row, for the error.

    Raises:
        InputError: ``unsupported-query``.
    """
    if any(not node.single for node in scope.nodes):
        raise unsupported(
            f"{shown} over a join that may meet several rows",
            "The previous event of a key would then have several rows.",
            "Join the table by its whole PRIMARY KEY.",
        )
