"""The types of DECIMAL results: precision and scale as in Spark with its default, ``allowPrecisionLoss``."""

from __future__ import annotations

from grouping.model.sql_type import BIGINT, INT, SMALLINT, TINYINT, SqlType, decimal

__all__ = ["WIDEST", "decimal_result", "exact_size"]

WIDEST = 38
"""The largest number of digits of a DECIMAL."""
_KEPT_DIGITS = 6
"""When the type of a result is cut to `WIDEST` digits, at least this many digits after the point are kept, or all of
them if there are fewer. A quotient has at least this many digits after the point."""
_WHOLE = {TINYINT: (3, 0), SMALLINT: (5, 0), INT: (10, 0), BIGINT: (20, 0)}


def exact_size(sql_type: SqlType) -> tuple[int, int]:
    """Return the precision and scale of the DECIMAL that holds every value of an exact numeric type."""
    assert sql_type in _WHOLE or sql_type.is_decimal, sql_type
    return _WHOLE.get(sql_type) or (sql_type.precision, sql_type.scale)


def decimal_result(op: str, left: SqlType, right: SqlType) -> SqlType:
    """Return the type of ``+ - * / % pmod`` over exact numbers, at least one of them a DECIMAL.

    Example:
        >>> str(decimal_result("*", decimal(10, 2), INT)), str(decimal_result("/", decimal(38, 6), decimal(38, 6)))
        ('DECIMAL(21,2)', 'DECIMAL(38,6)')
    """
    (p1, s1), (p2, s2) = exact_size(left), exact_size(right)
    match op:
        case "*":
            precision, scale = p1 + p2 + 1, s1 + s2
        case "/":
            scale = max(_KEPT_DIGITS, s1 + p2 + 1)
            precision = p1 - s1 + s2 + scale
        case "%" | "pmod":
            scale = max(s1, s2)
            precision = min(p1 - s1, p2 - s2) + scale
        case _:
            scale = max(s1, s2)
            precision = max(p1 - s1, p2 - s2) + scale + 1
    if precision > WIDEST:
        scale = max(WIDEST - (precision - scale), min(scale, _KEPT_DIGITS))
        precision = WIDEST
    return decimal(precision, scale)
