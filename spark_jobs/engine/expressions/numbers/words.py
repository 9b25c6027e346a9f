"""Doubles as two words of 32 bits each, as fdlibm uses them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Doubles", "Longs", "cut", "high", "shifted", "with_high"]

Doubles = NDArray[np.float64]
Longs = NDArray[np.int64]


def high(x: Doubles) -> Longs:
    """Return the upper 32 bits, as an unsigned number."""
    return (np.ascontiguousarray(x).view(np.int64) >> 32) & 0xFFFFFFFF


def with_high(x: Doubles, upper: Longs) -> Doubles:
    """Return the values with their upper 32 bits replaced by `upper`."""
    return ((np.ascontiguousarray(x).view(np.int64) & 0xFFFFFFFF) | (upper << 32)).view(np.float64)


def cut(x: Doubles) -> Doubles:
    """Return the values with their lower 32 bits set to zero."""
    return (np.ascontiguousarray(x).view(np.int64) & ~np.int64(0xFFFFFFFF)).view(np.float64)


def shifted(x: Doubles, k: Longs) -> Doubles:
    """Return the values with `k` added to their binary exponents."""
    return (np.ascontiguousarray(x).view(np.int64) + (k << 52)).view(np.float64)
