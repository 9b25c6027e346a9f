"""Rules for the types of results that depend on the types of the arguments, as in Spark 4.

The type of an argument is `UNKNOWN` if it depends on the constants of the row. A rule returns `UNKNOWN` if the result
depends on the type of such an argument.
"""

from __future__ import annotations

from collections.abc import Sequence

from grouping.functions.function import ResultRule
from grouping.model.decimal_types import WIDEST, decimal_result, exact_size
from grouping.model.sql_type import BIGINT, DOUBLE, FLOAT, INT, UNKNOWN, WHOLE_BITS, SqlType, array_of, decimal

__all__ = [
    "arithmetic",
    "averaged",
    "chosen",
    "common_type",
    "listed",
    "of_first",
    "rounded",
    "shifted",
    "summed",
    "whole",
    "widest",
]

_SUM_DIGITS = 10
"""Extra digits of a sum of DECIMALs."""
_MEAN_DIGITS = 4
"""Extra digits after the point of a mean of DECIMALs."""


def common_type(kinds: Sequence[SqlType]) -> SqlType | None:
    """Return the common type of these types by Spark's implicit casts; None without a common type."""
    known = {sql_type for sql_type in kinds if sql_type != UNKNOWN}
    if not all(sql_type.is_number for sql_type in known):
        return known.pop() if len(known) == 1 else None
    if len(known) == 1 and len(kinds) == 1:
        return known.pop()
    if known == {FLOAT} and UNKNOWN not in kinds:
        return FLOAT
    if known & {FLOAT, DOUBLE}:
        return DOUBLE  # Spark never widens whole numbers to FLOAT
    if UNKNOWN in kinds:
        return UNKNOWN
    if all(sql_type.is_whole for sql_type in known):
        return max(known, key=lambda sql_type: WHOLE_BITS[sql_type.name])
    return _common_decimal(known)


def _common_decimal(kinds: set[SqlType]) -> SqlType | None:
    sizes = [exact_size(sql_type) for sql_type in kinds]
    scale = max(size[1] for size in sizes)
    precision = max(size[0] - size[1] for size in sizes) + scale
    return decimal(precision, scale) if precision <= WIDEST else None


def of_first(kinds: Sequence[SqlType]) -> SqlType:
    """Return the type of the first argument."""
    return kinds[0]


def listed(kinds: Sequence[SqlType]) -> SqlType:
    """Return the type of an ARRAY of the first argument's values."""
    return array_of(kinds[0])


def widest(kinds: Sequence[SqlType]) -> SqlType:
    """Return the common type of the arguments."""
    return common_type(kinds) or UNKNOWN


def chosen(kinds: Sequence[SqlType]) -> SqlType:
    """Return the common type of the results of CASE; the arguments are condition, result, …[, ELSE]."""
    return widest([sql_type for i, sql_type in enumerate(kinds) if i % 2 or i == len(kinds) - 1])


def arithmetic(op: str) -> ResultRule:
    """Return the rule of an arithmetic operator."""

    def rule(kinds: Sequence[SqlType]) -> SqlType:
        if DOUBLE not in kinds and FLOAT not in kinds:
            if UNKNOWN in kinds:
                return UNKNOWN
            if any(sql_type.is_decimal for sql_type in kinds):
                return decimal_result(op, kinds[0], kinds[1])
        return DOUBLE if op == "/" else widest(kinds)

    return rule


def shifted(kinds: Sequence[SqlType]) -> SqlType:
    """Return the type of a bit shift."""
    return kinds[0] if kinds[0] in (BIGINT, UNKNOWN) else INT


def rounded(kinds: Sequence[SqlType]) -> SqlType:
    """Return the type of a number rounded to the nearest whole number; a carry may add a digit."""
    number = kinds[0]
    return decimal(min(number.precision - number.scale + 1, WIDEST), 0) if number.is_decimal else number


def whole(kinds: Sequence[SqlType]) -> SqlType:
    """Return the type of the whole number above or below a number."""
    number = kinds[0]
    if number.is_decimal:
        return decimal(min(number.precision - number.scale + (number.scale > 0), WIDEST), 0)
    return number if number == UNKNOWN else BIGINT


def summed(kinds: Sequence[SqlType]) -> SqlType:
    """Return the type of a sum."""
    number = kinds[0]
    if number.is_decimal:
        return decimal(min(number.precision + _SUM_DIGITS, WIDEST), number.scale)
    return BIGINT if number.is_whole else DOUBLE


def averaged(kinds: Sequence[SqlType]) -> SqlType:
    """Return the type of a mean."""
    number = kinds[0]
    if number.is_decimal:
        return decimal(min(number.precision + _MEAN_DIGITS, WIDEST), min(number.scale + _MEAN_DIGITS, WIDEST))
    return DOUBLE
