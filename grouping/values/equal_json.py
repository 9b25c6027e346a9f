"""JSON that is the same for values which SQL takes for equal."""

from __future__ import annotations

from math import isfinite
from typing import Any

import msgspec

__all__ = ["equal_json"]

_encode = msgspec.json.encode


def equal_json(value: Any) -> bytes:
    """Return the JSON of a value in which 0.0 and -0.0 are equal, as are all NaNs, and NaN and infinities are not NULL.

    Args:
        value: A value of lists, dictionaries, floats and other values that JSON can represent.

    Example:
        >>> equal_json([0.0, {"a": float("nan")}]) == equal_json([-0.0, {"a": -float("nan")}])
        True
        >>> equal_json([float("inf")]) == equal_json([None])
        False
    """
    return _encode(_normal(value))


def _normal(value: Any) -> Any:
    if isinstance(value, float):
        return value + 0.0 if isfinite(value) else {"special": str(value)}
    if isinstance(value, dict):
        return {name: _normal(part) for name, part in value.items()}
    return [_normal(part) for part in value] if isinstance(value, list) else value
