"""Spark's functions of numbers beyond everyday arithmetic: other bases, buckets, angles, and DECIMALs at a scale."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from math import factorial, isfinite, isnan

import polars as pl

from grouping.model.sql_type import BIGINT, DOUBLE, STRING, SqlType
from spark_jobs.engine.expressions.by_value import each_distinct
from spark_jobs.engine.expressions.numbers.decimals import fitted, to_scale
from spark_jobs.engine.expressions.types import Implementation, Operand, by_value, polars_type, to_double

__all__ = ["MATHEMATICS"]

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_LONG = 2**64
_LARGEST = 2**63 - 1
_LAST_FACTORIAL = 20
_DEGREE, _RADIAN = 0.017453292519943295, 57.29577951308232
"""A degree in radians and a radian in degrees: the factors by which Java 9 and later versions convert."""
_SMALLEST_BASE, _LARGEST_BASE = 2, 36


def _conv(text: str, source: int, target: int) -> str | None:
    """Return a whole number in another base, as Spark's NumberConverter does.

    The number ends before the first character that is no digit of the source base. The number is unsigned; a negative
    target base writes the same 64 bits as a signed number. The result is NULL if the number exceeds 64 bits.
    """
    bases = range(_SMALLEST_BASE, _LARGEST_BASE + 1)
    text = text.strip(" ")
    if not text or source not in bases or abs(target) not in bases:
        return None
    negative = text.startswith("-")
    value = 0
    for character in text[negative:]:
        digit = _DIGITS.find(character.upper()) if character.isascii() else -1
        if not 0 <= digit < source:
            break
        # Spark checks for overflow with a signed comparison: it misses numbers with the highest bit set, which wrap.
        if value <= _LARGEST and (_LONG - 1 - digit) // source < value:
            return None
        value = (value * source + digit) % _LONG
    if negative and target > 0:
        value = _LONG - 1 if value > _LARGEST else -value % _LONG
    if target < 0 and value > _LARGEST:
        value, negative = _LONG - value, True
    shown = _in_base(value, abs(target))
    return f"-{shown}" if negative and target < 0 else shown


def _in_base(value: int, base: int) -> str:
    digits = ""
    while value:
        value, digit = divmod(value, base)
        digits = _DIGITS[digit] + digits
    return digits or "0"


def _width_bucket(value: float, first: float, last: float, buckets: int) -> int | None:
    """Return the number of a value's bucket: `buckets` equal parts of a range, counted from 1.

    A value before the range has the bucket 0, and a value after the range the bucket `buckets` + 1.
    """
    if buckets <= 0 or buckets == _LARGEST or isnan(value) or first == last:
        return None
    if not (isfinite(first) and isfinite(last)):
        return None
    width = last - first if first < last else first - last
    past, through = (value - first, value - last) if first < last else (first - value, last - value)
    if past < 0:
        return 0
    if through >= 0:
        return buckets + 1
    place = buckets * past / width
    if place >= _LARGEST:
        return -_LARGEST - 1  # Java adds one to the largest BIGINT
    return (0 if isnan(place) else int(place)) + 1


def _factorial(number: int) -> int | None:
    return factorial(number) if 0 <= number <= _LAST_FACTORIAL else None


def _nearest(args: list[Operand], _: SqlType) -> Operand:
    """Return the nearest whole number; if two are equally near, the even one."""
    return Operand(to_double(args[0]).round(mode="half_to_even"), DOUBLE)


_ROUNDINGS = {
    "round": ROUND_HALF_UP,
    "bround": ROUND_HALF_EVEN,
    "floor": ROUND_FLOOR,
    "ceil": ROUND_CEILING,
}


def _at_scale(rounding: str) -> Implementation:
    """Return a rounding of a DECIMAL to the scale in the second argument; NULL if the result does not fit its type."""

    def apply(args: list[Operand], sql_type: SqlType) -> Operand:
        def rounded(number: Decimal, scale: int) -> Decimal | None:
            return fitted(to_scale(number, max(min(scale, sql_type.scale), -_MOST_DIGITS), rounding), sql_type)

        return Operand(each_distinct([args[0].expr, args[1].expr], rounded, polars_type(sql_type)), sql_type)

    return apply


_MOST_DIGITS = 400
"""The largest number of digits before the point that are rounded away.

If more digits were rounded away, the result would be the same: zero, or a number that is too large.
"""


def _bucket(args: list[Operand], _: SqlType) -> Operand:
    numbers = [to_double(argument) for argument in args[:3]]
    return Operand(each_distinct([*numbers, args[3].expr.cast(pl.Int64)], _width_bucket, pl.Int64), BIGINT)


MATHEMATICS: dict[str, Implementation] = {
    "conv": by_value(_conv, STRING),
    "degrees": lambda args, _: Operand(to_double(args[0]) * _RADIAN, DOUBLE),
    "factorial": by_value(_factorial, BIGINT),
    "radians": lambda args, _: Operand(to_double(args[0]) * _DEGREE, DOUBLE),
    "rint": _nearest,
    "width_bucket": _bucket,
    **{f"{name} to scale": _at_scale(rounding) for name, rounding in _ROUNDINGS.items()},
}
"""The implementation by function, with the names in `grouping.functions`; those with `` to scale`` round DECIMALs."""
