"""The stored form of rows that wait for a digest: a JSON object, and the numbers that JSON cannot represent.

A digest shows NaN and infinities as null, but TOP and LATEST BY compare them as SQL does. A row with such values is
stored as its object, a line end, and a second object with these values by column.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

__all__ = ["shown_row", "stored_row", "stored_values"]

_decode = msgspec.json.Decoder(dict[str, Any]).decode
_encode = msgspec.json.encode
_LINE_END = b"\n"
"""The separator of the two objects. Stored JSON contains no bare line end."""


def stored_row(shown: bytes, specials: Mapping[str, float]) -> bytes:
    r"""Return the stored form of a row, given its NaN and infinities by column.

    Example:
        >>> stored_row(b'{"d":null}', {"d": float("inf")})
        b'{"d":null}\n{"d":"inf"}'
    """
    return shown + _LINE_END + _encode({name: str(value) for name, value in specials.items()})


def shown_row(stored: bytes) -> bytes:
    r"""Return the JSON object of a row.

    Example:
        >>> shown_row(b'{"d":null}\n{"d":"inf"}')
        b'{"d":null}'
    """
    return stored.partition(_LINE_END)[0]


def stored_values(stored: bytes) -> dict[str, Any]:
    r"""Return the values of a row by column, NaN and infinities included.

    Example:
        >>> stored_values(b'{"a":1,"d":null}\n{"d":"inf"}')
        {'a': 1, 'd': inf}
    """
    shown, _, specials = stored.partition(_LINE_END)
    values = _decode(shown)
    if specials:
        values.update({name: float(text) for name, text in _decode(specials).items()})
    return values
