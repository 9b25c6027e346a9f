"""Partitions of many keys at once: `schemas.partition` in NumPy, for the ids of thousands of new destinations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from schemas.partition import MULTIPLIER, ROTATION, SEED, partition_of

__all__ = ["partitions_of"]

_FEW = 16
"""Fewer keys than this are hashed one by one: a NumPy operation costs as much as hashing a key."""


def partitions_of(keys: Sequence[bytes], partitions: int) -> list[int]:
    """Return the partition of each key, as `partition_of` does.

    Example:
        >>> keys = [b"d_%024x" % number for number in range(100)]
        >>> partitions_of(keys, 7) == [partition_of(key, 7) for key in keys]
        True
    """
    if len(keys) < _FEW or len(set(map(len, keys))) > 1:
        return [partition_of(key, partitions) for key in keys]
    length = len(keys[0])
    whole = length & ~3
    data = np.frombuffer(b"".join(keys), np.uint8).reshape(len(keys), length)
    multiplier = np.uint32(MULTIPLIER)
    value = np.full(len(keys), SEED ^ length, np.uint32)
    for block in np.ascontiguousarray(data[:, :whole]).view("<u4").T:
        mixed = block * multiplier
        value = value * multiplier ^ (mixed ^ mixed >> ROTATION) * multiplier
    if whole < length:
        rest = np.zeros((len(keys), 4), np.uint8)
        rest[:, : length - whole] = data[:, whole:]
        value = (value ^ rest.view("<u4")[:, 0]) * multiplier
    value ^= value >> 13
    value *= multiplier
    value ^= value >> 15
    found: list[int] = ((value & 0x7FFFFFFF) % partitions).tolist()
    return found
