"""The types of DECIMAL results: Spark's precision and scale, as with ``allowPrecisionLoss``, its default."""

from __future__ import annotations

import re

__all__ = ["WIDEST", "decimal_result", "decimal_size", "exact_size", "is_decimal"]

WIDEST = 38
_KEPT_DIGITS = 6
"""Digits after the point that a product or quotient keeps however wide it is."""
_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")
_WHOLE = {"INT": (10, 0), "BIGINT": (20, 0)}


def is_decimal(kind: str) -> bool:
    """Return whether a type is a DECIMAL."""
    return kind.startswith("DECIMAL")


def decimal_size(kind: str) -> tuple[int, int]:
    """Return precision and scale of a DECIMAL type.

    Example:
        >>> decimal_size("DECIMAL(10,2)")
        (10, 2)
    """
    match = _DECIMAL.fullmatch(kind)
    assert match is not None, kind
    return int(match[1]), int(match[2])


def exact_size(kind: str) -> tuple[int, int]:
    """Return the precision and scale that hold every value of an exact number's type."""
    return _WHOLE.get(kind) or decimal_size(kind)


def decimal_result(op: str, left: str, right: str) -> str:
    """Return the type of ``+ - * / %`` over exact numbers of which one is a DECIMAL.

    Example:
        >>> decimal_result("*", "DECIMAL(10,2)", "INT"), decimal_result("/", "DECIMAL(38,6)", "DECIMAL(38,6)")
        ('DECIMAL(21,2)', 'DECIMAL(38,6)')
    """
    (p1, s1), (p2, s2) = exact_size(left), exact_size(right)
    match op:
        case "*":
            precision, scale = p1 + p2 + 1, s1 + s2
        case "/":
            scale = max(_KEPT_DIGITS, s1 + p2 + 1)
            precision = p1 - s1 + s2 + scale
        case "%":
            scale = max(s1, s2)
            precision = min(p1 - s1, p2 - s2) + scale
        case _:
            scale = max(s1, s2)
            precision = max(p1 - s1, p2 - s2) + scale + 1
    if precision > WIDEST:
        scale = max(WIDEST - (precision - scale), min(scale, _KEPT_DIGITS))
        precision = WIDEST
    return f"DECIMAL({precision},{scale})"
