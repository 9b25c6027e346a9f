"""UNTIL: a key that entered stays in until a second condition is TRUE.

If no event makes WHERE and UNTIL both TRUE, the last event for which one of them was TRUE decides whether the key is
in. If WHERE and UNTIL are opposite bounds of one column, a worker finds this event for all constants at once
(`spark_jobs/engine/rows/extremes.py`), so the constants are lifted. Otherwise the conditions are part of the
computation, with their constants, as a column of each row (`grouping/plan/switch.py`); UNTIL then decides for an event
that makes both conditions TRUE.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from msgspec import UNSET
from msgspec.structs import replace
from sqlglot import exp

from grouping.binding.bound import Bound, Constant, Term
from grouping.binding.scope import Scope
from grouping.compiler.aggregate_binder import has_aggregates
from grouping.compiler.frames.framed_query import columns_of, divided, exact_columns, settled
from grouping.compiler.normalize import conjuncts_of, normalize
from grouping.model.errors import InputError
from grouping.model.expression import Call, Column, Expression, Framed, Slot, TableColumn
from grouping.model.group import ConstantRow
from grouping.model.refusals import unsupported
from grouping.model.sql_type import BIGINT, DATE, DOUBLE, FLOAT, INT, SMALLINT, TIMESTAMP, TINYINT
from grouping.plan.computation import Computation
from grouping.plan.frames import Frames
from grouping.plan.lasting import Height
from grouping.plan.passing import PASSING
from grouping.plan.stay import Stay, StayBound
from grouping.plan.switch import Switch
from grouping.statements.select_text import read_select

__all__ = ["check_bounds", "height", "read_until", "stay_of", "switch_of", "with_until"]

_STAY_TYPES = frozenset((TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DATE, TIMESTAMP))
"""The types of columns that WHERE and UNTIL can bound if the group, and not the computation, decides them."""
_ABOVE = {">": True, ">=": True, "<": False, "<=": False}
_FORM = "WHERE temp > 90 EMIT ON ENTER OR EXIT BY device UNTIL temp < 80."


def height(conjunct: Bound) -> Height | None:
    """Return the column that a condition bounds by a constant, and the side; None for any other condition."""
    match conjunct:
        case Term(op, (Column() as column, Constant())) if op in _ABOVE and column.type in _STAY_TYPES:
            return Height(column, _ABOVE[op])
    return None


def switch_of(
    by: Iterable[Column],
    where: Sequence[Bound],
    until: Bound,
    *,
    is_exploded: bool = False,
    frames: Frames | None = None,
) -> tuple[Switch | None, tuple[Bound, ...]]:
    """Return the conditions that the computation decides, and the conditions of WHERE that the group decides.

    The group decides conditions that read only columns of the key. If WHERE and UNTIL are opposite bounds of one
    column, the group decides all conditions, and there is no switch.

    Args:
        by: The columns of the key.
        where: The conditions of WHERE.
        until: The condition of UNTIL.
        is_exploded: Whether an event is an element of a record. Elements of a record have one offset, so the extremes
            that the group needs do not tell their order, and the computation decides UNTIL.
        frames: The node of the frames below; None without frames. If the node has conditions, the group decides only
            bounds of window functions, which are NULL in a row for which a condition is not TRUE. The row's own columns
            may have values, so the computation decides bounds of these columns.
    """
    exact = exact_columns(by)
    conjuncts = conjuncts_of(where)
    ends = normalize(until)
    has_conditions = frames is not None and bool(frames.where)
    end = None if is_exploded or len(ends) != 1 else height(ends[0])
    if end is not None and (isinstance(end.column.reference, Framed) or not has_conditions):
        begins = [each for each in conjuncts if height(each) == Height(end.column, not end.above)]
        others = [each for each in conjuncts if each not in begins]
        if len(begins) == 1 and all(columns_of(each) <= exact for each in others):
            return None, tuple(where)
    above, below = divided(conjuncts, exact)
    enters = (*settled(below), PASSING) if has_conditions else settled(below)
    return Switch(enters, settled(ends)), above


def read_until(text: str) -> exp.Expr:
    """Return the condition of UNTIL.

    Args:
        text: A SELECT with the condition in WHERE (`grouping.statements.clauses.EmitClause.until`).

    Raises:
        InputError: ``syntax-error``, or ``unsupported-query`` for a clause after the condition.
    """
    if text.rstrip().endswith("WHERE"):
        message, detail = "the condition of UNTIL is missing", "The query ends after the word UNTIL."
        raise InputError(message, code="syntax-error", detail=detail, hint=f"Write {_FORM}")
    tree = read_select(text)
    others = sorted(
        name for name, value in tree.args.items() if value and name not in ("expressions", "from_", "where")
    )
    if others or has_aggregates(tree):
        name = others[0].strip("_").upper() if others else "an aggregate"
        raise unsupported(f"{name} after UNTIL", "UNTIL takes a condition, as WHERE does.", f"Write {_FORM}")
    condition: exp.Expr = tree.args["where"].this
    return condition


def with_until(scope: Scope, where: tuple[Bound, ...], until: Bound) -> tuple[Scope, tuple[Bound, ...]]:
    """Return the scope of a query with edges and UNTIL, and the conditions that its group decides.

    Args:
        scope: The scope, with the computation of edges.
        where: The conditions of WHERE; with window functions, the conditions of WHERE and QUALIFY that the group of a
            query without UNTIL would decide.
        until: The condition of UNTIL.
    """
    computation = scope.computation
    assert scope.stream is not None and computation is not None and computation.before is not None, "EMIT ON … BY"
    before, frames = computation.before, computation.frames
    by = before.by if frames is None else [column for column in before.by if column in frames.by]
    switch, above = switch_of(by, where, until, is_exploded=scope.stream.explode is not UNSET, frames=frames)
    if switch is None:
        return scope, above
    before = replace(before, switch=switch)
    return scope._replace(computation=Computation.of(scope.stream.stream_id, scope.nodes, before, frames)), above


def stay_of(where: Sequence[Expression], until: Sequence[Expression]) -> Stay:
    """Return the bounds of a group that decides WHERE and UNTIL.

    Args:
        where: The conjuncts of WHERE, over slots.
        until: The conjuncts of UNTIL, over slots.
    """
    [ending] = map(_bound, until)
    assert ending is not None, "the computation decides other conditions"
    [beginning] = [found for each in where if (found := _bound(each)) is not None and found.opposes(ending)]
    return Stay(beginning, ending)


def _bound(conjunct: Expression) -> StayBound | None:
    match conjunct:
        case Call(op, (Column(reference=str() | TableColumn() | Framed()) as column, Slot(slot))) if op in _ABOVE:
            return StayBound(op, column, slot)
    return None


def check_bounds(stay: Stay, row: ConstantRow) -> None:
    """Check that no event makes both WHERE and UNTIL TRUE.

    Raises:
        InputError: ``unsupported-query``.
    """
    if stay.begin.slot is None or stay.end.slot is None:
        return
    begin, end = row.values[stay.begin.slot], row.values[stay.end.slot]
    if begin is None or end is None:
        return
    bounds = (begin, stay.begin.op), (end, stay.end.op)
    (lower, low_op), (upper, high_op) = bounds if stay.begin.above else reversed(bounds)
    if isinstance(lower, int) and isinstance(upper, int) and stay.begin.column.type.is_whole:
        overlap = lower + (low_op == ">") <= upper - (high_op == "<")
    else:
        least, most = _order(lower), _order(upper)
        overlap = least < most or (least == most and "=" in low_op and "=" in high_op)
    if overlap:
        raise unsupported(
            "an UNTIL that is TRUE together with WHERE",
            "An event between the two constants would make a key enter and leave.",
            f"Choose constants for which no value makes both TRUE: {_FORM}",
        )


def _order(value: object) -> tuple[bool, object]:
    """Return a sort key for a constant; NaN is above all numbers."""
    missing = isinstance(value, float) and math.isnan(value)
    return missing, 0.0 if missing else value
