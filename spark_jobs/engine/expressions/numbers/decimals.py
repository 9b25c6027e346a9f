"""DECIMAL arithmetic and rounding as in Spark: the exact result is rounded half up to the scale of its type."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from math import isfinite

import polars as pl

from grouping.model.decimal_types import WIDEST, decimal_result, exact_size
from grouping.model.sql_type import BIGINT, SqlType
from spark_jobs.engine.expressions.by_value import each_distinct
from spark_jobs.engine.expressions.types import Operand, polars_type

__all__ = ["SCALA_DIGITS", "absolute", "arithmetic", "fitted", "negative", "rounded", "rounded_double", "to_scale"]

_EXACT = Context(prec=2000)
SCALA_DIGITS = 34
"""The precision of Scala's BigDecimal, in which Spark negates a DECIMAL. Other operations are exact."""
_SCALA = Context(prec=SCALA_DIGITS, rounding=ROUND_HALF_EVEN)
_QUOTIENT_SCALE = WIDEST + 1
"""The number of digits after the point in Spark's division, before the result is rounded to its scale."""
_FAR = 400
"""A number of digits that no double reaches, before or after the point."""


def fitted(value: Decimal, sql_type: SqlType) -> Decimal | None:
    """Round a number half up to the scale of a DECIMAL type; None if the number does not fit the type."""
    precision, scale = sql_type.precision, sql_type.scale
    if value.adjusted() > precision:
        return None
    rounded = value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, _EXACT)
    return rounded if not rounded or rounded.adjusted() < precision - scale else None


def negative(value: Operand) -> Operand:
    """Return the negation of a DECIMAL; NULL if the rounded number has more digits than its type."""
    return _turned(value, lambda _: True)


def absolute(value: Operand) -> Operand:
    """Return the absolute value of a DECIMAL. Spark negates (and rounds) only numbers below 0."""
    return _turned(value, lambda number: number < 0)


def _turned(value: Operand, turns: Callable[[Decimal], bool]) -> Operand:
    sql_type = value.type

    def apply(number: Decimal) -> Decimal | None:
        return fitted(_SCALA.minus(number), sql_type) if turns(number) else number

    return Operand(each_distinct([value.expr], apply, polars_type(sql_type)), sql_type)


def arithmetic(op: str, left: Operand, right: Operand) -> Operand:
    """Return the result of ``+ - * / % div pmod`` for exact numbers, at least one of them a DECIMAL.

    The result is NULL for the values for which Spark's ``try_`` form returns NULL.
    """
    operands = [operand.expr.cast(pl.Decimal(*exact_size(operand.type))) for operand in (left, right)]
    if op == "div":
        return Operand(each_distinct(operands, _whole_quotient, pl.Int64), BIGINT)
    sql_type = decimal_result(op, left.type, right.type)
    compute = _OPERATORS[op]

    def apply(one: Decimal, other: Decimal) -> Decimal | None:
        result = compute(one, other)
        return None if result is None else fitted(result, sql_type)

    return Operand(each_distinct(operands, apply, polars_type(sql_type)), sql_type)


def _quotient(left: Decimal, right: Decimal) -> Decimal | None:
    if not right:
        return None
    (n, d), (m, e) = left.as_integer_ratio(), right.as_integer_ratio()
    numerator, denominator = n * e * 10**_QUOTIENT_SCALE, d * m
    size, rest = divmod(abs(numerator), abs(denominator))
    size += 2 * rest >= abs(denominator)
    return Decimal(size if (numerator < 0) == (denominator < 0) else -size).scaleb(-_QUOTIENT_SCALE, _EXACT)


def _whole_quotient(left: Decimal, right: Decimal) -> int | None:
    """Return the quotient cut towards zero as a BIGINT, which wraps round as in Spark; None for more than 38 digits."""
    if not right:
        return None
    quotient = int(_EXACT.divide_int(left, right))
    return (quotient + 2**63) % 2**64 - 2**63 if abs(quotient) < 10**WIDEST else None


def _positive_remainder(left: Decimal, right: Decimal) -> Decimal | None:
    if not right:
        return None
    rest = _EXACT.remainder(left, right)
    return _EXACT.remainder(_EXACT.add(rest, right), right) if rest < 0 else rest


_OPERATORS: dict[str, Callable[[Decimal, Decimal], Decimal | None]] = {
    "+": _EXACT.add,
    "-": _EXACT.subtract,
    "*": _EXACT.multiply,
    "/": _quotient,
    "%": lambda left, right: _EXACT.remainder(left, right) if right else None,
    "pmod": _positive_remainder,
}


def to_scale(value: Decimal, scale: int, rounding: str) -> Decimal:
    """Return the number rounded to `scale` digits after the point; a negative scale rounds digits before the point."""
    return value.quantize(Decimal(1).scaleb(-scale), rounding, _EXACT)


def rounded_double(rounding: str) -> Callable[[float, int], float]:
    """Return the rounding of a double's shortest decimal form, as Spark rounds."""

    def apply(value: float, scale: int) -> float:
        if not isfinite(value) or scale > _FAR:
            return value
        return float(to_scale(Decimal(repr(value)), scale, rounding)) + 0.0 if scale > -_FAR else 0.0

    return apply


def rounded(value: Operand, sql_type: SqlType, rounding: str) -> Operand:
    """Round a DECIMAL to a whole number of the type `sql_type`."""
    return Operand(
        each_distinct(
            [value.expr], lambda number: fitted(to_scale(number, 0, rounding), sql_type), polars_type(sql_type)
        ),
        sql_type,
    )
