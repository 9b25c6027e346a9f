"""A task's matches of queries over groups: counted batch by batch, and written as partial aggregates at its end.

A task has one range of offsets of one source partition, and whoever replays it has the same. So all that it counted of
a store stands for that range: a reader of the log knows the repeats of a replay by where ranges begin.

A query that begins anew without its checkpoint cuts other batches than before. So what may have been evaluated by then
is written by single offsets, which are known again one by one: ranges overlap none that were cut otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from grouping.digests.pending_matches import PendingGroups, pack_groups
from grouping.model.expression import Expression
from grouping.model.group import SelectList
from grouping.model.grouping import Aggregate
from grouping.model.ids import SelectId, StreamId
from grouping.store.constant_table import MODES
from grouping.store.notes import TableVersion
from grouping.store.quarantine import share_of
from spark_jobs.batch.cpu_budget import charged
from spark_jobs.batch.faults import FAULTS, fault_reason
from spark_jobs.batch.matches import Matches
from spark_jobs.batch.output import MAX_RECORD_BYTES
from spark_jobs.batch.row_source import RowSource
from spark_jobs.groups.panes import Panes
from spark_jobs.groups.partials import Partials
from spark_jobs.groups.store_names import StoreNames
from spark_jobs.index import Ints
from spark_jobs.results.encode import EvaluateExpression

__all__ = ["GroupCounting"]

_PENDING = MODES.index("pending")
_BY = ("store", "pane", "at", "part")
_RANGE = np.iinfo(np.int64).max
"""Stands for the offset of what is counted together."""
_RECORD_ROWS = 16_000
_RECORD_BYTES = 400_000
_LIFTED_ROWS = 100_000
_LIFTED_BYTES = 20_000_000
"""So many matches, or bytes of them, are put into groups at a time."""
_MOST_TEXT = 800_000
"""Bytes of texts that a partial aggregate may have: each of its columns may have come of another match."""
_SET_BYTES = 100_000
"""Of distinct values in one partial aggregate, about."""
_VALUE_BYTES = 16
"""Of one that is no text, and around each."""

ShareFault = Callable[[RowSource, Ints, str, str], Iterator[pa.RecordBatch]]
"""Makes what stands for the events of a share that failed: of which batch, which events, the share, and why."""
Letters = Callable[[RowSource, dict[int, str]], pa.RecordBatch]
"""Makes dead letters: of which batch, and by event the details."""


@dataclass(slots=True)
class _ShareMatches:
    """Matches of one share, of events in one batch."""

    events: RowSource
    select: SelectList
    event: list[NDArray[np.int32]] = field(default_factory=list)
    store: list[NDArray[np.int32]] = field(default_factory=list)
    latest: int = -1
    again: bool = False
    """Whether some came again, since others of the batch had failed."""


@dataclass(slots=True)
class _SelectCount:
    """What was counted of one SELECT list. Matches are put into groups many at a time: that costs less a match."""

    partials: Partials
    _lifted: list[pl.DataFrame] = field(default_factory=list)
    _tables: list[pl.DataFrame] = field(default_factory=list)

    def add(self, lifted: pl.DataFrame) -> None:
        """Take in matches."""
        self._lifted.append(lifted)
        rows = sum(each.height for each in self._lifted)
        if rows >= _LIFTED_ROWS or sum(each.estimated_size() for each in self._lifted) >= _LIFTED_BYTES:
            self._count()

    def whole(self) -> pl.DataFrame:
        """Return the groups of all that was taken in."""
        if self._lifted:
            self._count()
        if len(self._tables) > 1:
            self._tables = [self.partials.merged(_joined(self._tables), _BY)]
        return self._tables[0]

    def _count(self) -> None:
        self._tables.append(self.partials.counted(_joined(self._lifted), _BY))
        self._lifted = []


def _joined(tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat(tables, how="vertical_relaxed")


class _Values:
    """Keys and arguments of matches, each expression computed once for each event."""

    def __init__(self, evaluate: EvaluateExpression, events: RowSource, event: NDArray[np.int32]) -> None:
        self._evaluate = evaluate
        self._events = events
        self._rows, self._which = np.unique(event, return_inverse=True)
        self._known: dict[Expression, pl.Series] = {}

    def of(self, expression: Expression) -> pl.Series:
        found = self._known.get(expression)
        if found is None:
            found = pl.Series(self._evaluate(expression, self._events, self._rows)).gather(self._which)
            self._known[expression] = found
        return found

    def arguments(self, aggregate: Aggregate) -> tuple[list[pl.Series], NDArray[np.bool_] | None]:
        wanted = aggregate.condition
        counted = None if wanted is None else self.of(wanted).fill_null(False).to_numpy()
        return [self.of(argument) for argument in aggregate.args], counted

    def text_bytes(self) -> Ints:
        """Return by match the bytes of all texts."""
        total = np.zeros(self._which.size, np.int64)
        for values in self._known.values():
            if values.dtype == pl.String:
                total += values.str.len_bytes().fill_null(0).to_numpy().astype(np.int64)
        return total


class GroupCounting:
    """Counts a task's matches."""

    def __init__(
        self,
        evaluate: EvaluateExpression,
        too_large: Letters,
        bounds: Mapping[int, bytes],
        singly_until: Mapping[int, int] | None = None,
    ) -> None:
        """Begin a task.

        Args:
            evaluate: Computes keys and arguments.
            too_large: Makes the dead letters of matches that are too large for a group.
            bounds: By number, those of stores (`grouping.model.panes`).
            singly_until: By source partition: what lies before was perhaps evaluated in other batches, and is written
                by single offsets.
        """
        self._evaluate = evaluate
        self._too_large = too_large
        self._singly_until = singly_until or {}
        self._panes = Panes(bounds)
        self._met: dict[str, _ShareMatches] = {}
        self._counted: dict[SelectId, _SelectCount] = {}
        self._stores = StoreNames()
        self._range: tuple[int, int, int] | None = None
        self._parts = 0

    def take(self, events: RowSource, matches: Matches) -> None:
        """Take in those matches that are to be counted; they may come again before `count`."""
        grouped = np.array([select.grouping is not None for select in matches.selects], np.bool_)
        if not grouped.any():
            return
        found = np.flatnonzero((matches.mode == _PENDING) & grouped[matches.select])
        if not found.size:
            return
        self._stores.add(matches, found)
        codes = (matches.group[found].astype(np.int64) << 32) | matches.select[found]
        for code in np.unique(codes).tolist():
            select = matches.selects[code & 0xFFFFFFFF]
            chosen = found[codes == code]
            share = share_of(matches.groups[code >> 32], select.select_id)
            met = self._met.setdefault(share, _ShareMatches(events, select))
            event = matches.event[chosen]
            met.again |= int(event.min()) <= met.latest
            met.latest = max(met.latest, int(event.max()))
            met.event.append(event)
            met.store.append(matches.number[chosen])

    def count(self, failed: ShareFault) -> Iterator[pa.RecordBatch]:
        """Count what was taken in of one batch; yields what stands for shares that fail."""
        taken, self._met = self._met, {}
        for share, met in taken.items():
            event, store = np.concatenate(met.event), np.concatenate(met.store)
            if met.again:
                _, first = np.unique((event.astype(np.int64) << 32) | store, return_index=True)
                event, store = event[first], store[first]
            select_id = met.select.select_id
            try:
                with charged(select_id, partial(tuple, [select_id])):
                    large = self._count(met, event, store)
            except FAULTS as fault:
                reason, events = fault_reason(fault), met.events
                yield from failed(events, np.unique(event).astype(np.int64), share, reason)
                continue
            if large:
                yield self._too_large(met.events, large)

    def _count(self, met: _ShareMatches, event: NDArray[np.int32], store: NDArray[np.int32]) -> dict[int, str]:
        """Count matches of one share; returns by event why it is left out."""
        select, grouping = met.select, met.select.grouping
        assert grouping is not None, "it was taken in for that"
        values = _Values(self._evaluate, met.events, event)
        keys = [values.of(key.expression) for key in grouping.keys]
        args = [values.arguments(aggregate) for aggregate in grouping.aggregates]
        sizes, most = values.text_bytes(), _MOST_TEXT // (len(keys) + 2 * len(args) + 1)
        if (large := np.flatnonzero(sizes > most)).size:
            kept = np.flatnonzero(sizes <= most)
            details = {
                int(event[place]): f"It brings {sizes[place]} bytes into a group; a match may bring {most}."
                for place in large.tolist()
            }
            return details | self._count(met, event[kept], store[kept])
        times, offsets = met.events.time_ms[event], met.events.offsets[event]
        single = np.zeros(event.size, np.bool_)
        if event.size:
            single = offsets < self._singly_until.get(int(met.events.partitions[0]), 0)
        part = np.zeros(event.size, np.int64)
        if any(each.function == "approx_count_distinct" or each.distinct for each in grouping.aggregates):
            # A set of distinct values grows with the matches: so many of these make one aggregate, in their order.
            order = np.lexsort((store, event))
            part[order] = self._parts + np.cumsum(sizes[order] + _VALUE_BYTES * len(args)) // _SET_BYTES
            self._parts = int(part.max(initial=self._parts)) + 1
        by = {
            "store": pl.Series(store),
            "pane": pl.Series(self._panes.begins(store, times)),
            "at": pl.Series(np.where(single, offsets, _RANGE)),
            "part": pl.Series(part),
        }
        shelf = self._counted.setdefault(select.select_id, _SelectCount(Partials(grouping)))
        shelf.add(shelf.partials.lifted(by, keys, args, offsets))
        return {}

    def extend(self, partition: int, first: int, last: int) -> None:
        """Note that the task has read events of these offsets."""
        known = self._range or (partition, first, last)
        self._range = (partition, min(first, known[1]), max(last, known[2]))

    def records(self, stream_id: StreamId, version: TableVersion) -> Iterator[tuple[int, bytes]]:
        """Yield records of `cq.pending` with their partitions: the partial aggregates of the task."""
        for _, counted in sorted(self._counted.items()):
            if self._range is not None:
                yield from self._records(counted.whole(), counted.partials, stream_id, version)

    def _records(
        self, table: pl.DataFrame, partials: Partials, stream_id: StreamId, version: TableVersion
    ) -> Iterator[tuple[int, bytes]]:
        assert self._range is not None, "something was read"
        partition, first, last = self._range
        first = max(first, self._singly_until.get(partition, 0))
        stores = table["store"].to_numpy()
        table = table.with_columns(
            pl.Series("rank", self._stores.ranks(stores)), pl.Series("place", self._stores.partitions(stores))
        )
        # In one order, whatever the numbers of the stores are: it tells what a replay writes again.
        table = table.sort("rank", "at", "pane", "part", *partials.keys)
        table = table.with_columns(_ordinals(table["rank"].to_numpy(), table["at"].to_numpy()))
        for (place,), own in table.group_by("place", maintain_order=True):
            left = list(_pieces(own))[::-1]
            while left:
                piece = left.pop()
                ids = self._stores.ids(piece["store"].to_numpy())
                body = _packed(piece, ids, (partition, first, last), stream_id, version)
                if len(body) > MAX_RECORD_BYTES and piece.height > 1:
                    half = piece.height // 2
                    left += [piece.slice(half), piece.slice(0, half)]  # its rows differ much in size
                else:
                    yield int(place), body


