"""The stored form of rows that wait for a digest: a JSON object, and the numbers that JSON cannot represent.

A digest shows NaN and infinities as null, but TOP and LATEST BY compare them as SQL does. A row with such values is
stored as its object, a line end, and a second object with these values by column. A column of a nested type is in the
second object as a whole, in a list: each NaN or infinity is ``{"f": text}``, and each object ``{"o": object}``.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from math import isfinite
from typing import Any

import msgspec

__all__ = ["shown_row", "stored_row", "stored_values"]

_decode = msgspec.json.Decoder(dict[str, Any], float_hook=Decimal).decode
_encode = msgspec.json.Encoder(decimal_format="number").encode
_LINE_END = b"\n"
"""The separator of the two objects. Stored JSON contains no bare line end."""


def stored_row(shown: bytes, specials: Mapping[str, Any]) -> bytes:
    r"""Return the stored form of a row, given the columns with NaN or infinities.

    Example:
        >>> stored_row(b'{"d":null}', {"d": float("inf")})
        b'{"d":null}\n{"d":"inf"}'
        >>> stored_row(b'{"a":[null,1]}', {"a": [float("inf"), 1]})
        b'{"a":[null,1]}\n{"a":[[{"f":"inf"},1]]}'
    """
    tagged = {name: str(value) if isinstance(value, float) else [_tagged(value)] for name, value in specials.items()}
    return shown + _LINE_END + _encode(tagged)


def _tagged(value: Any) -> Any:
    if isinstance(value, float) and not isfinite(value):
        return {"f": str(value)}
    if isinstance(value, dict):
        return {"o": {name: _tagged(part) for name, part in value.items()}}
    return [_tagged(part) for part in value] if isinstance(value, list) else value


def _untagged(value: Any) -> Any:
    if isinstance(value, dict):
        return float(value["f"]) if "f" in value else {name: _untagged(part) for name, part in value["o"].items()}
    return [_untagged(part) for part in value] if isinstance(value, list) else value


def shown_row(stored: bytes) -> bytes:
    r"""Return the JSON object of a row.

    Example:
        >>> shown_row(b'{"d":null}\n{"d":"inf"}')
        b'{"d":null}'
    """
    return stored.partition(_LINE_END)[0]


def stored_values(stored: bytes) -> dict[str, Any]:
    r"""Return the values of a row by column, NaN and infinities included; other fractions are exact, as Decimals.

    Example:
        >>> stored_values(b'{"a":1,"d":null}\n{"d":"inf"}')
        {'a': 1, 'd': inf}
        >>> stored_values(b'{"a":[null,1]}\n{"a":[[{"f":"inf"},1]]}')
        {'a': [inf, 1]}
    """
    shown, _, specials = stored.partition(_LINE_END)
    values = _decode(shown)
    if specials:
        for name, special in _decode(specials).items():
            values[name] = float(special) if isinstance(special, str) else _untagged(special[0])
    return values
