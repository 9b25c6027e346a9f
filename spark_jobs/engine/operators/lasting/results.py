"""The results of rises and exits; each has the two values between which the constants of its queries lie."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from grouping.model.sql_type import BIGINT, BINARY, SqlType
from grouping.plan.lasting import LastingMatches
from spark_jobs.engine.index import Ints
from spark_jobs.engine.operators.lasting.key_extremes import PRIOR, PRIOR_OFFSET
from spark_jobs.engine.operators.lasting.waiting_rows import NO_MATCH, Exits, Rises
from spark_jobs.engine.operators.row_before.ordered_values import of_whole_numbers
from spark_jobs.engine.operators.timed_state import ELEMENT
from spark_jobs.engine.rows.edge_rows import ENTER, EXIT
from spark_jobs.engine.rows.events import arrow_type
from spark_jobs.engine.rows.extremes import ExtremesBuilder
from spark_jobs.engine.rows.rows_before import StayRows
from spark_jobs.engine.rows.silent_rows import (
    AFTER,
    BEFORE,
    BEFORE_OFFSET,
    CHAIN,
    ENTERED,
    IS_MATCH,
    KIND,
    LEAST,
    NOW,
    LatestMatches,
)

__all__ = ["enter_results", "exit_results", "stay_rows"]


def enter_results(
    node: LastingMatches, rises: Rises, columns: Mapping[str, pa.Array], types: Mapping[str, SqlType]
) -> LatestMatches:
    """Return the result rows of rises.

    A query has a result if its constant lies between the value of the key's previous row and the rise's lowest value.

    Args:
        node: The computation's node.
        rises: The rises.
        columns: The columns of the rises by stored name.
        types: The types of the columns that groups and SELECT lists read.
    """
    numbers = {
        KIND: np.full(rises.offset.size, ENTER),
        BEFORE_OFFSET: rises.before_offset,
        IS_MATCH: np.ones(rises.offset.size, np.int64),
        AFTER: np.full(rises.offset.size, NO_MATCH),
    }
    # The previous row of a young rise may have a value above the lowest value. Then no constant may lie between the two
    # values, so the lowest value is used for both.
    values = {NOW: rises.least, BEFORE: np.minimum(rises.before, rises.least)}
    if node.until:
        values[LEAST] = rises.least
        if rises.offset.size:
            values |= {NOW: columns[ENTERED].to_numpy(), BEFORE: columns[PRIOR].to_numpy()}
            numbers[BEFORE_OFFSET] = columns[PRIOR_OFFSET].to_numpy()
    return _results(node, rises, numbers, values, columns, types)


def exit_results(
    node: LastingMatches, exits: Exits, columns: Mapping[str, pa.Array], types: Mapping[str, SqlType]
) -> LatestMatches:
    """Return the result rows of exits; the arguments are those of `enter_results`."""
    numbers = {
        KIND: np.full(exits.offset.size, EXIT),
        BEFORE_OFFSET: exits.begin,
        IS_MATCH: exits.is_floored,
        AFTER: exits.after,
    }
    values = {NOW: exits.floor, BEFORE: exits.high}
    if node.until:
        values[LEAST] = exits.high
    return _results(node, exits, numbers, values, columns, types)


def stay_rows(node: LastingMatches, found: LatestMatches) -> StayRows | None:
    """Return the stays that began or ended with rows; None for a node without UNTIL."""
    if not node.until or (height := node.height) is None:
        return None
    kind, builder = arrow_type(height.column.type), ExtremesBuilder(found.due.size)
    for row, packed in enumerate(found.columns[CHAIN].to_pylist()):
        builder.begin(packed)
        builder.add(row, None, 0)

    def values(numbers: Ints) -> pa.Array:
        return of_whole_numbers(numbers if height.above else ~numbers, kind)

    known = found.columns[ENTERED]
    entered = pc.if_else(known.is_valid(), values(known.fill_null(0).to_numpy()), pa.nulls(len(known), kind))
    kinds, begin = found.columns[KIND].to_numpy().astype(np.int8), found.columns[BEFORE_OFFSET].to_numpy()
    return StayRows(builder.finished(values), kinds, entered, begin, found.columns[LEAST])


def _results(
    node: LastingMatches,
    ended: Rises | Exits,
    numbers: Mapping[str, Ints],
    values: Mapping[str, Ints],
    columns: Mapping[str, pa.Array],
    types: Mapping[str, SqlType],
) -> LatestMatches:
    found, kinds = dict(columns), dict(types)
    element = found.pop(ELEMENT, None)
    if node.until:
        kinds |= {CHAIN: BINARY, ENTERED: BIGINT}
        for name in (PRIOR, PRIOR_OFFSET):
            found.pop(name, None)
    for name, each in numbers.items():
        kinds[name], found[name] = BIGINT, pa.array(each)
    if (height := node.height) is not None:
        for name, each in values.items():
            kind = arrow_type(height.column.type)
            kinds[name] = height.column.type
            found[name] = of_whole_numbers(each if height.above else ~each, kind)
    number = None if element is None else element.fill_null(0).to_numpy()
    return LatestMatches(ended.time + node.milliseconds, ended.offset, ended.offset, number, found, kinds)
