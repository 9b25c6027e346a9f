"""The operator that makes rows of silent keys (`grouping.plan.silence.SilentKeys`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grouping.model.errors import InternalError
from grouping.model.expression import Column, walk
from grouping.plan.computation import Computation
from grouping.plan.group import GroupPlan, SelectList
from grouping.plan.silence import SilentKeys
from grouping.settings.settings import Settings
from spark_jobs.engine.constants.constant_cache import Snapshot
from spark_jobs.engine.index import Ints
from spark_jobs.engine.match.residual import holds
from spark_jobs.engine.operators.log_state import LogOperator
from spark_jobs.engine.operators.row_before.key_numbers import key_columns
from spark_jobs.engine.operators.silence.latest_rows import BEGINNING, ELEMENT, NEVER, LatestRows
from spark_jobs.engine.operators.silence.row_chains import RowChains
from spark_jobs.engine.rows.event_column import VALUE_BYTES, EventColumns, as_plain
from spark_jobs.engine.rows.row_source import RowSource
from spark_jobs.engine.rows.silent_rows import LatestMatches, SilentRows

__all__ = ["SilenceOperator", "read_latest"]


@dataclass(frozen=True, slots=True)
class SilenceOperator(LogOperator[LatestRows]):
    """The rows of silent keys (`operators.operator.Operator`). A task has rows of one partition, in their order."""

    silence: SilentKeys
    computation_id: str
    reads: tuple[Column, ...]
    """The columns that groups and SELECT lists read, in the order of their stored texts."""
    delay_ms: int = 0
    """How far the watermark is behind the latest event time."""
    value_bytes: int = VALUE_BYTES
    """Bytes of the longest text that an expression may compute; a longer text is NULL."""

    @classmethod
    def over(cls, computation: Computation, snapshot: Snapshot, settings: Settings) -> SilenceOperator:
        """Return the operator for the groups over a computation.

        Args:
            computation: The computation, which has a node for silences.
            snapshot: The tables of the groups.
            settings: The evaluator's settings.
        """
        assert computation.silence is not None, "a computation with silences"
        found: dict[str, Column] = {}
        for plan, select in snapshot.used:
            found |= read_latest(plan, select)
        reads = tuple(found[stored] for stored in sorted(found))
        delay_ms = round(settings.evaluator.watermark_delay_seconds * 1000)
        return cls(computation.silence, computation.computation_id, reads, delay_ms, settings.evaluator.value_bytes)

    def begin(self) -> LatestRows:
        """Return the state before the first rows."""
        return LatestRows()

    def step(
        self, state: LatestRows, rows: RowSource, watermark: int | None = None
    ) -> tuple[LatestRows, Iterator[SilentRows]]:
        """Return the rows of keys that fell silent with some rows; changes the state in place.

        Args:
            state: The state before the rows.
            rows: The rows.
            watermark: Unused: the rows move the watermark.

        Raises:
            InternalError: An earlier step failed midway.
            Exception: Any exception: expressions run code of libraries (`faults.FAULTS`).
        """
        if state.torn:
            raise InternalError("the state of silences is torn")
        state.torn = True
        found = self._taken(state, rows, undoable=True)
        state.torn = False
        partition = int(rows.partitions[0]) if rows.count else 0
        return state, iter([SilentRows(rows.stream, self.computation_id, partition, found)])

    def advance(self, state: LatestRows, watermark: int, *, undoable: bool = True) -> LatestMatches:
        """Move the watermark as a mark of the clock says, and return the latest rows of keys that are silent by then.

        Args:
            state: The state, at the position before which the mark lies.
            watermark: The watermark in epoch milliseconds; an earlier one than the state's changes nothing.
            undoable: Whether the state's `undo` can undo the change.
        """
        state.torn = True
        if watermark > state.watermark:
            state.move(watermark, 0, undoable=undoable)
        silent = self._fell_silent(state, undoable=undoable)
        state.torn = False
        return silent._replace(completed=np.full(silent.due.size, state.position, np.int64)).in_order()

    def fold(self, state: LatestRows, rows: RowSource) -> None:
        """Take rows of the log in, without results; of rows before the state's position only new columns are taken."""
        state.torn = True
        known = int(np.searchsorted(rows.offsets, state.position))
        if known:
            self._complete(state, rows, known)
        self._taken(state, rows, known, undoable=False)
        state.torn = False

    def _taken(self, state: LatestRows, rows: RowSource, known: int = 0, *, undoable: bool) -> LatestMatches:
        """Take rows in, but for the first `known`, and return the latest rows of keys that fell silent."""
        times, offsets = rows.time_ms[known:], rows.offsets[known:]
        if not times.size:
            return self._of_keys(state, np.empty(0, np.int64)).in_order()
        marked = self._marks(state, offsets)
        after = np.maximum.accumulate(np.maximum(np.maximum(times - self.delay_ms, marked), state.watermark))
        before = np.maximum(np.concatenate([[state.watermark], after[:-1]]), marked)
        late = times < before
        passing = known + np.flatnonzero(~late)
        if self.silence.where and passing.size:
            passing = passing[holds(self.silence.where, EventColumns(rows, self.value_bytes), passing)]
        earlier = self._chained(state, rows, passing, after[passing - known], undoable=undoable)
        state.move(int(after[-1]), int(np.count_nonzero(late)), undoable=undoable)
        silent = LatestMatches.joined([*earlier, self._fell_silent(state, undoable=undoable)])
        completed = offsets[np.searchsorted(after, silent.due)]
        return silent._replace(completed=completed).in_order()

    def _chained(
        self, state: LatestRows, rows: RowSource, passing: Ints, after: Ints, *, undoable: bool
    ) -> list[LatestMatches]:
        """Keep the latest row of each key; return earlier ones that fell silent before the key's next row."""
        if not passing.size:
            return []
        places = pa.array(passing)
        numbers = state.keys.of(key_columns([rows.column(each.reference).take(places) for each in self.silence.by]))
        keys, times = np.unique(numbers), rows.time_ms[passing]
        known = state.times(keys)
        chains = RowChains.of(numbers, times, np.where(known == NEVER, BEGINNING, known), keys)
        waiting = np.flatnonzero((known != NEVER) & (chains.first >= 0))
        next_row = chains.rows[chains.first[waiting]]
        waiting = waiting[known[waiting] + self.silence.milliseconds <= after[next_row]]
        followed = chains.followed
        ended = times[chains.rows[followed]] + self.silence.milliseconds <= after[chains.rows[followed + 1]]
        told = chains.rows[followed[ended]]
        names = [*(column.stored for column in self.reads), *([] if rows.number is None else [ELEMENT])]
        earlier = [
            self._of_keys(state, keys[waiting]),
            self._matches(times[told], rows.offsets[passing[told]], self._columns(rows, passing[told], names)),
        ]
        last = chains.rows[chains.last]
        columns = self._columns(rows, passing[last], names)
        state.put(numbers[last], times[last], rows.offsets[passing[last]], columns, undoable=undoable)
        return earlier

    def _fell_silent(self, state: LatestRows, *, undoable: bool) -> LatestMatches:
        """Return the latest rows of keys that are silent by the state's watermark, and leave the keys without a row."""
        numbers = state.silent(state.watermark - self.silence.milliseconds)
        found = self._of_keys(state, numbers)
        if numbers.size:
            state.forget(numbers, undoable=undoable)
        return found

    def _of_keys(self, state: LatestRows, numbers: Ints) -> LatestMatches:
        names = [*(column.stored for column in self.reads), ELEMENT]
        return self._matches(state.times(numbers), state.offsets(numbers), state.taken(names, numbers))

    def _matches(self, times: Ints, offsets: Ints, columns: dict[str, pa.Array]) -> LatestMatches:
        element = columns.pop(ELEMENT, None)
        types = {column.stored: column.type for column in self.reads}
        numbers = None if element is None else element.fill_null(0).to_numpy()
        due = times + self.silence.milliseconds
        return LatestMatches(due, offsets, offsets, numbers, columns, types)

    def _columns(self, rows: RowSource, places: Ints, names: Iterable[str]) -> dict[str, pa.Array]:
        references = {column.stored: column.reference for column in self.reads}
        taken = pa.array(places)
        found = {name: as_plain(rows.column(references[name]).take(taken)) for name in names if name in references}
        if ELEMENT in names and rows.number is not None:
            found[ELEMENT] = pa.array(rows.number[places])
        return found

    def _complete(self, state: LatestRows, rows: RowSource, known: int) -> None:
        """Give the state's rows columns that it has no values of, from rows that it has taken in before."""
        places = np.arange(known)
        numbers = state.keys.of(key_columns([rows.column(each.reference).slice(0, known) for each in self.silence.by]))
        same = np.flatnonzero((state.times(numbers) != NEVER) & (state.offsets(numbers) == rows.offsets[:known]))
        if rows.number is None and same.size:
            columns = self._columns(rows, places[same], [column.stored for column in self.reads])
            state.complete_rows(numbers[same], columns)

    def _marks(self, state: LatestRows, offsets: Ints) -> NDArray[np.int64]:
        """Return the watermark that the clock's marks before each row say, `BEGINNING` without one."""
        positions, watermarks = state.marks
        place = np.searchsorted(positions, offsets, side="right")
        highest = np.concatenate([[BEGINNING], np.maximum.accumulate(watermarks)])
        return highest[place]


def read_latest(plan: GroupPlan, select: SelectList) -> dict[str, Column]:
    """Return by stored name the columns that a group or a SELECT list reads."""
    read = (*plan.conjuncts, *(item.expression for item in select.items))
    leaves = (leaf for each in read for leaf in walk(each) if isinstance(leaf, Column))
    return {leaf.stored: leaf for leaf in leaves if isinstance(leaf.reference, str)}
