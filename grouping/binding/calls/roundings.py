"""round, bround, floor and ceil to a scale; the scale decides the type of a DECIMAL, so it stays in the signature."""

from __future__ import annotations

from collections.abc import Sequence

from grouping.binding.bound import Bound, Constant, Term, is_null
from grouping.binding.operands import cast, typed
from grouping.model.decimal_types import WIDEST, exact_size
from grouping.model.expression import Value
from grouping.model.refusals import unsupported
from grouping.model.sql_type import FLOAT, SqlType, decimal

__all__ = ["ROUNDINGS", "to_scale"]

ROUNDINGS = frozenset(("round", "bround", "floor", "ceil"))
_TO_NEAREST = frozenset(("round", "bround"))


def to_scale(name: str, args: Sequence[Bound]) -> Term | None:
    """Return the rounding of a number to a scale; None if a plain call of the function has the same result.

    As in Spark, floor and ceil with a scale turn a whole number into a DECIMAL.

    Args:
        name: A function of `ROUNDINGS`.
        args: The number, and optionally the scale, which must be a constant INT.

    Raises:
        InputError: ``unsupported-query``, for a number or a scale whose result would not be exact.
    """
    number, *scales = args
    if name in _TO_NEAREST and number.type == FLOAT:
        raise unsupported(f'"{name}" of a FLOAT', "Spark rounds Java's text of the number.", "CAST it to DOUBLE.")
    if not scales or (name in _TO_NEAREST and not number.type.is_decimal):
        return None
    (scale,) = scales
    if not isinstance(scale, Constant) or not isinstance(scale.value, int):
        raise unsupported(f'"{name}" of a DECIMAL to NULL', "The scale is part of the result's type.")
    if not number.type.is_decimal:
        if number.type.name in ("FLOAT", "DOUBLE"):
            why = "Spark makes a DECIMAL from Java's text of the number."
            raise unsupported(f'"{name}" of a {number.type} to a scale', why, "CAST a DECIMAL column, or use round.")
        sql_type = decimal(*exact_size(number.type))
        number = Constant(None, sql_type) if is_null(number) else cast(typed(number), sql_type)
    sql_type = _rounded(number.type, scale.value)
    return Term(f"{name} to scale", (number, Value(scale.value, "INT")), sql_type)


def _rounded(sql_type: SqlType, scale: int) -> SqlType:
    """Return the type of a DECIMAL rounded to a scale; a carry may need one more digit before the point."""
    whole = sql_type.precision - sql_type.scale + 1
    if scale < 0:
        return decimal(min(max(whole, 1 - scale), WIDEST), 0)
    kept = min(sql_type.scale, scale)
    return decimal(min(whole + kept, WIDEST), kept)
