"""Spark's arithmetic and mathematical functions over typed Polars expressions.

Whole numbers are computed in a wider type, and a number too large for the result's type becomes NULL in the cast back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from grouping.functions.functions import result_type
from grouping.model.errors import InternalError
from grouping.model.sql_type import BIGINT, BOOLEAN, DOUBLE, FLOAT, INT, SMALLINT, TINYINT, SqlType
from spark_jobs.engine.expressions.by_value import each_distinct
from spark_jobs.engine.expressions.casts import to_bigint
from spark_jobs.engine.expressions.numbers import decimals
from spark_jobs.engine.expressions.numbers.doubles import vector
from spark_jobs.engine.expressions.types import Implementation, Operand, polars_type, to_double, wider

__all__ = ["FUNCTIONS"]

_INTEGERS: dict[SqlType, pl.DataType] = {
    TINYINT: pl.Int8(),
    SMALLINT: pl.Int16(),
    INT: pl.Int32(),
    BIGINT: pl.Int64(),
}
_WIDE: dict[SqlType, pl.DataType] = {TINYINT: pl.Int32(), SMALLINT: pl.Int64(), INT: pl.Int64(), BIGINT: pl.Int128()}
_BITS = {TINYINT: 8, SMALLINT: 16, INT: 32, BIGINT: 64}
_MOST_DIGITS = 30
"""A number of digits that no whole number reaches."""


_APPROXIMATE = frozenset((FLOAT, DOUBLE))


def _exactly(op: str, other: Implementation) -> Implementation:
    """Return an operator that is computed with DECIMALs if an operand is a DECIMAL and none is a FLOAT or DOUBLE."""

    def apply(args: list[Operand], sql_type: SqlType) -> Operand:
        kinds = [argument.type for argument in args]
        if any(sql_type.is_decimal for sql_type in kinds) and not _APPROXIMATE & {*kinds}:
            return decimals.arithmetic(op, *args)
        return other(args, sql_type)

    return apply


def _arithmetic(op: Callable[[pl.Expr, pl.Expr], pl.Expr]) -> Implementation:
    def apply(args: list[Operand], _: SqlType) -> Operand:
        left, right = args
        sql_type = wider([left.type, right.type])
        if sql_type == FLOAT:
            return Operand(op(left.expr, right.expr), FLOAT)
        if sql_type == DOUBLE:
            return Operand(op(to_double(left), to_double(right)), DOUBLE)
        wide = _wide(sql_type)
        return Operand(
            op(left.expr.cast(wide), right.expr.cast(wide)).cast(_INTEGERS[sql_type], strict=False), sql_type
        )

    return apply


def _wide(sql_type: SqlType) -> pl.DataType:
    if sql_type not in _WIDE:
        raise InternalError(f"no arithmetic of {sql_type}")
    return _WIDE[sql_type]


def _divide(args: list[Operand], _: SqlType) -> Operand:
    left, right = (to_double(argument) for argument in args)
    return Operand(_by_numpy(np.divide, left, right), DOUBLE)


def _truncated(left: pl.Expr, right: pl.Expr) -> pl.Expr:
    """Return the quotient of whole numbers cut towards zero, as Java does; `right` is not zero."""
    size = left.abs() // right.abs()
    return pl.when((left < 0) != (right < 0)).then(0 - size).otherwise(size)


def _whole_divide(args: list[Operand], _: SqlType) -> Operand:
    left, right = (argument.expr.cast(pl.Int128) for argument in args)
    divisor = pl.when(right != 0).then(right)
    return Operand(_truncated(left, divisor).cast(pl.Int64, strict=False), BIGINT)


def _remainder(args: list[Operand], _: SqlType) -> Operand:
    left, right = args
    sql_type = wider([left.type, right.type])
    if sql_type in _APPROXIMATE:
        rest = _by_numpy(np.fmod, to_double(left), to_double(right))  # fmod is exact, also for FLOATs
        return Operand(rest.cast(polars_type(sql_type)), sql_type)
    dividend, divisor = left.expr.cast(_wide(sql_type)), right.expr.cast(_wide(sql_type))
    divisor = pl.when(divisor != 0).then(divisor)
    return Operand(
        (dividend - _truncated(dividend, divisor) * divisor).cast(_INTEGERS[sql_type], strict=False), sql_type
    )


def _by_numpy(function: np.ufunc, left: pl.Expr, right: pl.Expr) -> pl.Expr:
    """Return the function's results for doubles; NULL for a divisor of zero.

    NumPy's ``divide`` and ``fmod`` have the results of Java's ``/`` and ``%``. If all rows have the same divisor,
    Polars multiplies by the reciprocal, so the last digit may be wrong. Polars' remainder has the divisor's sign.
    """

    def apply(columns: Sequence[pl.Series]) -> pl.Series:
        dividend, divisor = (column.to_numpy() for column in columns)
        with np.errstate(all="ignore"):
            return pl.Series(function(dividend, divisor), dtype=pl.Float64)

    known = left.is_not_null() & (right != 0.0)
    return pl.when(known).then(pl.map_batches([left, right], apply, return_dtype=pl.Float64))


def _positive_remainder(args: list[Operand], sql_type: SqlType) -> Operand:
    """Return ``a % n``, or ``((a % n) + n) % n`` if ``a % n`` is negative; the sum wraps round, as Spark's does."""
    remainder = _remainder(args, sql_type)
    divisor = args[1].expr
    if remainder.type in _APPROXIMATE:
        divided = remainder.expr + args[1].expr.cast(polars_type(remainder.type))
        again = _by_numpy(np.fmod, divided.cast(pl.Float64), to_double(args[1])).cast(polars_type(remainder.type))
    else:
        wide, bits = _wide(remainder.type), _BITS[remainder.type]
        divisor = divisor.cast(wide)
        total = remainder.expr.cast(wide) + divisor
        wrapped = pl.when(total < -(2 ** (bits - 1))).then(total + pl.lit(2**bits, wide)).otherwise(total)
        known = pl.when(divisor != 0).then(divisor)
        again = (wrapped - _truncated(wrapped, known) * known).cast(_INTEGERS[remainder.type], strict=False)
    return Operand(pl.when(remainder.expr < 0).then(again).otherwise(remainder.expr), remainder.type)


