"""Which parts of tables are looked up in shared indexes."""

from __future__ import annotations

import pyarrow as pa

from spark_jobs.engine.constants.constant_rows import ConstantRows
from spark_jobs.engine.constants.table_shape import TableShape

__all__ = ["is_shared"]

_LARGEST = 8_192
"""Most rows of a part in a shared index; a larger part is worth an index of its own."""
_LONGEST_RUN = 32
"""Rows with the same key above which a part is worth an index that decides more than the key."""


def is_shared(shape: TableShape, rows: ConstantRows) -> bool:
    """Tell whether rows are so few that they are looked up in a shared index."""
    if len(rows) > _LARGEST or shape.shared_key is None:
        return False
    if shape.path.kind == "hash" or not len(rows):
        return True
    _, slot = shape.key_terms[0]
    constants = rows.constants[slot]
    keys = constants.flatten() if pa.types.is_list(constants.type) else constants
    return max(keys.value_counts().field("counts").to_pylist(), default=0) <= _LONGEST_RUN
