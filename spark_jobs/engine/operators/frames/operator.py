"""The operator that computes window functions over frames (`grouping.plan.frames.Frames`).

The word *value* is used for two things: a window function with its frame (`FrameValue`), and its result in a row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from grouping.model.errors import InternalError
from grouping.model.expression import Column, Expression
from grouping.plan.computation import Computation
from grouping.plan.frame_value import FrameValue, frame_values
from grouping.plan.frames import Frames
from grouping.plan.group import GroupPlan, SelectList
from grouping.plan.passing import PASSES
from spark_jobs.engine.constants.constant_cache import Snapshot
from spark_jobs.engine.index import Ints
from spark_jobs.engine.match.residual import evaluate_expression, holds
from spark_jobs.engine.operators.extended_rows import ExtendedRows
from spark_jobs.engine.operators.frames.frame_part import FramePart
from spark_jobs.engine.operators.frames.frame_rows import FrameRows, Reach
from spark_jobs.engine.operators.frames.frame_values import FrameValues, kept_columns
from spark_jobs.engine.operators.frames.key_rows import KeyRows
from spark_jobs.engine.operators.log_state import LogOperator
from spark_jobs.engine.operators.row_before.key_numbers import key_columns
from spark_jobs.engine.rows.arrays import distinct_values
from spark_jobs.engine.rows.event_column import VALUE_BYTES, EventColumns, as_plain
from spark_jobs.engine.rows.events import arrow_type
from spark_jobs.engine.rows.row_source import RowSource

__all__ = ["FrameOperator", "read_values"]


@dataclass(frozen=True, slots=True)
class FrameOperator(LogOperator[FrameRows]):
    """Computes window functions (`operators.operator.Operator`).

    All rows of a task must be of one source partition, in its order.
    """

    frames: Frames
    values: tuple[FrameValue, ...]
    """The window functions that groups and SELECT lists use, in the order of their columns' stored texts."""
    value_bytes: int = VALUE_BYTES
    """The largest number of bytes of a text that an expression computes; a longer text is NULL."""
    keeps_all: bool = False
    """Whether rows for which WHERE is not TRUE are rows of the output too, as EMIT needs them."""

    def begin(self) -> FrameRows:
        """Return the state before the first rows."""
        return FrameRows()

    @classmethod
    def over(cls, computation: Computation, snapshot: Snapshot, value_bytes: int = VALUE_BYTES) -> FrameOperator:
        """Return the operator for the groups over a computation with frames.

        Args:
            computation: The computation.
            snapshot: The tables of the groups.
            value_bytes: The largest number of bytes of a computed text.
        """
        assert computation.frames is not None, "the computation has frames"
        found: dict[str, FrameValue] = {}
        for plan, select in snapshot.used:
            found |= read_values(plan, select)
        values = tuple(found[stored] for stored in sorted(found))
        keeps_all = computation.before is not None or computation.timed is not None
        return cls(computation.frames, values, value_bytes, keeps_all)

    @property
    def reach(self) -> Reach:
        """The reach of the frames of all window functions."""
        times = [value.milliseconds for value in self.values if value.milliseconds is not None]
        return Reach(max((value.rows or 0 for value in self.values), default=0), max(times, default=None))

    def step(
        self, state: FrameRows, rows: RowSource, watermark: int | None = None
    ) -> tuple[FrameRows, Iterator[ExtendedRows]]:
        """Return the rows for which WHERE is TRUE, with their values, and keep these rows; changes the state in place.

        If the operator `keeps_all`, the other rows are returned too; their values and their column `PASSES` are NULL.

        Raises:
            InternalError: An earlier step failed midway.
            Exception: Any exception, since expressions run code of libraries (`faults.FAULTS`).
        """
        if state.torn:
            raise InternalError("the state of frames cannot be used: an earlier step failed midway")
        with state.changing():
            passing = self._passing(rows)
            part, arrived = self._part(state, rows, passing)
            clock, clocks = state.clock.after(rows.offsets[passing], rows.time_ms[passing])
            found = self._values(state, part, arrived, clocks)
            state.add(part, clock)
        columns = {value.column.reference: (value.type, array) for value, array in found.items()}
        if self.keeps_all:
            columns[PASSES.reference] = PASSES.type, pa.array(np.ones(passing.size, np.int8))
            columns = {name: (kind, _spread(array, passing, rows.count)) for name, (kind, array) in columns.items()}
            passing = np.arange(rows.count)
        return state, iter([ExtendedRows(rows, passing, columns)])

    def fold(self, state: FrameRows, rows: RowSource) -> None:
        """Keep rows without computing window functions, and forget rows that no frame reaches any more.

        Rows before the state's position change nothing, because the state already has them.
        """
        with state.changing():
            passing = self._passing(rows)
            passing = passing[rows.offsets[passing] >= state.position]
            part, _ = self._part(state, rows, passing)
            state.add(part, state.clock.after(rows.offsets[passing], rows.time_ms[passing])[0])
            state.merge()

    def _passing(self, rows: RowSource) -> Ints:
        """Return the rows for which WHERE is TRUE."""
        every = np.arange(rows.count)
        if not self.frames.where or not rows.count:
            return every
        return np.flatnonzero(holds(self.frames.where, EventColumns(rows, self.value_bytes), every))

    def _part(self, state: FrameRows, rows: RowSource, passing: Ints) -> tuple[FramePart, Ints]:
        """Return rows as a part for the state, ordered by key, and the place of each row in this part."""
        if not passing.size:
            return FramePart.empty(), passing
        places = pa.array(passing)
        keys = [rows.column(column.reference).take(places) for column in self.frames.by]
        numbers = state.keys.of(key_columns(keys))
        columns = {name: self._column(each, rows, passing) for name, each in kept_columns(self.values).items()}
        order = np.argsort(numbers, kind="stable")
        arrived = np.empty(order.size, np.int64)
        arrived[order] = np.arange(order.size)
        part = FramePart(numbers, rows.offsets[passing], rows.time_ms[passing], columns)
        return part.take(order), arrived

    def _column(self, expression: Expression, rows: RowSource, passing: Ints) -> pa.Array:
        if isinstance(expression, Column):
            return rows.column(expression.reference).take(pa.array(passing))
        return as_plain(evaluate_expression(expression, rows, passing, self.value_bytes))

    def _values(self, state: FrameRows, part: FramePart, arrived: Ints, clocks: Ints) -> dict[FrameValue, pa.Array]:
        """Return the results of each window function for the rows of a part, in the order of their arrival."""
        if not part.size:
            return {value: pa.nulls(0, arrow_type(value.type)) for value in self.values}
        earlier = [each for each in state.of_keys(distinct_values(part.numbers)) if each.size]
        kept = sum(each.size for each in earlier)
        joined = FramePart.appended([*earlier, part], part.columns)
        order = np.argsort(joined.numbers, kind="stable")
        placed = np.empty(order.size, np.int64)
        placed[order] = np.arange(order.size)
        wanted = placed[kept + arrived]
        rows = KeyRows(joined.take(order), wanted)
        values = FrameValues(rows, clocks)
        return {value: values.of(value, state.visible.get(value.column.stored, 0)) for value in self.values}


def _spread(values: pa.Array, places: Ints, count: int) -> pa.Array:
    """Return an array of `count` values that has the given values at ascending places, and NULL elsewhere."""
    index = np.zeros(count, np.int64)
    index[places] = np.arange(places.size)
    missing = np.ones(count, np.bool_)
    missing[places] = False
    return values.take(pa.array(index, mask=missing))


def read_values(plan: GroupPlan, select: SelectList) -> dict[str, FrameValue]:
    """Return the window functions that a group or a SELECT list uses, by their columns' stored texts."""
    above = [node for node in (plan.before, plan.timed) if node is not None]
    of_nodes = (each for node in above for each in node.expressions)
    read = (*plan.conjuncts, *of_nodes, *(item.expression for item in select.items))
    return {value.column.stored: value for value in frame_values(read)}