def _negative(args: list[Operand], _: SqlType) -> Operand:
    (value,) = args
    if value.type in _WIDE:
        return Operand((0 - value.expr.cast(_WIDE[value.type])).cast(_INTEGERS[value.type], strict=False), value.type)
    return decimals.negative(value) if _is_wide(value.type) else Operand(-value.expr, value.type)


def _abs(args: list[Operand], _: SqlType) -> Operand:
    (value,) = args
    if value.type in _WIDE:
        return Operand(value.expr.cast(_WIDE[value.type]).abs().cast(_INTEGERS[value.type], strict=False), value.type)
    return decimals.absolute(value) if _is_wide(value.type) else Operand(value.expr.abs(), value.type)


def _is_wide(sql_type: SqlType) -> bool:
    """Tell whether Spark rounds a negated number of a type (`decimals.SCALA_DIGITS`)."""
    return sql_type.is_decimal and sql_type.precision > decimals.SCALA_DIGITS


def _whole(step: Callable[[pl.Expr], pl.Expr], rounding: str) -> Implementation:
    """Return the implementation of ceil or floor."""

    def apply(args: list[Operand], _: SqlType) -> Operand:
        (value,) = args
        if value.type.is_decimal:
            return decimals.rounded(value, result_type("floor", [value.type]), rounding)
        if value.type in _INTEGERS:
            return Operand(value.expr.cast(pl.Int64), BIGINT)
        return Operand(to_bigint(step(to_double(value))), BIGINT)

    return apply


def _sign(args: list[Operand], _: SqlType) -> Operand:
    value = to_double(args[0])
    return Operand(
        pl.when(value > 0)
        .then(pl.when(value.is_nan()).then(value).otherwise(1.0))
        .when(value < 0)
        .then(-1.0)
        .otherwise(value),
        DOUBLE,
    )


def _half_up(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round to whole numbers, halves away from zero.

    A double and its shortest decimal form, which Spark rounds, are on the same side of each half. So the double itself
    can be rounded.
    """
    size = np.abs(values)
    whole = np.floor(size)
    rounded: NDArray[np.float64] = np.copysign(whole + (size - whole >= 0.5), values) + 0.0  # no negative zero
    return rounded


_TO_WHOLE: dict[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
    ROUND_HALF_UP: _half_up,
    ROUND_HALF_EVEN: lambda values: np.rint(values) + 0.0,
}


def _round(rounding: str) -> Implementation:
    """Return the implementation of a rounding to a scale; a result that is too large becomes NULL.

    A double's shortest decimal form is rounded.
    """
    of_double = decimals.rounded_double(rounding)

    def apply(args: list[Operand], _: SqlType) -> Operand:
        value, *scales = args
        if value.type.is_decimal:
            return decimals.rounded(value, result_type("round", [value.type]), rounding)
        if value.type == DOUBLE and not scales:
            return Operand(vector(_TO_WHOLE[rounding], [value.expr]), DOUBLE)
        scale = scales[0].expr if scales else pl.repeat(0, pl.len(), dtype=pl.Int32)
        if value.type == DOUBLE:
            return Operand(each_distinct([value.expr, scale], of_double, pl.Float64), DOUBLE)
        most = 2 ** (_BITS[value.type] - 1)

        def of_whole(number: int, scale: int) -> int | None:
            rounded = (
                int(decimals.to_scale(Decimal(number), max(scale, -_MOST_DIGITS), rounding)) if scale < 0 else number
            )
            return rounded if -most <= rounded < most else None

        return Operand(each_distinct([value.expr, scale], of_whole, polars_type(value.type)), value.type)

    return apply


FUNCTIONS: dict[str, Implementation] = {
    "+": _exactly("+", _arithmetic(lambda a, b: a + b)),
    "-": _exactly("-", _arithmetic(lambda a, b: a - b)),
    "*": _exactly("*", _arithmetic(lambda a, b: a * b)),
    "/": _exactly("/", _divide),
    "div": _exactly("div", _whole_divide),
    "%": _exactly("%", _remainder),
    "pmod": _exactly("pmod", _positive_remainder),
    "neg": _negative,
    "abs": _abs,
    "ceil": _whole(lambda value: value.ceil(), ROUND_CEILING),
    "floor": _whole(lambda value: value.floor(), ROUND_FLOOR),
    "round": _round(ROUND_HALF_UP),
    "bround": _round(ROUND_HALF_EVEN),
    "sign": _sign,
    "sqrt": lambda args, _: Operand(to_double(args[0]).sqrt(), DOUBLE),
    "isnan": lambda args, _: Operand(to_double(args[0]).is_nan().fill_null(False), BOOLEAN),
}
"""The implementation by operator or function; the names are those in `grouping.functions`."""
