"""Updates of a table's rows: only updates that change a value of the SELECT list are results."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grouping.model.expression import Column
from grouping.model.sql_type import SqlType
from grouping.plan.group import SelectList
from grouping.values.equal_json import equal_json
from spark_jobs.engine.index.key_tuples import KeyTuples, plain
from spark_jobs.engine.results.encode import EvaluateExpression
from spark_jobs.engine.results.shown_values import shown_values
from spark_jobs.engine.results.special_values import has_fractions, parts_of
from spark_jobs.engine.rows.cpu_budget import charged
from spark_jobs.engine.rows.edge_rows import UPDATE, EdgeRows
from spark_jobs.engine.rows.events import arrow_type
from spark_jobs.engine.rows.matches import Matches
from spark_jobs.engine.rows.row_source import RowSource

__all__ = ["same_values", "without_unchanged"]

_encode = msgspec.json.Encoder().encode


def without_unchanged(rows: RowSource, matches: Matches, evaluate_expression: EvaluateExpression) -> Matches:
    """Return matches without the updates that leave all values of the SELECT list unchanged.

    Values are compared as GROUP BY compares them: NULL equals NULL, NaN equals NaN, and -0.0 equals 0.0, also within
    nested values. VARIANTs, and nested values without DOUBLEs, are compared by their JSON texts.

    Args:
        rows: The rows of the matches.
        matches: Pairs of a row and an entry.
        evaluate_expression: Evaluates the items that are not just a column.
    """
    if not isinstance(rows, EdgeRows) or rows.kinds is None:
        return matches
    updates = np.flatnonzero(rows.kinds[matches.event] == UPDATE)
    if not updates.size:
        return matches
    kept = np.ones(matches.event.size, np.bool_)
    selects, events = matches.select[updates], matches.event[updates]
    for number in np.unique(selects).tolist():
        own = np.flatnonzero(selects == number)
        distinct, which = np.unique(events[own], return_inverse=True)
        select = matches.selects[number]
        with charged(select.select_id, partial(_only, select)):
            equal = _equal(rows, select, distinct.astype(np.int32), evaluate_expression)
        kept[updates[own]] = ~equal[which]
    return matches if kept.all() else matches.taken(np.flatnonzero(kept))


def _only(select: SelectList) -> tuple[str]:
    return (select.select_id,)


def _equal(
    rows: EdgeRows, select: SelectList, some: NDArray[np.int32], evaluate_expression: EvaluateExpression
) -> NDArray[np.bool_]:
    """Return for each update whether it leaves the values of the SELECT list unchanged."""
    equal = np.ones(some.size, np.bool_)
    for item in select.items:
        sides = []
        for source in (rows, rows.earlier):
            if isinstance(item.expression, Column):
                sides.append(plain(source.column(item.expression.reference).take(pa.array(some))))
            else:
                sides.append(plain(evaluate_expression(item.expression, source, some)))
        sql_type: SqlType = item.expression.type  # type: ignore[union-attr]  # no slot stands alone in a SELECT list
        equal &= same_values(sides[0], sides[1], sql_type)
    return equal


def same_values(now: pa.Array, earlier: pa.Array, sql_type: SqlType) -> NDArray[np.bool_]:
    """Return for each place whether two arrays of a type have equal values, as `without_unchanged` compares them."""
    if sql_type.is_ordered:
        now, earlier = (side.cast(arrow_type(sql_type)) for side in (now, earlier))
        there = now.is_valid().to_numpy(zero_copy_only=False), earlier.is_valid().to_numpy(zero_copy_only=False)
        equal: NDArray[np.bool_] = ~there[0] & ~there[1]
        both = np.flatnonzero(there[0] & there[1])
        if both.size:
            places = pa.array(both)
            equal[both] = KeyTuples([now.take(places)]).same(KeyTuples([earlier.take(places)]))
        return equal
    pairs = zip(shown_values(now, sql_type), shown_values(earlier, sql_type), strict=True)
    json_of = _equal_json if has_fractions(sql_type) else _encode
    return np.fromiter((json_of(one) == json_of(other) for one, other in pairs), np.bool_, len(now))


def _equal_json(value: Any) -> bytes:
    return equal_json(parts_of(value))
