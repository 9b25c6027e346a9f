"""The values of BY in a result: results with equal values share an interval."""

from __future__ import annotations

import hashlib

import msgspec

from grouping.values.equal_json import equal_json, exact_values

__all__ = ["by_values"]

_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def by_values(row: bytes, columns: tuple[str, ...]) -> bytes:
    """Return the values of some columns of a result as bytes of fixed size, the same exactly for equal values.

    Values are compared as the result shows them, so NaN and infinities are NULL. -0.0 is 0.0, and the order of a MAP's
    keys does not matter.

    Args:
        row: The value of the result's record, a JSON object.
        columns: Columns of the SELECT list; without columns, all results have equal values.

    Example:
        >>> one, other = (by_values(b'{"symbol":"INTC","price":%d}' % price, ("symbol",)) for price in (99, 100))
        >>> one == other, by_values(b'{"symbol":"AMD","price":99}', ("symbol",)) == one
        (True, False)
    """
    if not columns:
        return b""
    fields = _decode(row)
    return hashlib.blake2b(b"\0".join([_normal(bytes(fields[name])) for name in columns]), digest_size=16).digest()


def _normal(text: bytes) -> bytes:
    """Return the JSON of a value in a form that equal values share."""
    if text[:1] in (b"{", b"["):
        return equal_json(exact_values(text))
    return b"0.0" if text == b"-0.0" else text
