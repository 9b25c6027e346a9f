"""The operator that makes rows of silent keys (`grouping.plan.silence.SilentKeys`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from grouping.plan.silence import SilentKeys
from spark_jobs.engine.index import Ints
from spark_jobs.engine.match.residual import holds
from spark_jobs.engine.operators.event_clock import TimedRows
from spark_jobs.engine.operators.row_before.key_numbers import key_columns
from spark_jobs.engine.operators.silence.latest_rows import LatestRows
from spark_jobs.engine.operators.silence.row_chains import RowChains
from spark_jobs.engine.operators.timed_operator import TimedOperator
from spark_jobs.engine.operators.timed_state import BEGINNING, ELEMENT, NEVER
from spark_jobs.engine.rows.arrays import distinct_values
from spark_jobs.engine.rows.event_column import EventColumns
from spark_jobs.engine.rows.row_source import RowSource
from spark_jobs.engine.rows.silent_rows import LatestMatches

__all__ = ["SilenceOperator"]


@dataclass(frozen=True, slots=True)
class SilenceOperator(TimedOperator[LatestRows, SilentKeys]):
    """Makes the rows of silent keys (`operators.operator.Operator`).

    All rows of a task must be of one source partition, in its order.
    """

    def begin(self) -> LatestRows:
        """Return the state before the first rows."""
        return LatestRows()

    def _taken(self, state: LatestRows, rows: RowSource, known: int, *, undoable: bool) -> LatestMatches:
        if rows.count == known:
            return self._of_keys(state, np.empty(0, np.int64)).in_order()
        timed = self.clock.timed(state, rows, known, noted=undoable)
        passing = self._counting(rows, known, timed)
        if self.node.where and passing.size:
            passing = passing[holds(self.node.where, EventColumns(rows, self.value_bytes), passing)]
        earlier = self._chained(state, rows, passing, timed.at(passing - known), undoable=undoable)
        state.move(int(timed.after[-1]), int(np.count_nonzero(timed.left_out)), undoable=undoable)
        silent = LatestMatches.joined([*earlier, self._ended(state, undoable=undoable)])
        completed = rows.offsets[known:][np.searchsorted(timed.after, silent.due)]
        return silent._replace(completed=completed).in_order()

    def _chained(
        self, state: LatestRows, rows: RowSource, passing: Ints, timed: TimedRows, *, undoable: bool
    ) -> list[LatestMatches]:
        """Keep the latest row of each key; return earlier rows whose key became silent before its next row came."""
        if not passing.size:
            return []
        places = pa.array(passing)
        numbers = state.keys.of(key_columns([rows.column(each.reference).take(places) for each in self.node.by]))
        keys, times, after = distinct_values(numbers), timed.times, timed.after
        known = state.times(keys)
        chains = RowChains.of(numbers, times, np.where(known == NEVER, BEGINNING, known), keys)
        waiting = np.flatnonzero((known != NEVER) & (chains.first >= 0))
        next_row = chains.rows[chains.first[waiting]]
        waiting = waiting[known[waiting] + self.node.milliseconds <= after[next_row]]
        followed = chains.followed
        ended = times[chains.rows[followed]] + self.node.milliseconds <= after[chains.rows[followed + 1]]
        silent = chains.rows[followed[ended]]
        earlier = [
            self._of_keys(state, keys[waiting]),
            self._matches(times[silent], rows.offsets[passing[silent]], self._columns(rows, passing[silent])),
        ]
        last = chains.rows[chains.last]
        columns = self._columns(rows, passing[last])
        state.put(numbers[last], times[last], rows.offsets[passing[last]], columns, undoable=undoable)
        return earlier

    def _ended(self, state: LatestRows, *, undoable: bool) -> LatestMatches:
        """Return the latest rows of keys that are silent at the state's watermark, and remove these rows."""
        numbers = state.silent(state.watermark - self.node.milliseconds)
        found = self._of_keys(state, numbers)
        if numbers.size:
            state.forget(numbers, undoable=undoable)
        return found

    def _of_keys(self, state: LatestRows, numbers: Ints) -> LatestMatches:
        return self._matches(state.times(numbers), state.offsets(numbers), state.taken(self._names, numbers))

    def _matches(self, times: Ints, offsets: Ints, columns: dict[str, pa.Array]) -> LatestMatches:
        element = columns.pop(ELEMENT, None)
        types = {column.stored: column.type for column in self.reads}
        numbers = None if element is None else element.fill_null(0).to_numpy()
        due = times + self.node.milliseconds
        return LatestMatches(due, offsets, offsets, numbers, columns, types)

    def _complete(self, state: LatestRows, rows: RowSource, known: int) -> None:
        places = np.arange(known)
        numbers = state.keys.of(key_columns([rows.column(each.reference).slice(0, known) for each in self.node.by]))
        same = np.flatnonzero((state.times(numbers) != NEVER) & (state.offsets(numbers) == rows.offsets[:known]))
        if rows.number is None and same.size:
            state.complete_rows(numbers[same], self._columns(rows, places[same]))
