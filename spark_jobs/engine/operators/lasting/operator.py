"""The operator that makes rows of keys that enter and stay in (`grouping.plan.lasting.LastingMatches`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grouping.model.catalog import Stream
from grouping.model.sql_type import BIGINT
from grouping.plan.lasting import LastingMatches
from spark_jobs.engine.constants.begins import Begins
from spark_jobs.engine.index import Ints
from spark_jobs.engine.match.residual import holds
from spark_jobs.engine.operators.event_clock import TimedRows
from spark_jobs.engine.operators.lasting.lowest_values import KeyedValues, Waits
from spark_jobs.engine.operators.lasting.pending_rises import NO_MATCH, PendingRises, Rises
from spark_jobs.engine.operators.row_before.key_numbers import key_columns
from spark_jobs.engine.operators.row_before.ordered_values import of_whole_numbers, ordered_numbers
from spark_jobs.engine.operators.timed_operator import TimedOperator
from spark_jobs.engine.operators.timed_state import ELEMENT
from spark_jobs.engine.rows.arrays import distinct_values
from spark_jobs.engine.rows.event_column import EventColumns
from spark_jobs.engine.rows.events import arrow_type
from spark_jobs.engine.rows.row_source import RowSource
from spark_jobs.engine.rows.silent_rows import BEFORE, BEFORE_OFFSET, LEAST, LastingRows, LatestMatches

__all__ = ["LastingOperator"]


class _BatchRows(NamedTuple):
    """The rows of a batch that are not left out, ordered by key, then by arrival."""

    places: Ints
    """The place of each row in the batch."""
    numbers: Ints
    """The number of each distinct key."""
    values: KeyedValues
    first: NDArray[np.bool_]
    """Whether each row is the first one of its key."""


@dataclass(frozen=True, slots=True)
class LastingOperator(TimedOperator[PendingRises, LastingMatches]):
    """Makes the rows of keys that stayed in (`operators.operator.Operator`).

    All rows of a task must be of one source partition, in its order.
    """

    begins: tuple[Begins, ...] = ()
    """The begins of the entries over the computation."""
    kept_ms: int = 1 << 60
    """The longest event time between a row and the row before it; if the key's last row is older, there is none."""

    def begin(self) -> PendingRises:
        """Return the state before the first rows."""
        return PendingRises()

    def rows(self, stream: Stream, partition: int, found: LatestMatches) -> LastingRows:
        """Return rows that have become complete, in the form that the groups over the computation read."""
        return LastingRows(stream, self.computation_id, partition, found, self.node)

    def _taken(self, state: PendingRises, rows: RowSource, known: int, *, undoable: bool) -> LatestMatches:
        if rows.count == known:
            return self._of_state(state, np.empty(0, np.int64)).in_order()
        state.kept_ms = self.kept_ms
        timed = self.clock.timed(state, rows, known, noted=undoable)
        counting = np.flatnonzero(~timed.left_out)
        state.move(int(timed.after[-1]), int(np.count_nonzero(timed.left_out)), undoable=undoable)
        found = []
        if counting.size:
            batch = self._by_key(state, rows, known + counting, timed.at(counting))
            found.append(self._followed(state, rows, batch, undoable=undoable))
        found.append(self._ended(state, undoable=undoable))
        joined = LatestMatches.joined(found)
        completed = rows.offsets[known:][np.searchsorted(timed.after, joined.due, side="right")]
        return joined._replace(completed=completed).in_order()

    def _by_key(self, state: PendingRises, rows: RowSource, counted: Ints, timed: TimedRows) -> _BatchRows:
        places = pa.array(counted)
        numbers = state.keys.of(key_columns([rows.column(each.reference).take(places) for each in self.node.by]))
        is_match = np.ones(counted.size, np.bool_)
        if self.node.where:
            is_match &= holds(self.node.where, EventColumns(rows, self.value_bytes), counted)
        values = np.zeros(counted.size, np.int64)
        if self.node.height is not None:
            column = rows.column(self.node.height.column.reference).take(places)
            values = ordered_numbers(column) if self.node.height.above else ~ordered_numbers(column)
            is_match &= column.is_valid().to_numpy(zero_copy_only=False)
        order = np.argsort(numbers, kind="stable")
        first = np.diff(numbers[order], prepend=-1) != 0
        keyed = KeyedValues(
            np.cumsum(first) - 1, timed.times[order], timed.after[order], values[order], is_match[order]
        )
        return _BatchRows(counted[order], numbers[order][first], keyed, first)

    def _followed(self, state: PendingRises, rows: RowSource, batch: _BatchRows, *, undoable: bool) -> LatestMatches:
        """Take in rows: lower the rises of their keys, and add new rises. Return new rises that have already ended."""
        keyed, offsets = batch.values, rows.offsets[batch.places]
        begins = np.flatnonzero(batch.first)
        known, key = state.of_keys(batch.numbers)
        held, new = state.rises(known), self._rises(state, rows, batch)
        rising = np.flatnonzero(new.offset != NO_MATCH)
        new = new.taken(rising)
        waits = [
            self._waits(begins[key], key, held),
            self._waits(rising + 1, keyed.key[rising], new),
        ]
        lowest = keyed.lowest(Waits(*(np.concatenate(fields) for fields in zip(*waits, strict=True))))
        stays, least = lowest.stays[: known.size], lowest.least[: known.size]
        changed = stays & (least != held.least)
        state.lower(known[changed], least[changed], undoable=undoable)
        state.remove(known[~stays], undoable=undoable)
        new, stays = new._replace(least=lowest.least[known.size :]), lowest.stays[known.size :]
        ended = new.time + self.node.due_after <= state.watermark
        waiting, due = np.flatnonzero(stays & ~ended), np.flatnonzero(stays & ended)
        columns = self._columns(rows, batch.places[rising[waiting]])
        numbers = batch.numbers[keyed.key[rising[waiting]]]
        state.add(numbers, new.taken(waiting), columns, undoable=undoable)
        last = np.append(begins[1:], batch.places.size) - 1
        offset = np.where(keyed.is_match[last], offsets[last], NO_MATCH)
        state.put_last(batch.numbers, offset, keyed.times[last], keyed.values[last], undoable=undoable)
        return self._matches(new.taken(due), self._columns(rows, batch.places[rising[due]]))

    def _rises(self, state: PendingRises, rows: RowSource, batch: _BatchRows) -> Rises:
        """Return a rise for each row; its offset is `NO_MATCH` if the row is no rise."""
        keyed, offsets = batch.values, rows.offsets[batch.places]
        before_offset, before_time, before = (np.roll(each, 1) for each in (offsets, keyed.times, keyed.values))
        before_offset[~np.roll(keyed.is_match, 1)] = NO_MATCH
        before_offset[batch.first], before_time[batch.first], before[batch.first] = state.last(batch.numbers)
        before_offset[keyed.times - before_time > self.kept_ms] = NO_MATCH
        is_above = (before_offset == NO_MATCH) | (keyed.values > before)
        young = self._young(before_offset, offsets, keyed.is_match, int(rows.partitions[0]))
        own = np.where(keyed.is_match & (is_above | young), offsets, NO_MATCH)
        return Rises(own, keyed.times, before, before_offset, keyed.values, young.astype(np.int64))

    def _young(
        self, before_offset: Ints, offsets: Ints, is_match: NDArray[np.bool_], partition: int
    ) -> NDArray[np.bool_]:
        """Tell for which rows an entry began after the row before; for this entry there is no row before."""
        places = np.flatnonzero(is_match & (before_offset != NO_MATCH))
        young = np.zeros(offsets.size, np.bool_)
        if places.size:
            before, own = before_offset[places], offsets[places]
            begins = self._begins_around(partition, int(own.min()), int(own.max()))
            young[places] = np.searchsorted(begins, own, side="right") > np.searchsorted(begins, before, side="right")
        return young

    def _begins_around(self, partition: int, first: int, last: int) -> Ints:
        """Return the begins in (first, last], and the latest begin up to `first`; ascending."""
        found = [np.empty(0, np.int64)]
        for each in self.begins:
            begins = each.distinct(partition)
            earlier = begins <= first
            found += [begins[~earlier & (begins <= last)], begins[earlier].max(initial=NO_MATCH, keepdims=True)]
        return distinct_values(np.concatenate(found))

    def _waits(self, first: Ints, key: Ints, rises: Rises) -> Waits:
        is_bounded = (rises.before_offset != NO_MATCH) & (rises.young == 0)
        return Waits(first, key, rises.time + self.node.milliseconds, rises.least, rises.before, is_bounded)

    def _ended(self, state: PendingRises, *, undoable: bool) -> LatestMatches:
        """Remove the rises whose interval has ended at the state's watermark, and return them."""
        places = state.ended(state.watermark - self.node.due_after)
        found = self._of_state(state, places)
        state.remove(places, undoable=undoable)
        return found

    def _of_state(self, state: PendingRises, places: Ints) -> LatestMatches:
        return self._matches(state.rises(places), state.taken([*self._names], places))

    def _matches(self, rises: Rises, columns: Mapping[str, pa.Array]) -> LatestMatches:
        """Return rises as rows with the value before and the lowest value: the constants between these are matches."""
        columns = dict(columns)
        element = columns.pop(ELEMENT, None)
        types = {column.stored: column.type for column in self.reads}
        numbers = None if element is None else element.fill_null(0).to_numpy()
        types[BEFORE_OFFSET], columns[BEFORE_OFFSET] = BIGINT, pa.array(rises.before_offset)
        if (height := self.node.height) is not None:
            # The value before a young rise may be above the lowest value. The smaller one of the two is taken, so that
            # no constant lies between the bounds.
            for name, values in ((LEAST, rises.least), (BEFORE, np.minimum(rises.before, rises.least))):
                types[name] = height.column.type
                own = values if height.above else ~values
                columns[name] = of_whole_numbers(own, arrow_type(height.column.type))
        due = rises.time + self.node.milliseconds
        return LatestMatches(due, rises.offset, rises.offset, numbers, columns, types)

    def _complete(self, state: PendingRises, rows: RowSource, known: int) -> None:
        if rows.number is None:
            state.complete_rises(rows.offsets[:known], self._columns(rows, np.arange(known)))
