"""The operator that makes rows of keys that enter and stay in, and of keys that leave after such a stay.

The node is `grouping.plan.lasting.LastingMatches`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grouping.model.catalog import Stream
from grouping.plan.lasting import LastingMatches
from spark_jobs.engine.constants.begins import Begins
from spark_jobs.engine.index import Ints
from spark_jobs.engine.match.residual import holds
from spark_jobs.engine.operators.event_clock import TimedRows
from spark_jobs.engine.operators.lasting.exits import FollowedRises, exit_waits, found_exits, with_lows
from spark_jobs.engine.operators.lasting.key_extremes import (
    PRIOR,
    PRIOR_OFFSET,
    SPECIAL,
    rise_extremes,
)
from spark_jobs.engine.operators.lasting.lowest_values import BatchRows, KeyedValues, LastMatches, Waits
from spark_jobs.engine.operators.lasting.pending_rises import PendingRises
from spark_jobs.engine.operators.lasting.results import enter_results, exit_results, stay_rows
from spark_jobs.engine.operators.lasting.waiting_rows import NO_MATCH, Exits, Rises, WaitingRows
from spark_jobs.engine.operators.row_before.key_numbers import key_columns
from spark_jobs.engine.operators.row_before.ordered_values import ordered_numbers
from spark_jobs.engine.operators.switched_rows import switched_rows
from spark_jobs.engine.operators.timed_operator import TimedOperator
from spark_jobs.engine.rows.arrays import distinct_values
from spark_jobs.engine.rows.event_column import EventColumns
from spark_jobs.engine.rows.row_source import RowSource
from spark_jobs.engine.rows.silent_rows import CHAIN, ENTERED, LastingRows, LatestMatches

__all__ = ["LastingOperator"]


@dataclass(frozen=True, slots=True)
class LastingOperator(TimedOperator[PendingRises, LastingMatches]):
    """Makes the rows of keys that stayed in (`operators.operator.Operator`).

    All rows of a task must be of one source partition, in its order.
    """

    begins: tuple[Begins, ...] = ()
    """The positions at which entries over the computation begin."""
    kept_ms: int = 1 << 60
    """The largest difference of the event times of a row and its previous row; an older previous row is ignored."""
    exits: bool = True
    """Whether some query reports exits; otherwise the operator makes none."""

    def begin(self) -> PendingRises:
        """Return the state before the first rows."""
        return PendingRises()

    def rows(self, stream: Stream, partition: int, found: LatestMatches) -> LastingRows:
        """Return completed rows as the row source for the groups over the computation."""
        return LastingRows(stream, self.computation_id, partition, found, self.node, stay_rows(self.node, found))

    def _taken(self, state: PendingRises, rows: RowSource, known: int, *, undoable: bool) -> LatestMatches:
        state.kept_ms = self.kept_ms
        if rows.count == known:
            nothing = np.empty(0, np.int64)
            return self._results(state.rises.at(nothing), state.rises.columns(nothing)).in_order()
        rows = switched_rows(rows, self.node.switch, self.value_bytes)
        timed = self.clock.timed(state, rows, known, noted=undoable)
        counting = self._counting(rows, known, timed)
        if self.node.of_from:
            counting = counting[holds(self.node.of_from, EventColumns(rows, self.value_bytes), counting)]
        if self.node.until and self.node.height is not None:  # a row without a value changes nothing
            column = rows.column(self.node.height.column.reference).take(pa.array(counting))
            counting = counting[column.is_valid().to_numpy(zero_copy_only=False)]
        state.move(int(timed.after[-1]), int(np.count_nonzero(timed.left_out)), undoable=undoable)
        found = []
        if counting.size:
            batch = self._by_key(state, rows, counting, timed.at(counting - known))
            found += self._followed(state, rows, batch, undoable=undoable)
        found.append(self._ended(state, undoable=undoable))
        joined = LatestMatches.joined(found)
        completed = rows.offsets[known:][np.searchsorted(timed.after, joined.due, side="right")]
        return joined._replace(completed=completed).in_order()

    def _by_key(self, state: PendingRises, rows: RowSource, counted: Ints, timed: TimedRows) -> BatchRows:
        places = pa.array(counted)
        numbers = state.keys.of(key_columns([rows.column(each.reference).take(places) for each in self.node.by]))
        is_match = np.ones(counted.size, np.bool_)
        if self.node.where:
            is_match &= holds(self.node.where, EventColumns(rows, self.value_bytes), counted)
        if rows.removals is not None:
            is_match &= ~rows.removals[counted]
        values = np.zeros(counted.size, np.int64)
        if self.node.height is not None:
            column = rows.column(self.node.height.column.reference).take(places)
            values = ordered_numbers(column) if self.node.height.above else ~ordered_numbers(column)
            is_match &= column.is_valid().to_numpy(zero_copy_only=False)
        order = np.argsort(numbers, kind="stable")
        first = np.diff(numbers[order], prepend=-1) != 0
        keys, placed = numbers[order][first], counted[order]
        offsets, times, values, is_match = rows.offsets[placed], timed.times[order], values[order], is_match[order]
        last = state.last(keys)
        before = LastMatches(*map(np.copy, (offsets, times, values)))
        before.offset[~is_match] = NO_MATCH
        before = LastMatches(*(np.roll(each, 1) for each in before))
        for each, earlier in zip(before, last, strict=True):
            each[first] = earlier
        is_renewed = times - before.time > self.kept_ms
        before.offset[is_renewed] = NO_MATCH
        keyed = KeyedValues(np.cumsum(first) - 1, times, timed.after[order], values, is_match, is_renewed)
        return BatchRows(placed, offsets, keys, keyed, last, before)

    def _followed(
        self, state: PendingRises, rows: RowSource, batch: BatchRows, *, undoable: bool
    ) -> list[LatestMatches]:
        """Update the state with the rows of a batch.

        The waiting rises and exits of the rows' keys get their new lowest values, and new rises and exits are added.

        Returns:
            The new rises and exits whose interval has already ended; the state does not keep these as waiting.
        """
        keyed, index = batch.values, state.index_of(batch.numbers)
        (known, held), (gone, passed) = (_followed_rises(each, index, keyed) for each in (state.rises, state.lasted))
        chains = state.chains(batch.numbers)
        new, after = self._rises(batch, int(rows.partitions[0]), chains)
        places, of = state.exits.of_keys(index)
        exits, row, begins = _no_exits()
        if self.exits:
            exits, row, begins = found_exits(batch, held, passed, new, self.node, chains)
        waits = [
            self._waits(held),
            self._waits(new),
            exit_waits(state.exits.at(places), keyed.begins[of], of),
            exit_waits(exits, row + 1, keyed.key[row]),
        ]
        lowest = keyed.lowest(Waits.joined(waits))
        sizes = np.cumsum([each.key.size for each in waits[:-1]])
        stays, least = np.split(lowest.stays, sizes), np.split(lowest.least, sizes)
        _lower(state.rises, known, with_lows(keyed, held)._replace(least=least[0]), stays[0], undoable=undoable)
        _lower(state.lasted, gone, with_lows(keyed, passed), np.ones(gone.size, np.bool_), undoable=undoable)
        state.exits.put(places[stays[2]], {"high": least[2][stays[2]]}, undoable=undoable)
        state.exits.remove(places[~stays[2]], undoable=undoable)
        last = LastMatches(np.where(keyed.is_match, batch.offsets, NO_MATCH), keyed.times, keyed.values)
        lasts = LastMatches(*(each[keyed.ends - 1] for each in last))
        state.put_last(batch.numbers, lasts, after, undoable=undoable)
        rises, exits = with_lows(keyed, new)._replace(least=least[1]), exits._replace(high=least[3])
        return [
            self._added(state, rises, new.columns, rows, batch, new.first - 1, stays[1], undoable=undoable),
            self._added(state, exits, begins, rows, batch, row, stays[3], undoable=undoable),
        ]

    def _added(
        self,
        state: PendingRises,
        made: Rises | Exits,
        special: Mapping[str, pa.Array],
        rows: RowSource,
        batch: BatchRows,
        row: Ints,
        stays: NDArray[np.bool_],
        *,
        undoable: bool,
    ) -> LatestMatches:
        """Add new rises or exits to the state if they must wait. Return those whose interval has already ended."""
        ended = made.time + self.node.due_after <= state.watermark
        waiting, due = np.flatnonzero(stays & ~ended), np.flatnonzero(stays & ended)

        def columns(places: Ints) -> dict[str, pa.Array]:
            own = pa.array(places)
            found = {name: values.take(own) for name, values in special.items()}
            return {**self._columns(rows, batch.places[row[places]]), **found}

        keys = batch.numbers[batch.values.key[row]]
        if isinstance(made, Rises):
            state.rises.add(keys[waiting], made.taken(waiting), columns(waiting), undoable=undoable)
            self._keep_lasted(state, keys[due], made.taken(due), columns(due), undoable=undoable)
        else:
            state.exits.add(keys[waiting], made.taken(waiting), columns(waiting), undoable=undoable)
        state.changed += waiting.size
        return self._results(made.taken(due), columns(due))

    def _rises(
        self, batch: BatchRows, partition: int, chains: Sequence[bytes | None]
    ) -> tuple[FollowedRises, dict[str, pa.Array]]:
        """Return the rises among the rows of a batch, and for UNTIL also each key's extremes after the batch."""
        keyed, before = batch.values, batch.before
        is_above = (before.offset == NO_MATCH) | (keyed.values > before.value)
        young = self._young(before.offset, batch.offsets, keyed.is_match, partition)
        row = np.flatnonzero(keyed.is_match & (is_above | young))
        values, prior, offsets = keyed.values[row], before.value[row], before.offset[row]
        special: dict[str, pa.Array] = {}
        after: dict[str, pa.Array] = {}
        if self.node.until:
            extremes = rise_extremes(batch, chains, row)
            special = {CHAIN: extremes.packed, ENTERED: pa.array(values)}
            special |= {PRIOR: pa.array(prior), PRIOR_OFFSET: pa.array(offsets)}
            after = {CHAIN: extremes.after}
            prior, offsets = extremes.lowest, extremes.offset
            young[row] = self._young(offsets, batch.offsets[row], keyed.is_match[row], partition)
        rises = Rises(
            batch.offsets[row],
            keyed.times[row],
            prior,
            offsets,
            values,
            young[row].astype(np.int64),
            values,
            np.ones(row.size, np.int64),
        )
        return FollowedRises(rises, keyed.key[row], row + 1, special), after

    def _young(
        self, before_offset: Ints, offsets: Ints, is_match: NDArray[np.bool_], partition: int
    ) -> NDArray[np.bool_]:
        """Return for each row whether an entry began after the key's previous row, which this entry then ignores."""
        places = np.flatnonzero(is_match & (before_offset != NO_MATCH))
        young = np.zeros(offsets.size, np.bool_)
        if places.size:
            before, own = before_offset[places], offsets[places]
            begins = self._begins_around(partition, int(own.min()), int(own.max()))
            young[places] = np.searchsorted(begins, own, side="right") > np.searchsorted(begins, before, side="right")
        return young

    def _begins_around(self, partition: int, first: int, last: int) -> Ints:
        """Return, ascending, the latest begin of an entry that is at most `first`, and all begins in (first, last]."""
        found = [np.empty(0, np.int64)]
        for each in self.begins:
            begins = each.in_partition(partition)
            earlier = begins <= first
            found += [begins[~earlier & (begins <= last)], begins[earlier].max(initial=NO_MATCH, keepdims=True)]
        return distinct_values(np.concatenate(found))

    def _waits(self, followed: FollowedRises) -> Waits:
        rises = followed.rises
        is_bounded = (rises.before_offset != NO_MATCH) & (rises.young == 0)
        until = rises.time + self.node.milliseconds
        return Waits(followed.first, followed.key, until, rises.least, rises.before, is_bounded)

    def _ended(self, state: PendingRises, *, undoable: bool) -> LatestMatches:
        """Remove the rises and exits whose interval has ended at the state's watermark, and return them."""
        latest, found = state.watermark - self.node.due_after, []
        for table in (state.rises, state.exits):
            places = table.ended(latest)
            ended = table.at(places)
            columns = table.columns(places)
            found.append(self._results(ended, columns))
            if isinstance(ended, Rises):
                self._keep_lasted(state, table.owners[places], ended, columns, undoable=undoable)
            table.remove(places, undoable=undoable)
        state.lasted.remove(state.lasted.ended(latest - self.clock.delay_ms), undoable=undoable)
        return LatestMatches.joined(found)

    def _keep_lasted(
        self, state: PendingRises, keys: Ints, rises: Rises, columns: Mapping[str, pa.Array], *, undoable: bool
    ) -> None:
        """Keep rises after the watermark has passed their interval, while an earlier rise of their key may still wait.

        An earlier rise of the key may have an event time after theirs, but at most the watermark's delay after: if the
        difference were greater, these rises would have been late.
        """
        kept = np.flatnonzero(rises.time + self.node.due_after + self.clock.delay_ms > state.watermark)
        own = pa.array(kept)
        special = {name: columns[name].take(own) for name in SPECIAL & columns.keys()}
        state.lasted.add(keys[kept], rises.taken(kept), special, undoable=undoable)

    def _results(self, ended: Rises | Exits, columns: Mapping[str, pa.Array]) -> LatestMatches:
        types = {column.stored: column.type for column in self.reads}
        if isinstance(ended, Rises):
            return enter_results(self.node, ended, columns, types)
        return exit_results(self.node, ended, columns, types)

    def _complete(self, state: PendingRises, rows: RowSource, known: int) -> None:
        if rows.number is None:
            state.complete_rows(rows.offsets[:known], self._columns(rows, np.arange(known)))


def _followed_rises(table: WaitingRows[Rises], index: Ints, keyed: KeyedValues) -> tuple[Ints, FollowedRises]:
    """Return the places of the table's rises of some keys, and these rises with the batch's rows that follow them."""
    places, key = table.of_keys(index)
    columns = {name: values for name, values in table.columns(places).items() if name in SPECIAL}
    return places, FollowedRises(table.at(places), key, keyed.begins[key], columns)


def _no_exits() -> tuple[Exits, Ints, dict[str, pa.Array]]:
    nothing = np.empty(0, np.int64)
    return Exits(*(nothing for _ in Exits._fields)), nothing, {}


def _lower(table: WaitingRows[Rises], places: Ints, rises: Rises, stays: NDArray[np.bool_], *, undoable: bool) -> None:
    """Set the lowest values of some rises of a table. Remove a rise if the key did not stay in after it."""
    numbers = {"least": rises.least[stays], "low": rises.low[stays], "is_open": rises.is_open[stays]}
    table.put(places[stays], numbers, undoable=undoable)
    table.remove(places[~stays], undoable=undoable)
