"""The text of a DOUBLE as Java writes it, and as Jackson writes it in JSON."""

from __future__ import annotations

from decimal import Decimal
from math import isfinite, isinf, isnan

__all__ = ["java_double", "json_double"]


def java_double(value: float) -> str:
    """Return a double as Java 19 and later write it: with as few digits as identify the number, but at least two.

    Example:
        >>> java_double(1e7), java_double(0.001), java_double(123.0), java_double(5e-324)
        ('1.0E7', '0.001', '123.0', '4.9E-324')
    """
    if value == 0 or isinf(value):
        return repr(value) if not isinf(value) else "Infinity" if value > 0 else "-Infinity"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    if len(digits) == 1:  # a number of two digits may be nearer to the value
        sign, digits, exponent = Decimal(f"{value:.1e}").normalize().as_tuple()
    text = "".join(map(str, digits))
    place = len(text) + int(exponent) - 1
    shown = "-" * sign
    if 1e-3 <= abs(value) < 1e7:
        plain = format(abs(Decimal(repr(value)).normalize()), "f")
        return shown + (plain if "." in plain else f"{plain}.0")
    return f"{shown}{text[0]}.{text[1:] or '0'}E{place}"


def json_double(value: float) -> str:
    """Return a double as Jackson writes it: NaN and infinities, which are not JSON, as strings.

    Example:
        >>> json_double(1e3), json_double(float("inf")), json_double(float("nan"))
        ('1000.0', '"Infinity"', '"NaN"')
    """
    if isfinite(value):
        return java_double(value)
    return '"NaN"' if isnan(value) else f'"{java_double(value)}"'
