"""Divides the partial aggregates of a task into records of `cq.pending` that are not too large for Kafka."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from grouping.digests.pending_matches import PendingAggregates, pack_aggregates
from grouping.model.ids import StreamId
from grouping.store.notes import TableVersion
from spark_jobs.engine.index import Ints
from spark_jobs.engine.operators.aggregate.partials import packed_states
from spark_jobs.engine.operators.aggregate.store_names import StoreNames
from spark_jobs.engine.rows.output import MAX_RECORD_BYTES
from spark_jobs.engine.rows.value_sizes import value_sizes

__all__ = ["BY", "RANGE", "OversizeAggregate", "TaskRange", "aggregate_records"]

BY = ("store", "pane", "at", "part")
"""The columns of a task's table that, together with the keys of GROUP BY, distinguish its rows."""
RANGE = np.iinfo(np.int64).max
"""The value of `at` in rows that stand for the task's whole range of offsets, not for a single offset."""
_RECORD_BYTES = 400_000
"""The approximate largest size of a record in bytes, unless the record has a single row."""
_SHARED_BYTES = 64_000
"""The approximate largest size of a record of several work units.

The limit is small, because a tick of one unit's query reads the whole record.
"""
_ROW_BYTES = 64
"""The bytes that each row takes in a record in addition to its states: for its store, pane, offsets and ordinal."""
_COLUMN_BYTES = 16
"""The bytes of each column in a row, not including texts."""


class TaskRange(NamedTuple):
    """The range of offsets that a task has read in a source partition, from `first` to `last`, inclusive."""

    partition: int
    first: int
    last: int


class OversizeAggregate(NamedTuple):
    """A partial aggregate that is too large for a record."""

    size: int
    """The bytes of the record that would hold the aggregate."""
    matches: int
    """The number of aggregated matches."""


def aggregate_records(
    table: pl.DataFrame,
    keys: list[str],
    stores: StoreNames,
    offsets: TaskRange,
    stream_id: StreamId,
    version: TableVersion,
) -> Iterator[tuple[int, bytes | OversizeAggregate]]:
    """Yield partitions of `cq.pending`, each with a record; or with an `OversizeAggregate` for a row that is too large.

    Args:
        table: The partial aggregates of a task, with the columns `BY`, and `unit`, the number of each row's unit.
        keys: The names of the columns of GROUP BY.
        stores: The ids of the stores, by the numbers in the table.
        offsets: The range of offsets for which rows stand, unless a row stands for a single offset.
        stream_id: The stream.
        version: The version of the constant tables that gave the matches.
    """
    numbers = table["store"].to_numpy()
    table = table.with_columns(pl.Series("rank", stores.ranks(numbers)), pl.Series("place", stores.partitions(numbers)))
    # A replay may number units and stores differently. The order of rows within a store is the same in every replay.
    table = table.sort("place", "unit", "rank", "at", "pane", "part", *keys)
    table = table.with_columns(_ordinals(table["rank"].to_numpy(), table["at"].to_numpy()))
    places = table["place"].to_numpy()
    sizes = _row_bytes(table)
    for begin, end in _pieces(table["rank"].to_numpy(), _lots(places, table["unit"].to_numpy(), sizes), sizes):
        left = [table.slice(begin, end - begin)]
        while left:
            piece = left.pop()
            body = _packed(piece, stores, offsets, stream_id, version)
            if len(body) <= MAX_RECORD_BYTES:
                yield int(places[begin]), body
            elif piece.height > 1:
                half = piece.height // 2
                left += [piece.slice(half), piece.slice(0, half)]
            else:
                yield int(places[begin]), OversizeAggregate(len(body), int(piece["n"][0]))


def _ordinals(*sorted_by: NDArray[np.int32] | Ints) -> pl.Series:
    """Return the place of each row among the rows with equal values in some columns.

    Args:
        sorted_by: The columns; the rows must be sorted by them.
    """
    places = np.arange(sorted_by[0].size)
    begins = np.zeros(places.size, np.bool_)
    for column in sorted_by:
        begins[1:] |= column[1:] != column[:-1]
    return pl.Series("ordinal", places - np.maximum.accumulate(np.where(begins, places, 0)), dtype=pl.Int32)


def _row_bytes(table: pl.DataFrame) -> Ints:
    """Return an estimate of the bytes that each row takes in a record."""
    sizes = np.full(table.height, _ROW_BYTES + _COLUMN_BYTES * table.width, np.int64)
    for column in table.iter_columns():
        if column.dtype in (pl.String, pl.Binary) or column.dtype.is_nested():
            sizes += value_sizes(column.to_arrow())
    return sizes


def _lots(places: NDArray[np.int32], units: NDArray[np.int32], sizes: Ints) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each lot of rows: one large unit, or several small units, which may share records.

    Args:
        places: The partition of `cq.pending` of each row; ascending.
        units: The unit of each row; the rows of one unit and partition must be neighbours.
        sizes: The bytes of each row.
    """
    total = np.append(0, np.cumsum(sizes))
    begins = np.flatnonzero((np.diff(units, prepend=-1) != 0) | (np.diff(places, prepend=-1) != 0)).tolist()
    first = 0
    for begin, end in pairwise([*begins, units.size]):
        if begin > first and (places[begin] != places[first] or total[end] - total[first] > _SHARED_BYTES):
            yield first, begin
            first = begin
    if units.size:
        yield first, units.size


def _pieces(ranks: NDArray[np.int32], lots: Iterable[tuple[int, int]], sizes: Ints) -> Iterator[tuple[int, int]]:
    """Yield begin and end of the rows of each record. If possible, the rows of a store are not divided.

    So a task that dies midway has written all rows of a store or none, unless the store is larger than a record.
    """
    total = np.cumsum(sizes)
    stores = np.append(np.flatnonzero(np.diff(ranks)) + 1, ranks.size)
    for first, until in lots:
        begin = first
        while begin < until:
            before = int(total[begin - 1]) if begin else 0
            end = max(begin + 1, int(np.searchsorted(total, before + _RECORD_BYTES, side="right")))
            last = int(np.searchsorted(stores, end, side="right"))
            if last and stores[last - 1] > begin:
                end = int(stores[last - 1])
            end = min(end, until)
            yield begin, end
            begin = end


def _packed(
    piece: pl.DataFrame, stores: StoreNames, offsets: TaskRange, stream_id: StreamId, version: TableVersion
) -> bytes:
    """Return some partial aggregates as the value of a record."""
    count, at = piece.height, piece["at"].to_numpy()
    aggregates = PendingAggregates(
        np.full(count, offsets.partition, np.int32),
        np.where(at == RANGE, offsets.first, at),
        np.where(at == RANGE, offsets.last, at),
        piece["ordinal"].to_numpy(),
        piece["pane"].to_numpy(),
        np.arange(count, dtype=np.int32),
    )
    states = packed_states(piece.drop("rank", "place", "unit", "ordinal", *BY))
    return pack_aggregates(stream_id, version, stores.ids(piece["store"].to_numpy()), aggregates, states)
