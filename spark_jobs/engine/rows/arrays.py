"""Names for the arrays that rooms of the engine hand to each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Codes", "Hashes", "Ints"]

Ints = NDArray[np.int64]
"""Offsets, sizes, row numbers and keys."""
Hashes = NDArray[np.uint64]
Codes = NDArray[np.int32]
"""Numbers of equal values; -1 for a value without a number."""
