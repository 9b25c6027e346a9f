"""Which parts of tables are looked up in shared indexes, and with which others."""

from __future__ import annotations

import pyarrow as pa

from grouping.model.expression import Column
from grouping.model.sql_type import SqlType
from spark_jobs.engine.constants.constant_rows import ConstantRows
from spark_jobs.engine.constants.table_shape import TableShape
from spark_jobs.engine.index.lookup import comparison

__all__ = ["Key", "is_shared", "key_of", "key_terms"]

_LARGEST = 8_192
"""Rows of a part that is looked up in a shared index: an index of its own pays for more."""
_LONGEST_RUN = 32
"""Rows with the same key above which an index that decides more than the key is worth having."""

Key = tuple[tuple[str, SqlType, SqlType], ...]
"""Column, its type and the constants' type, of each key column."""


def key_of(shape: TableShape) -> Key | None:
    """Return what tables must have in common to be looked up in a shared index; None for one that cannot be."""
    terms = key_terms(shape)
    if shape.virtual or not terms:
        return None
    return tuple((column.name, column.type, shape.types[slot].member) for column, slot in terms)


def is_shared(shape: TableShape, rows: ConstantRows) -> bool:
    """Tell whether rows are so few that they are looked up in a shared index."""
    if len(rows) > _LARGEST or key_of(shape) is None:
        return False
    if shape.path.kind == "hash" or not len(rows):
        return True
    _, slot = key_terms(shape)[0]
    constants = rows.constants[slot]
    keys = constants.flatten() if pa.types.is_list(constants.type) else constants
    return max(keys.value_counts().field("counts").to_pylist(), default=0) <= _LONGEST_RUN


def key_terms(shape: TableShape) -> list[tuple[Column, int]]:
    """Return the key columns of a table with the slots that they are compared with; none without such keys."""
    path = shape.path
    if path.kind not in ("hash", "composite"):
        return []
    positions = path.equal or (path.set_member,)
    found = [comparison(shape.plan.conjuncts[position]) for position in positions if position is not None]
    return [(column, slot) for _, column, slot in found]
