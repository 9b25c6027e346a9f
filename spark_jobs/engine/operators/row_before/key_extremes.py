"""The extremes of keys as a column of the last rows; the state keeps, undoes and stores it like the other columns."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grouping.model.expression import read_reference
from grouping.plan.group import GroupPlan
from spark_jobs.engine.index import Ints
from spark_jobs.engine.operators.row_before.last_rows import NO_ROW, LastRows
from spark_jobs.engine.operators.row_before.ordered_values import of_whole_numbers, whole_numbers
from spark_jobs.engine.rows.extremes import Extremes, ExtremesBuilder, extremes_name, stored_column
from spark_jobs.engine.rows.row_source import RowSource

__all__ = ["extremes_names", "with_rows"]


def extremes_names(plans: Iterable[GroupPlan]) -> frozenset[str]:
    """Return the names of the columns of extremes that groups need."""
    begins = (plan.stay.begin for plan in plans if plan.stay is not None)
    return frozenset(extremes_name(each.column, above=each.above) for each in begins)


def with_rows(
    name: str,
    state: LastRows,
    rows: RowSource,
    numbers: Ints,
    minutes: NDArray[np.int32],
    order: Ints,
    again: NDArray[np.bool_],
) -> tuple[Extremes, pa.Array]:
    """Return the extremes before each row, and the packed extremes of each key after all rows.

    Args:
        name: The column of extremes.
        state: The state before the rows.
        rows: The rows.
        numbers: The number of each row's key.
        minutes: The time of the clock at each row, in minutes. A key that is forgotten between two rows starts again
            without extremes.
        order: The rows ordered by key, then by place.
        again: For each row in this order, whether it has the same key as the preceding row of this order.
    """
    stored, above = stored_column(name)
    column = rows.column(read_reference(stored))
    values, offsets, packed = whole_numbers(column), rows.offsets.tolist(), []
    if not above:
        values = [None if value is None else ~value for value in values]
    known = iter(_known(name, state, numbers[order[~again]], minutes[order[~again]]))
    restarts = np.zeros(order.size, np.bool_)
    restarts[1:] = again[1:] & state.forgotten(minutes[order[:-1]], minutes[order[1:]])
    builder = ExtremesBuilder(rows.count)
    for place, (row, is_same_key, is_forgotten) in enumerate(
        zip(order.tolist(), again.tolist(), restarts.tolist(), strict=True)
    ):
        if not is_same_key:
            if place:
                packed.append(builder.packed())
            builder.begin(next(known))
        elif is_forgotten:
            builder.begin(None)
        builder.add(row, values[row], offsets[row])
    if rows.count:
        packed.append(builder.packed())

    def originals(found: Ints) -> pa.Array:
        return of_whole_numbers(found if above else ~found, column.type)

    return builder.finished(originals), pa.array(packed, pa.binary())


def _known(name: str, state: LastRows, keys: Ints, minutes: NDArray[np.int32]) -> list[bytes | None]:
    """Return the packed extremes of some keys.

    Args:
        name: The column of extremes.
        state: The state.
        keys: The numbers of the keys.
        minutes: For each key, the time of the clock in minutes.

    Returns:
        The extremes; None for a key without extremes, or for a key that is forgotten at this time.
    """
    found: list[bytes | None] = [None] * keys.size
    places = np.flatnonzero(state.offsets(keys, minutes) != NO_ROW)
    for values in state.taken([name], keys[places]).values():
        for place, packed in zip(places.tolist(), values.to_pylist(), strict=True):
            found[place] = packed
    return found
