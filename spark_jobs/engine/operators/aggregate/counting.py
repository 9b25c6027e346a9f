"""Counts a task's matches of aggregate queries batch by batch, and writes partial aggregates at the task's end.

A task reads a range of offsets of one source partition, and a replay of the task reads the same range. Therefore a
partial aggregate stands for the whole range, and a reader of the log recognises a replay by the range's first offset.

A streaming query that has lost its checkpoint divides the events into other ranges. By such a range, a reader could not
recognise events that were evaluated before the loss. Partial aggregates of such events therefore stand for a single
offset each, and the range begins after these offsets. So ranges with different bounds never overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from grouping.model.expression import Reference
from grouping.model.ids import SelectId, StreamId
from grouping.plan.group import SelectList
from grouping.store.constant_table import MODES
from grouping.store.notes import TableVersion
from grouping.store.work_units import group_of, parts_of, unit_of
from spark_jobs.engine.operators.aggregate.match_values import MatchValues
from spark_jobs.engine.operators.aggregate.panes import Panes, lengthened
from spark_jobs.engine.operators.aggregate.partial_aggregate import PartialAggregate, PartialTables
from spark_jobs.engine.operators.aggregate.partials import Partials
from spark_jobs.engine.operators.aggregate.records import RANGE, OversizeAggregate, TaskRange, aggregate_records
from spark_jobs.engine.operators.aggregate.store_names import StoreNames
from spark_jobs.engine.operators.aggregate.value_lists import VALUE_LISTS
from spark_jobs.engine.results.encode import EvaluateExpression
from spark_jobs.engine.rows.cpu_budget import charged
from spark_jobs.engine.rows.matches import Matches
from spark_jobs.engine.rows.output import MAX_RECORD_BYTES, no_record
from spark_jobs.engine.rows.row_source import RowSource

__all__ = ["AggregateCounting", "IncompleteUnit", "UnitMatches"]

_PENDING = MODES.index("pending")
_MOST_TEXT = 800_000
"""The largest number of bytes of texts in a partial aggregate.

Each column of a partial aggregate may hold a text from a different match. Therefore the texts of one match may have at
most this number of bytes, divided by the number of columns.
"""
_KEEPING = VALUE_LISTS | {"approx_count_distinct"}
"""The functions whose state keeps values. The state of any function with DISTINCT keeps values, too."""
_SET_BYTES = 100_000
"""When the kept values of a partial aggregate have about this many bytes, another partial aggregate begins."""
_VALUE_BYTES = 16
"""The bytes that are added for each kept value, in addition to those of its text."""

Letters = Callable[[pa.RecordBatch, dict[int, str]], pa.RecordBatch]
"""Makes dead letters (code ``result-too-large``) for source records; gets the records, and the details by row."""


class IncompleteUnit(NamedTuple):
    """A work unit that was left out for some events of the task, so that no aggregate of the unit is written."""

    unit: str
    offsets: TaskRange
    matches: int
    """The number of counted matches that are not written."""


@dataclass(slots=True)
class UnitMatches:
    """Matches of a work unit (a SELECT list of a group), for events of one batch."""

    events: RowSource
    select: SelectList
    event: list[NDArray[np.int32]] = field(default_factory=list)
    store: list[NDArray[np.int32]] = field(default_factory=list)
    latest: int = -1
    """The last event with a match so far."""
    again: bool = False
    """Whether some matches may have been taken in twice, because a step ran again after another work unit failed."""

    def pairs(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return event and store of each match, without repeats."""
        event, store = np.concatenate(self.event), np.concatenate(self.store)
        if self.again:
            _, first = np.unique((event.astype(np.int64) << 32) | store, return_index=True)
            event, store = event[first], store[first]
        return event, store


@dataclass(slots=True)
class _FormCounting:
    """The matches of all work units that have partial aggregates of one form."""

    operator: PartialAggregate
    state: PartialTables


class _Shelf(NamedTuple):
    """The tables in which the matches of one SELECT list are counted, and the conversion of its matches."""

    partials: Partials
    """Converts the matches of this SELECT list to rows of the table (`Partials.lifted`).

    SELECT lists of one form have the same states, but may use them for different functions: f, g, f in one list, and
    f, g, g in another.
    """
    form: _FormCounting


