"""format_number: writes numbers with commas and a given number of decimals, as java.text.DecimalFormat does."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from math import isfinite, isnan

import polars as pl

from grouping.model.sql_type import DOUBLE, FLOAT, STRING, SqlType
from spark_jobs.engine.expressions.by_value import each_distinct
from spark_jobs.engine.expressions.types import Implementation, Operand, to_double

__all__ = ["PRINTED"]

_MOST_DIGITS = 2_000
"""The precision of the computation, in digits.

This precision is enough for all digits of the largest DOUBLE and for the largest number of decimals.
"""
_MOST_DECIMALS = 340
"""The largest number of decimals that DecimalFormat writes for a number that is not a DECIMAL."""


def _exact(number: Decimal | int, decimals: int) -> str | None:
    """Write a whole number or a DECIMAL, rounded half to even. The sign stays: -0.4 without decimals is "-0"."""
    if decimals < 0:
        return None
    if isinstance(number, int):
        decimals = min(decimals, _MOST_DECIMALS)
    with localcontext() as context:
        context.prec = _MOST_DIGITS
        rounded = abs(Decimal(number)).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_EVEN)
        return f"{'-' if number < 0 else ''}{rounded:,f}"


def _of_double(number: float, negative: bool, decimals: int) -> str | None:
    """Write a DOUBLE: in its shortest decimal form if `decimals` suffice for it, else as its exact value rounded.

    Args:
        number: The number.
        negative: Whether the number is negative or -0.0. The sign of a zero cannot be read from `number`, because
            `each_distinct` does not distinguish -0.0 from 0.0.
        decimals: The number of decimals to write.
    """
    if decimals < 0:
        return None
    sign = "-" if negative and not isnan(number) else ""
    if not isfinite(number):
        return "NaN" if isnan(number) else f"{sign}∞"
    shortest = abs(Decimal(repr(number)))
    decimals = min(decimals, _MOST_DECIMALS)
    fits = -int(shortest.as_tuple().exponent) <= decimals
    return sign + str(_exact(shortest if fits else abs(Decimal(number)), decimals))


def _format_number(args: list[Operand], _: SqlType) -> Operand:
    number, decimals = args[0], args[1].expr
    if number.type not in (DOUBLE, FLOAT):
        return Operand(each_distinct([number.expr, decimals], _exact, pl.String), STRING)
    double = to_double(number)
    negative = (double < 0) | ((1 / double) < 0)
    return Operand(each_distinct([double, negative, decimals], _of_double, pl.String), STRING)


PRINTED: dict[str, Implementation] = {"format_number": _format_number}
"""The implementation by function; the names are those in `grouping.functions`."""
