"""EMIT ON SILENCE: the node that makes a row for each silent key, and where each condition of WHERE is decided."""

from __future__ import annotations

from collections.abc import Sequence

from grouping.binding.bound import Bound
from grouping.binding.scope import Scope
from grouping.compiler.edge_key import check_covered, key_column
from grouping.compiler.frames.framed_query import place_conditions
from grouping.model.refusals import unsupported
from grouping.plan.computation import Computation
from grouping.plan.silence import SilentKeys
from grouping.statements.clauses import EmitClause

__all__ = ["with_silence"]


def with_silence(
    scope: Scope | None, emit: EmitClause, where: Sequence[Bound], *, aggregation: bool
) -> tuple[Scope, tuple[Bound, ...]]:
    """Return the scope of a query with EMIT ON SILENCE, and the conditions that its group decides.

    Args:
        scope: The scope of FROM; None over a table alone.
        emit: EMIT.
        where: The conditions of WHERE, of the query and of views.
        aggregation: Whether the query has aggregates.

    Raises:
        InputError: ``unknown-column``; ``syntax-error`` without BY; ``unsupported-query`` if silences are not defined
            for these rows or this key.
    """
    if emit.without_by is not None:
        raise emit.without_by
    if aggregation:
        raise unsupported(
            "EMIT ON SILENCE with aggregates", "The result is the latest event of a key.", "Name the columns."
        )
    if scope is None or scope.nodes or scope.stream is None or scope.stream.changes_of:
        detail = "A silence is between two events of one stream."
        raise unsupported("EMIT ON SILENCE over a table or a join", detail, "Read the stream alone.")
    names = [scope.resolve(each.qualifier, each.name, quoted=each.quoted) for each in emit.by]
    by = frozenset(key_column(*each) for each in names)
    check_covered(scope.stream, {column.stored for column in by}, "BY")
    placed = place_conditions(by, where)
    silence = SilentKeys.of(placed.key, emit.silence_ms, placed.below)
    computation = Computation.of(scope.stream.stream_id, (), silence=silence)
    return scope._replace(computation=computation), placed.above
