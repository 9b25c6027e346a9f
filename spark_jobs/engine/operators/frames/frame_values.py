"""The values of frames."""

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
from spark_jobs.engine.operators.aggregate.states import state_of
from spark_jobs.engine.operators.frames.key_rows import Frame, KeyRows
from spark_jobs.engine.rows.events import arrow_type

__all__ = ["column_name", "computed", "kept_columns"]

_encode = Encoder().encode
_STEM = "v"


def column_name(expression: Expression) -> str:
    """Return the name of the column of the state that has the value of an expression."""
    return _encode(expression).decode()


def kept_columns(values: Iterable[FrameValue]) -> dict[str, Expression]:
    """Return the columns of the state that values are computed of, by name."""
    return {column_name(each): each for value in values for each in value.expressions}


def computed(value: FrameValue, rows: KeyRows, clock: Ints, visible: int) -> pa.Array:
    """Return a value for each row that is asked for.

    Args:
        value: The function and its frame.
        rows: The rows of the keys.
        clock: By row that is asked for, the partition's clock.
        visible: The offset of the first row that counts.
    """
    columns = rows.part.columns
    if value.function == LAG:
        found, there = rows.before(value.rows or 0, visible)
        return columns[column_name(value.args[0])].take(pa.array(found, mask=~there))
    if value.milliseconds is None:
        frame = rows.by_rows(value.rows or 0, visible)
    else:
        frame = rows.by_time(value.milliseconds, clock, visible)
    state = state_of(AggregateValue("", value.function, value.args, value.type_text, value.distinct, value.condition))
    args = [pl.Series(columns[column_name(argument)]) for argument in value.args]
    counted = None
    if value.condition is not None:
        counted = pl.Series(columns[column_name(value.condition)]).fill_null(False).to_numpy()
    order = np.arange(rows.part.size)
    if value.milliseconds is not None:
        order[np.lexsort((order, rows.part.times))] = np.arange(order.size)  # first and last are by time, then arrival
    lifted = state.lift(args, counted, order)
    made = _summed(lifted, frame) if state.is_sum and frame.exact is None else _gathered(state, lifted, frame, rows)
    found = state.value(_STEM, made).to_arrow()
    wanted = arrow_type(value.type)
    return found if found.type == wanted else found.cast(wanted)


def _summed(lifted: dict[str, pl.Series], frame: Frame) -> pl.DataFrame:
    """Return the state of each frame as the difference of two cumulative sums of whole numbers."""
    sums = {name: np.append(0, np.cumsum(values.to_numpy())) for name, values in lifted.items()}
    return pl.DataFrame({f"{_STEM}{name}": each[frame.row + 1] - each[frame.start] for name, each in sums.items()})


def _gathered(state: AggregateState, lifted: dict[str, pl.Series], frame: Frame, rows: KeyRows) -> pl.DataFrame:
    """Return the state of each frame, made of its rows in their order: the same whatever rows other frames have."""
    found = []
    for _, place, row in frame.pairs(rows.part.times):
        columns = {f"{_STEM}{name}": values[row] for name, values in lifted.items()}
        pairs = pl.DataFrame({"frame": place, **columns})
        found.append(pairs.group_by("frame", maintain_order=True).agg(state.begin(_STEM)))
    return pl.concat(found)
