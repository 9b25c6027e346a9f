"""The sizes of values in bytes: for a text its length in bytes, for a nested value the sizes of all its parts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.engine.rows.arrays import Ints

__all__ = ["value_sizes"]

_LEAST = 2
"""The bytes that are added for each part of a nested value, and for an array itself.

In JSON, the shortest part and its comma have two bytes together.
"""


def value_sizes(values: pa.Array) -> Ints:
    """Return the bytes of each value: 0 for NULL, and 0 for a number or a time that is not part of a nested value.

    Example:
        >>> value_sizes(pa.array([["é", "b"], [], None])).tolist()
        [9, 2, 0]
    """
    kind = values.type
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        values = values.cast(pa.large_binary())
        kind = values.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        lengths = pc.list_value_length(values).fill_null(0).to_numpy().astype(np.int64)
        total = np.concatenate(([0], np.cumsum(value_sizes(values.flatten()))))
        ends = np.cumsum(lengths)
        sizes: Ints = total[ends] - total[ends - lengths] + _LEAST * (lengths + 1)
    elif pa.types.is_struct(kind):
        sizes = np.full(len(values), _LEAST * kind.num_fields, np.int64)
        for part in values.flatten():
            sizes += value_sizes(part)
    elif any(of(kind) for of in (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary)) or (
        pa.types.is_large_binary(kind)
    ):
        sizes = pc.binary_length(values).fill_null(0).to_numpy().astype(np.int64)
    else:
        sizes = np.zeros(len(values), np.int64)
    if values.null_count:
        sizes[values.is_null().to_numpy(zero_copy_only=False)] = 0
    return sizes
