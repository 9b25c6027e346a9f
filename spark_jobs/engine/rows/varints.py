"""Kafka's variable-length integers: zigzag encoding, then seven bits in each byte, the lowest bits first."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["read_varint", "varint", "varints"]


def varint(number: int) -> bytes:
    r"""Encode a single integer.

    Example:
        >>> varint(0), varint(-1), varint(1), varint(64)
        (b'\x00', b'\x01', b'\x02', b'\x80\x01')
    """
    left, out = (number << 1) ^ (number >> 63), bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    out.append(left)
    return bytes(out)


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    r"""Decode the integer that begins at the byte `at`; return the integer, and the index after its last byte.

    Example:
        >>> read_varint(varint(-300), 0)
        (-300, 2)
    """
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at


_TWO_BYTES = 1 << 13
_SHORT = pa.array([varint(number) for number in range(-1, _TWO_BYTES)], pa.binary())


def varints(numbers: NDArray[np.integer]) -> pa.BinaryArray:
    """Encode a column of integers that are at least -1, such as lengths; -1 is the length of a missing value."""
    if numbers.size and numbers.max() >= _TWO_BYTES:
        return pa.array([varint(number) for number in numbers.tolist()], pa.binary())
    return _SHORT.take(pa.array(numbers + 1))