class AggregateCounting:
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
            too_large: Makes the dead letters of matches that are too large for an aggregate.
            bounds: By number of a store, its bounds (`grouping.model.panes`).
            singly_until: By source partition, an offset. Events before it may have been evaluated in other ranges, so
                their partial aggregates stand for single offsets.
        """
        self._evaluate = evaluate
        self._too_large = too_large
        self._singly_until = singly_until or {}
        self._panes = Panes(bounds)
        self._taken: dict[str, UnitMatches] = {}
        self._forms: dict[object, _FormCounting] = {}
        """The counted matches, by the form of their partial aggregates."""
        self._shelves: dict[SelectId, _Shelf] = {}
        self._stores = StoreNames()
        self._units: dict[str, int] = {}
        """The work units with counted matches, each with a number from 0."""
        self._unit_of = np.zeros(0, np.int32)
        """For each store, by its number: the number of its work unit."""
        self._range: TaskRange | None = None
        self._parts = 0
        self.incomplete: dict[str, IncompleteUnit] = {}
        """The work units of which `records` wrote no aggregate, because they were left out for some events."""

    def take(self, events: RowSource, matches: Matches) -> None:
        """Take in the matches of aggregate queries. Until `taken` is called, the same matches may be passed again."""
        grouped = np.array([select.aggregation is not None for select in matches.selects], np.bool_)
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
            unit = unit_of(matches.groups[code >> 32], select.select_id)
            matches_of_unit = self._taken.setdefault(unit, UnitMatches(events, select))
            event = matches.event[chosen]
            matches_of_unit.again |= int(event.min()) <= matches_of_unit.latest
            matches_of_unit.latest = max(matches_of_unit.latest, int(event.max()))
            matches_of_unit.event.append(event)
            matches_of_unit.store.append(matches.number[chosen])
            self._unit_of = lengthened(self._unit_of, int(matches.number[chosen].max()) + 1)
            self._unit_of[matches.number[chosen]] = self._units.setdefault(unit, len(self._units))

    def taken(self) -> dict[str, UnitMatches]:
        """Return the matches that were taken in since the last call, by work unit."""
        taken, self._taken = self._taken, {}
        return taken

    def count(self, found: UnitMatches, columns: dict[Reference, pl.Series]) -> Iterator[pa.RecordBatch]:
        """Count the matches of a work unit; yield dead letters for matches that are too large.

        Args:
            found: The matches.
            columns: Columns of the batch that were read for other units; newly read columns are added.
        """
        event, store = found.pairs()
        select_id = found.select.select_id
        with charged(select_id, partial(tuple, [select_id])):
            large = self._count(found, event, store, MatchValues(self._evaluate, found.events, event, columns))
        if large:
            yield self._too_large(found.events.source, large)

    def _count(
        self, found: UnitMatches, event: NDArray[np.int32], store: NDArray[np.int32], values: MatchValues
    ) -> dict[int, str]:
        """Count the matches of a unit; return the reason for each event whose match is too large to be counted."""
        aggregation = found.select.aggregation
        assert aggregation is not None, "take chooses SELECT lists with an aggregation"
        keys = [values.of(key.expression) for key in aggregation.keys]
        args = [values.arguments(aggregate) for aggregate in aggregation.aggregates]
        sizes, most = values.text_bytes(), _MOST_TEXT // (len(keys) + 2 * len(args) + 1)
        if (large := np.flatnonzero(sizes > most)).size:
            kept = np.flatnonzero(sizes <= most)
            details = {
                int(
                    event[place]
                ): f"The match brings {sizes[place]} bytes into an aggregate; the limit is {most} bytes for one match."
                for place in large.tolist()
            }
            return details | self._count(found, event[kept], store[kept], values.at(kept))
        times, offsets = found.events.time_ms[event], found.events.offsets[event]
        single = np.zeros(event.size, np.bool_)
        if event.size:
            single = offsets < self._singly_until.get(int(found.events.partitions[0]), 0)
        part = np.zeros(event.size, np.int64)
        if any(each.function in _KEEPING or each.distinct for each in aggregation.aggregates):
            # A list or a set of values grows with its matches. To bound its size, another partial aggregate begins
            # after each `_SET_BYTES` of matches.
            order = np.lexsort((store, event))
            part[order] = self._parts + np.cumsum(sizes[order] + _VALUE_BYTES * len(args)) // _SET_BYTES
            self._parts = int(part.max(initial=self._parts)) + 1
        by = {
            "store": pl.Series(store),
            "pane": pl.Series(self._panes.begins(store, times)),
            "at": pl.Series(np.where(single, offsets, RANGE)),
            "part": pl.Series(part),
        }
        shelf = self._shelf(found.select)
        form, lifted = shelf.form, shelf.partials.lifted(by, keys, args, offsets)
        form.state, _ = form.operator.step(form.state, lifted)
        return {}

    def _shelf(self, select: SelectList) -> _Shelf:
        """Return the shelf of a SELECT list; a missing shelf is made."""
        found = self._shelves.get(select.select_id)
        if found is None:
            assert select.aggregation is not None, "take chooses SELECT lists with an aggregation"
            partials = Partials(select.aggregation)
            form = self._forms.get(partials.form)
            if form is None:
                operator = PartialAggregate(partials)
                form = self._forms[partials.form] = _FormCounting(operator, operator.begin())
            found = self._shelves[select.select_id] = _Shelf(partials, form)
        return found

    def extend(self, partition: int, first: int, last: int) -> None:
        """Note that the task has read the events at the offsets from `first` to `last`, inclusive."""
        known = self._range or TaskRange(partition, first, last)
        self._range = TaskRange(partition, min(first, known.first), max(last, known.last))

    @property
    def units(self) -> list[str]:
        """The work units with counted matches."""
        return [*self._units] if self._range is not None else []

    @property
    def offsets(self) -> TaskRange:
        """The offsets of the task's events."""
        assert self._range is not None, "the task has read events"
        return self._range

    def records(
        self,
        stream_id: StreamId,
        version: TableVersion,
        left_out: Collection[str] = (),
        units: Collection[str] | None = None,
    ) -> Iterator[tuple[int, bytes | OversizeAggregate]]:
        """Yield records of `cq.pending` with their partitions: the partial aggregates of the task.

        If a unit was left out for some events, no aggregate of the unit is written. A partial aggregate stands for the
        whole range of the task, and readers recognise repeats by the range. If an incomplete aggregate were written,
        readers would take the complete aggregate of a replay for a repeat, and ignore it.

        Args:
            stream_id: The stream.
            version: The version of the constant tables that gave the matches.
            left_out: Groups, or work units, that were left out for some events of the task.
            units: The units to write; None for all.
        """
        if self._range is None:
            return
        wanted = {unit for unit in self._units if units is None or unit in units}
        selects = {parts_of(unit)[1] for unit in wanted}
        partition, first, last = self._range
        offsets = TaskRange(partition, max(first, self._singly_until.get(partition, 0)), last)
        for form in self._forms.values():
            partials = form.operator.partials
            own = [select_id for select_id, shelf in self._shelves.items() if shelf.form is form]
            if selects.isdisjoint(own):
                continue
            with charged(partials.form, partial(tuple, own), alike=False):
                _, made = form.operator.step(form.state, None, last)
                whole = [*made]
            for every in whole:
                table = self._complete(every, frozenset(left_out), wanted)
                yield from aggregate_records(table, partials.keys, self._stores, offsets, stream_id, version)

    def _complete(self, table: pl.DataFrame, left_out: frozenset[str], wanted: Collection[str]) -> pl.DataFrame:
        """Return the rows of the wanted units that were evaluated for all events; note the other wanted units."""
        unit_of_row = self._unit_of[table["store"].to_numpy()]
        table = table.with_columns(pl.Series("unit", unit_of_row))
        bad = [
            number
            for unit, number in self._units.items()
            if unit not in wanted or unit in left_out or group_of(unit) in left_out
        ]
        if not bad or self._range is None:
            return table
        names = [*self._units]
        for number in bad:
            matches = int(table["n"].to_numpy()[unit_of_row == number].sum())
            if matches and names[number] in wanted:
                self.incomplete[names[number]] = IncompleteUnit(names[number], self._range, matches)
        return table.filter(pl.Series(~np.isin(unit_of_row, bad)))

    def oversize_letter(self, oversize: OversizeAggregate) -> pa.RecordBatch:
        """Return the dead letter of an aggregate that `records` found too large for a record."""
        partition, first, last = self.offsets
        detail = (
            f"An aggregate of {oversize.matches} matches from offset {first} to {last} takes {oversize.size} bytes;"
            f" a record can hold {MAX_RECORD_BYTES}."
        )
        return self._too_large(no_record(partition, first), {0: detail})
