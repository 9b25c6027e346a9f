"""Results as JSON objects: one for each distinct (event, SELECT list), all of a list in one call of the encoder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.types
from numpy.typing import NDArray

from grouping.expression import Column, Expression
from grouping.group import SelectList
from spark_jobs.events import Events

__all__ = ["EvaluateExpression", "encode"]

EvaluateExpression = Callable[[Expression, Events, NDArray[np.int32]], pa.Array]
"""Evaluates an expression of a SELECT list on some rows of the events."""

_AS_THEY_COME = frozenset({"STRING", "BOOLEAN", "INT", "BIGINT", "DOUBLE", "DATE", "TIMESTAMP"})
"""Types whose Python values the encoder writes as the contract has them: NaN and infinities as null among them."""

_encoder = msgspec.json.Encoder()


def encode(
    events: Events, select: SelectList, rows: NDArray[np.int32], evaluate_expression: EvaluateExpression
) -> pa.BinaryArray:
    """Return the JSON object of a SELECT list for each of the rows (contract §6).

    Args:
        events: The decoded events.
        select: What to publish of them, in its order.
        rows: Which events; distinct and ascending, at least one.
        evaluate_expression: For the items that are no plain column.
    """
    columns = [_values(events, item.expression, rows, evaluate_expression) for item in select.items]
    make = _object_maker(tuple(item.name for item in select.items))
    return _split_lines(_encoder.encode_lines(list(map(make, *columns))), len(rows))


def _values(
    events: Events, expression: Expression, rows: NDArray[np.int32], evaluate_expression: EvaluateExpression
) -> Sequence[Any]:
    """Return one output column as values that the encoder writes."""
    if not isinstance(expression, Column):
        return _plain(evaluate_expression(expression, events, rows))
    if events.declares(expression.name) and events.type_of(expression.name) in _AS_THEY_COME:
        values = events.values(expression.name)
        # Distinct, ascending and as many as there are events: then these are all of them.
        return values if len(rows) == events.count else [values[row] for row in rows.tolist()]
    return _plain(events.column(expression.name).take(pa.array(rows)))


def _plain(array: pa.Array) -> list[Any]:
    """Return an array's values; decimals as text in plain notation, which keeps the column's scale."""
    values: list[Any] = array.to_pylist()
    if pyarrow.types.is_decimal(array.type):
        return [None if value is None else format(value, "f") for value in values]
    return values


@lru_cache(maxsize=1024)
def _object_maker(names: tuple[str, ...]) -> Callable[..., object]:
    """Return what makes an object that is encoded under these names, in this order."""
    fields = [(f"c{number}", Any, msgspec.field(name=name)) for number, name in enumerate(names)]
    try:
        return msgspec.defstruct("Result", fields, gc=False)
    except ValueError:  # it takes no names that JSON must escape
        return lambda *values: dict(zip(names, values, strict=True))


def _split_lines(lines: bytes, count: int) -> pa.BinaryArray:
    """Cut the encoder's lines apart without making a Python object of each; JSON holds no bare newline."""
    ends = np.flatnonzero(np.frombuffer(lines, np.uint8) == ord("\n"))
    offsets = np.zeros(count + 1, np.int32)
    offsets[1:] = ends - np.arange(count)
    return pa.Array.from_buffers(
        pa.binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(lines.replace(b"\n", b""))]
    )
