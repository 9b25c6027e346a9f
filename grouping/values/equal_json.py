"""JSON that is the same for values which SQL takes for equal."""

from __future__ import annotations

from decimal import Decimal
from math import isfinite
from typing import Any

import msgspec

__all__ = ["equal_json", "exact_values"]

_encode = msgspec.json.Encoder(decimal_format="number", order="sorted").encode
exact_values = msgspec.json.Decoder(float_hook=Decimal).decode
"""Reads JSON; a number with a point or an exponent becomes a Decimal, so that no digit is lost."""


def equal_json(value: Any) -> bytes:
    """Return the JSON of a value in a form that equal values share.

    0.0 and -0.0 are equal, as are all NaNs; NaN and infinities are not NULL. The order of an object's fields does not
    matter.

    Args:
        value: A value of lists, dictionaries, floats, Decimals and other values that JSON can represent.

    Example:
        >>> equal_json([0.0, {"a": float("nan"), "b": 1}]) == equal_json([-0.0, {"b": 1, "a": -float("nan")}])
        True
        >>> equal_json([float("inf")]) == equal_json([None])
        False
    """
    return _encode(_normal(value))


def _normal(value: Any) -> Any:
    if isinstance(value, Decimal):
        return value if value else Decimal("0.0")
    if isinstance(value, float):
        return _normal(Decimal(repr(value))) if isfinite(value) else {"special": str(value)}
    if isinstance(value, dict):
        return {name: _normal(part) for name, part in value.items()}
    return [_normal(part) for part in value] if isinstance(value, list) else value
