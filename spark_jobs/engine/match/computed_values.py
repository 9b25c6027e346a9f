"""Computed values that are looked up like a column of events."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

__all__ = ["ComputedValues"]


class ComputedValues:
    """Computed values that are looked up like a column of events."""

    def __init__(self, values: pa.Array) -> None:
        """Take the values."""
        self.count = len(values)
        self.time_ms = np.empty(0, np.int64)
        self.offsets = np.empty(0, np.int64)
        self.partitions = np.empty(0, np.int32)
        self._values = values

    def column(self, name: str) -> pa.Array:
        """Return the values, whatever the name."""
        return self._values

    def encoded(self, name: str) -> pa.Array:
        """Return the values, whose repeats are not known."""
        return self._values