def _ordinals(*sorted_by: NDArray[np.int32] | Ints) -> pl.Series:
    """Return the places of rows among those that are equal in these columns, by which they are sorted."""
    places = np.arange(sorted_by[0].size)
    begins = np.zeros(places.size, np.bool_)
    for column in sorted_by:
        begins[1:] |= column[1:] != column[:-1]
    return pl.Series("ordinal", places - np.maximum.accumulate(np.where(begins, places, 0)), dtype=pl.Int32)


def _packed(
    piece: pl.DataFrame,
    ids: NDArray[np.uint8],
    offsets: tuple[int, int, int],
    stream_id: StreamId,
    version: TableVersion,
) -> bytes:
    """Return some partial aggregates as a record of `cq.pending`.

    Args:
        piece: The partial aggregates.
        ids: Those of their stores.
        offsets: The partition and range of the task.
        stream_id: The stream.
        version: Of the constant tables.
    """
    partition, first, last = offsets
    count, at = piece.height, piece["at"].to_numpy()
    groups = PendingGroups(
        np.full(count, partition, np.int32),
        np.where(at == _RANGE, first, at),
        np.where(at == _RANGE, last, at),
        piece["ordinal"].to_numpy(),
        piece["pane"].to_numpy(),
        np.arange(count, dtype=np.int32),
    )
    states = piece.drop("rank", "place", "ordinal", *_BY).rechunk().write_ipc_stream(None)
    return pack_groups(stream_id, version, ids, groups, states.getvalue())


def _pieces(table: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield a table in pieces that fit a record each, cut between stores where that can be.

    So what a task that dies has written of a store is all or nothing, but for a store that is larger than a record.
    """
    rows = table.height
    step = max(1, min(_RECORD_ROWS, _RECORD_BYTES * rows // max(int(table.estimated_size()), 1)))
    ends = np.append(np.flatnonzero(np.diff(table["rank"].to_numpy())) + 1, rows)
    begin = 0
    while begin < rows:
        end = min(begin + step, rows)
        stores = int(np.searchsorted(ends, end, side="right"))
        if stores and ends[stores - 1] > begin:
            end = int(ends[stores - 1])
        yield table.slice(begin, end - begin)
        begin = end
