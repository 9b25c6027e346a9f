"""Values that are encoded once for each distinct (event, SELECT list), in pools of bounded size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grouping.plan.group import SelectList
from spark_jobs.engine.results.encode import EncodedRows, EvaluateExpression, encode, row_bytes
from spark_jobs.engine.rows.cpu_budget import charged
from spark_jobs.engine.rows.edge_rows import UPDATE, EdgeRows
from spark_jobs.engine.rows.output import MAX_RECORD_BYTES
from spark_jobs.engine.rows.row_source import RowSource

__all__ = ["ValuePool", "value_pools"]

_BLOCK_ROWS = 1024
"""The largest number of matches whose values are encoded in one call.

Further matches of the last event are added, since no event may be in two calls.
"""
_BLOCK_BYTES = 32 << 20
"""The largest number of bytes of values that are encoded in one call, unless a single event has more.

The limit does not count JSON's escapes, with which a value can be six times as long.
"""
_POOL_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class ValuePool:
    """Encoded values, and the matches that publish them."""

    values: pa.BinaryArray
    """The encoded values; null for a value that is too large for a record (`results.encode.EncodedRows`)."""
    sizes: NDArray[np.int64]
    """The size of each value in bytes, including `before`; for a null, a lower bound."""
    event: NDArray[np.int32]
    """The event of each value."""
    match: NDArray[np.int64]
    """The matches of the pool, as indexes of the matches that were given to `value_pools`.

    The matches of a SELECT list are in the order of their events.
    """
    value: NDArray[np.int64]
    """For each of these matches, the index of its value."""
    before: pa.BinaryArray | None = None
    """For each value that is an update of a table's row, the encoded SELECT list of the previous row; else NULL.

    None if no value is an update.
    """


def value_pools(
    events: RowSource,
    selects: Sequence[SelectList],
    select: NDArray[np.int32],
    event: NDArray[np.int32],
    evaluate_expression: EvaluateExpression,
    *,
    stored: bool = False,
) -> Iterator[ValuePool]:
    """Encode the values that matches publish.

    Args:
        events: The decoded events.
        selects: The SELECT lists.
        select: The index of each match's SELECT list.
        event: The event of each match.
        evaluate_expression: Evaluates the items that are not just a column.
        stored: Whether the values wait for a digest (`spark_jobs.engine.results.encode.encode`).

    Yields:
        Pools; each match is in one pool. Over all pools, a SELECT list's matches come in the order of their events.
    """
    parts: list[ValuePool] = []
    count = size = 0
    for number, block, large in _blocks(events, selects, select, event):
        changes = np.ones(len(block), bool)
        changes[1:] = event[block[1:]] != event[block[:-1]]
        rows = event[block[changes]]
        select_list = selects[number]
        with charged(select_list.select_id, partial(_only, select_list)):
            values, sizes = encode(events, select_list, rows, evaluate_expression, large=large, stored=stored)
            before = _before(events, select_list, rows, evaluate_expression)
        if before is not None:
            sizes = sizes + before.sizes
            size += before.values.nbytes
        values_before = None if before is None else before.values
        parts.append(ValuePool(values, sizes, rows, block, np.cumsum(changes) - 1 + count, values_before))
        count += len(rows)
        size += values.nbytes
        if size > _POOL_BYTES:
            yield _joined(parts)
            parts, count, size = [], 0, 0
    if parts:
        yield _joined(parts)


def _before(
    events: RowSource, select: SelectList, rows: NDArray[np.int32], evaluate_expression: EvaluateExpression
) -> EncodedRows | None:
    """Return the SELECT list of the previous row for each update, and NULL for other rows; None without an update."""
    if not isinstance(events, EdgeRows) or events.kinds is None:
        return None
    updates = np.flatnonzero(events.kinds[rows] == UPDATE)
    if not updates.size:
        return None
    found, sizes = encode(events.earlier, select, rows[updates], evaluate_expression)
    place = np.full(rows.size, -1)
    place[updates] = np.arange(updates.size)
    all_sizes = np.zeros(rows.size, np.int64)
    all_sizes[updates] = sizes
    return EncodedRows(found.take(pa.array(place, mask=place < 0)), all_sizes)


def _only(select: SelectList) -> tuple[str]:
    return (select.select_id,)


def _blocks(
    events: RowSource, selects: Sequence[SelectList], select: NDArray[np.int32], event: NDArray[np.int32]
) -> Iterator[tuple[int, NDArray[np.int64], bool]]:
    """Yield blocks of matches of a SELECT list; no event of a SELECT list is in two blocks.

    Yields:
        The SELECT list, the matches in the order of their events, and whether a row may be larger than a record.
    """
    key = (select.astype(np.int64) << 32) | event
    order = np.arange(len(key)) if np.all(key[1:] >= key[:-1]) else np.argsort(key, kind="stable")
    key = key[order]
    bounds = np.flatnonzero(np.diff(key >> 32, prepend=-1)).tolist()
    for start, end in pairwise([*bounds, len(key)]):
        number = int(key[start] >> 32)
        most = row_bytes(selects[number], events.longest_record)
        ends = None
        if most * min(end - start, _BLOCK_ROWS) > _BLOCK_BYTES:
            ends = np.cumsum(row_bytes(selects[number], events.record_bytes[event[order[start:end]]]))
        first = start
        while first < end:
            stop = min(first + _BLOCK_ROWS, end)
            if ends is not None:
                before = ends[first - start - 1] if first > start else 0
                full = start + int(np.searchsorted(ends, before + _BLOCK_BYTES, side="right"))
                stop = min(max(full, first + 1), stop)
            stop = int(np.searchsorted(key, key[stop - 1], side="right"))
            yield number, order[first:stop], most > MAX_RECORD_BYTES
            first = stop


def _joined(parts: list[ValuePool]) -> ValuePool:
    return ValuePool(
        pa.concat_arrays([part.values for part in parts]),
        np.concatenate([part.sizes for part in parts]),
        np.concatenate([part.event for part in parts]),
        np.concatenate([part.match for part in parts]),
        np.concatenate([part.value for part in parts]),
        None if all(part.before is None for part in parts) else pa.concat_arrays(list(map(_before_or_nulls, parts))),
    )


def _before_or_nulls(part: ValuePool) -> pa.BinaryArray:
    return pa.nulls(len(part.values), pa.binary()) if part.before is None else part.before
