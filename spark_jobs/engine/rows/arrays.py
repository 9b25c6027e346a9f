"""Names for the types of arrays that rooms of the engine pass to each other, and a function for distinct values."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Codes", "Hashes", "Ints", "distinct_values"]

Ints = NDArray[np.int64]
"""Offsets, sizes, row numbers and keys."""
Hashes = NDArray[np.uint64]
Codes = NDArray[np.int32]
"""Numbers that replace values: equal values have equal numbers; -1 for a value without a number."""

_Integer = TypeVar("_Integer", bound=np.integer)


def distinct_values(values: NDArray[_Integer]) -> NDArray[_Integer]:
    """Return the distinct values, ascending.

    This function sorts the values. `numpy.unique` hashes integers, which takes twenty times as long for very many
    distinct values.

    Example:
        >>> distinct_values(np.array([3, 1, 3])).tolist()
        [1, 3]
    """
    ordered = np.sort(values)
    is_new = np.ones(ordered.size, np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_new[1:])
    return ordered[is_new]
