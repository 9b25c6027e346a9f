"""Completes the changes of a table: adds values that a record lacks, and turns a truncate into a removal of each row.

The missing values and the removed rows are taken from the table's rows before the change. These rows depend only on the
log, so the completed changes depend only on the log, too.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa

from spark_jobs.engine.index.key_tuples import KeyTuples
from spark_jobs.engine.operators.lookup_join.kept_values import with_kept_values
from spark_jobs.engine.operators.lookup_join.table_events import TableEvents
from spark_jobs.engine.rows.arrays import Ints
from spark_jobs.engine.rows.row_source import RowSource

__all__ = ["RowsByKey", "whole_rows"]


class RowsByKey(Protocol):
    """The rows of a table in a source partition, by the numbers of their keys."""

    def numbers(self, rows: RowSource) -> Ints:
        """Return the number of each row's key."""

    def values(self, name: str, numbers: Ints) -> pa.Array | None:
        """Return a column of the rows of keys: NULL for a key without a row; None if there never was a row."""

    def keys(self) -> dict[str, pa.Array]:
        """Return the PRIMARY KEY columns of all rows, by name; an empty dict if there never was a row."""


def whole_rows(rows: RowSource, before: RowsByKey) -> RowSource:
    """Return complete changes of a table: values that a record lacks are taken from the key's previous row.

    A truncate becomes a removal of each row. Rows that are no changes of a table, and changes that lack nothing, are
    returned unchanged.

    Args:
        rows: The changes.
        before: The rows of the table before the changes.
    """
    if not isinstance(rows, TableEvents):
        return rows
    if rows.empties:
        if not (keys := before.keys()):
            return rows.slice(0, 0)
        columns = [keys[name] for name in rows.stream.partition_key]
        order = pa.array(KeyTuples(columns).order())
        return rows.removing([column.take(order) for column in columns])
    if not any(keeps.any() for keeps in rows.unsent.values()):
        return rows
    return _with_unsent(rows, before)


def _with_unsent(rows: TableEvents, before: RowsByKey) -> TableEvents:
    assert rows.removals is not None, "changes of a table"
    numbers = before.numbers(rows)
    order = np.argsort(numbers, kind="stable")
    first = np.flatnonzero(np.append([True], np.diff(numbers[order]) != 0))
    row = np.where(rows.removals[order], -1, order).astype(np.int32)
    back = np.empty(order.size, np.int64)
    back[order] = np.arange(order.size)
    kept = {}
    for name, keeps in rows.unsent.items():
        values, old = rows.column(name), before.values(name, numbers[order[first]])
        found = ([], np.full(first.size, -1)) if old is None else ([old], np.arange(first.size))
        kept[name] = with_kept_values(values, row, keeps, first, found).take(pa.array(back))
    return rows.with_sent(kept)
