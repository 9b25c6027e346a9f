"""Computes window functions over the rows of each frame."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars as pl
import pyarrow as pa
from msgspec.json import Encoder

from grouping.model.expression import Expression
from grouping.plan.aggregate import AggregateValue
from grouping.plan.frame_value import LAG, FrameValue
from spark_jobs.engine.index import Ints
from spark_jobs.engine.operators.aggregate.aggregate_state import AggregateState
from spark_jobs.engine.operators.aggregate.states import frame_state_of
from spark_jobs.engine.operators.frames.key_rows import Frame, KeyRows
from spark_jobs.engine.rows.cpu_budget import check_cpu
from spark_jobs.engine.rows.events import arrow_type

__all__ = ["FrameValues", "column_name", "kept_columns"]

_encode = Encoder().encode
_STEM = "v"
_ORDERED = ("first", "last")
"""Functions that depend on the order of the rows. A frame by time is ordered by time, then by arrival.

Any other frame is ordered by arrival.
"""


def column_name(expression: Expression) -> str:
    """Return the name of the state's column that holds the value of an expression."""
    return _encode(expression).decode()


def kept_columns(values: Iterable[FrameValue]) -> dict[str, Expression]:
    """Return the expressions from which window functions are computed, by the name of the state's column for each."""
    return {column_name(each): each for value in values for each in value.expressions}


class FrameValues:
    """The results of window functions for some rows.

    Frames of the same function with the same arguments share the states of single rows.
    """

    def __init__(self, rows: KeyRows, clock: Ints) -> None:
        """Take rows.

        Args:
            rows: The rows of the keys.
            clock: For each row with a frame, the time of the partition's clock.
        """
        self._rows = rows
        self._clock = clock
        self._lifted: dict[tuple[AggregateValue, bool], dict[str, pl.Series]] = {}
        self._sums: dict[tuple[AggregateValue, bool], dict[str, Ints]] = {}

    def of(self, value: FrameValue, visible: int) -> pa.Array:
        """Return the result of a window function for each row with a frame.

        Args:
            value: The function and its frame.
            visible: The offset of the first row that a frame may contain.
        """
        rows = self._rows
        if value.function == LAG:
            found, there = rows.before(value.rows or 0, visible)
            return rows.part.columns[column_name(value.args[0])].take(pa.array(found, mask=~there))
        if value.milliseconds is None:
            frame = rows.by_rows(value.rows or 0, visible)
        else:
            frame = rows.by_time(value.milliseconds, self._clock, visible)
        aggregate = AggregateValue("", value.function, value.args, value.type_text, value.distinct, value.condition)
        by_time = value.milliseconds is not None and value.function in _ORDERED
        state, lifted = frame_state_of(aggregate), self._lift(aggregate, by_time)
        if state.is_sum and frame.exact is None:
            made = self._summed((aggregate, by_time), frame)
        else:
            made = _gathered(state, lifted, frame, rows)
        result = state.value(_STEM, made).to_arrow()
        wanted = arrow_type(value.type)
        return result if result.type == wanted else result.cast(wanted)

    def _lift(self, aggregate: AggregateValue, by_time: bool) -> dict[str, pl.Series]:
        """Return the state of the function for each single row."""
        found = self._lifted.get((aggregate, by_time))
        if found is None:
            columns, counted = self._rows.part.columns, None
            args = [pl.Series(columns[column_name(argument)]) for argument in aggregate.args]
            if aggregate.condition is not None:
                counted = pl.Series(columns[column_name(aggregate.condition)]).fill_null(False).to_numpy()
            order = self._rows.time_order if by_time else np.arange(self._rows.part.size)
            found = self._lifted[aggregate, by_time] = frame_state_of(aggregate).lift(args, counted, order)
        return found

    def _summed(self, key: tuple[AggregateValue, bool], frame: Frame) -> pl.DataFrame:
        """Return the state of each frame as the difference of two cumulative sums of integers."""
        sums = self._sums.get(key)
        if sums is None:
            lifted = self._lifted[key]
            sums = {name: np.append(0, np.cumsum(values.to_numpy())) for name, values in lifted.items()}
            self._sums[key] = sums
        return pl.DataFrame({f"{_STEM}{name}": each[frame.row + 1] - each[frame.start] for name, each in sums.items()})


def _gathered(state: AggregateState, lifted: dict[str, pl.Series], frame: Frame, rows: KeyRows) -> pl.DataFrame:
    """Return the state of each frame, aggregated over its rows in their order, independently of other frames."""
    found = []
    for _, place, row in frame.pairs(rows.part.times):
        check_cpu()
        columns = {f"{_STEM}{name}": values[row] for name, values in lifted.items()}
        pairs = pl.DataFrame({"frame": place, **columns})
        found.append(pairs.group_by("frame", maintain_order=True).agg(state.begin(_STEM)))
    return pl.concat(found)
