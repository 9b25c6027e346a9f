"""Decides which parts of tables are looked up in shared indexes."""

from __future__ import annotations

import pyarrow as pa

from spark_jobs.engine.constants.constant_rows import ConstantRows
from spark_jobs.engine.constants.table_shape import TableShape

__all__ = ["is_shared"]

_LARGEST = 8_192
"""The largest number of rows of a part in a shared index. A larger part is looked up faster in an index of its own."""
_LONGEST_RUN = 32
"""The largest number of rows with the same key, for a part in a shared index whose own index would also use a range.

If more rows have the same key, the part is looked up faster in its own index, which also decides the range.
"""


def is_shared(shape: TableShape, rows: ConstantRows) -> bool:
    """Tell whether a part with these rows is looked up in a shared index."""
    if len(rows) > _LARGEST or shape.shared_key is None:
        return False
    if shape.path.kind == "hash" or not len(rows):
        return True
    _, slot = shape.key_terms[0]
    constants = rows.constants[slot]
    keys = constants.flatten() if pa.types.is_list(constants.type) else constants
    return max(keys.value_counts().field("counts").to_pylist(), default=0) <= _LONGEST_RUN
