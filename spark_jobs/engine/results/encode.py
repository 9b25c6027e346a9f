"""Results as JSON objects. The objects of all events with matches for one SELECT list are encoded in one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grouping.digests.stored_rows import stored_row
from grouping.functions.sizes import Size, constant_size
from grouping.functions.text_size import TextSizes
from grouping.model.expression import Column, Expression, Reference, TableColumn
from grouping.model.sql_type import TIMESTAMP, SqlType
from grouping.plan.group import SelectList
from spark_jobs.engine.results.shown_values import AS_DECODED, object_maker, shown_as_decoded, shown_values
from spark_jobs.engine.results.special_values import has_fractions, has_specials, parts_of
from spark_jobs.engine.rows.event_column import VALUE_BYTES
from spark_jobs.engine.rows.output import MAX_RECORD_BYTES
from spark_jobs.engine.rows.row_source import RowSource

__all__ = ["EncodedRows", "EvaluateExpression", "encode", "row_bytes"]

EvaluateExpression = Callable[[Expression, RowSource, NDArray[np.int32]], pa.Array]
"""Evaluates an expression of a SELECT list on some rows of the events."""

_AS_THEY_COME = AS_DECODED | {TIMESTAMP}
"""Types whose Python values the encoder writes as docs/results.md says, with null for NaN and infinities."""

_WHOLE = "_value"
"""The field that repeats the content of other columns."""
_encoder = msgspec.json.Encoder()


_SCALAR_BYTES = 64
"""An upper bound for the bytes of a value that is no text, together with the JSON around the value."""


class EncodedRows(NamedTuple):
    """The JSON objects of some rows."""

    values: pa.BinaryArray
    """The JSON object of each row; null if the row was not encoded, because its texts are larger than a record."""
    sizes: NDArray[np.int64]
    """The size of each row in bytes; for a null, a lower bound: the bytes of some of its texts."""


def encode(
    events: RowSource,
    select: SelectList,
    rows: NDArray[np.int32],
    evaluate_expression: EvaluateExpression,
    *,
    large: bool = True,
    stored: bool = False,
) -> EncodedRows:
    """Return the JSON object of a SELECT list for each of the rows (docs/results.md).

    Args:
        events: The decoded events.
        select: The columns and expressions to publish, in their order.
        rows: The numbers of the events: at least one, distinct and ascending.
        evaluate_expression: Evaluates the items that are not just a column.
        large: Whether some row may be larger than a record (`row_bytes`).
        stored: Whether rows also keep their NaN and infinities, which JSON cannot represent
            (`grouping.digests.stored_rows`).
    """
    columns: list[Sequence[Any]] = []
    sizes = np.zeros(len(rows), np.int64)
    kept = np.arange(len(rows))
    for item in select.items:
        columns.append(_values(events, item.expression, rows[kept], evaluate_expression))
        if large:
            sizes[kept] += np.array(list(map(_text_bytes, columns[-1])), np.int64)
            small = sizes[kept] <= MAX_RECORD_BYTES
            kept = kept[small]
            columns = [list(compress(column, small)) for column in columns]
            if not kept.size:
                return EncodedRows(pa.nulls(len(rows), pa.binary()), sizes)
    make = object_maker(tuple(item.name for item in select.items))
    values = _split_lines(_encoder.encode_lines(list(map(make, *columns))), len(kept))
    if stored:
        values = _with_specials(values, select, columns)
    if len(kept) == len(rows):
        return EncodedRows(values, _lengths(values))
    place = np.full(len(rows), -1)
    place[kept] = np.arange(len(kept))
    sizes[kept] = _lengths(values)
    return EncodedRows(values.take(pa.array(place, mask=place < 0)), sizes)


def row_bytes(select: SelectList, record: Size) -> Size:
    """Return an upper bound for the bytes of a row's values while the row is encoded, without JSON's escapes.

    Args:
        select: The SELECT list.
        record: The number of bytes of an event's record, or an array of these numbers for several records. The text
            of a column is never longer.
    """
    sizes = TextSizes(lambda leaf: record if isinstance(leaf, Column) else constant_size(leaf), VALUE_BYTES)
    plain: set[Reference] = {_WHOLE}
    names = 0
    for item in select.items:
        names += len(item.name) + _SCALAR_BYTES
        if isinstance(item.expression, Column) and item.expression.reference not in plain:
            # All columns except `_value` together have at most as many bytes as the record.
            plain.add(item.expression.reference)
        else:
            sizes.of(item.expression)
    return record + sizes.total + names


def _text_bytes(value: Any) -> int:
    """Return a lower bound for the bytes of a text or a VARIANT, and 0 for a value of any other type."""
    return len(value) if isinstance(value, str) else memoryview(value).nbytes if isinstance(value, msgspec.Raw) else 0


def _with_specials(values: pa.BinaryArray, select: SelectList, columns: Sequence[Sequence[Any]]) -> pa.BinaryArray:
    """Return rows as they are stored until their digest, with their NaN and infinities."""
    found: dict[int, dict[str, Any]] = {}
    for item, column in zip(select.items, columns, strict=True):
        if has_fractions(item.expression.type):  # type: ignore[union-attr]  # no slot stands alone
            for row, value in enumerate(column):
                if has_specials(value):
                    found.setdefault(row, {})[item.name] = parts_of(value)
    if not found:
        return values
    bodies = values.to_pylist()
    for row, specials in found.items():
        bodies[row] = stored_row(bodies[row], specials)
    return pa.array(bodies, pa.binary())


def _lengths(values: pa.BinaryArray) -> NDArray[np.int64]:
    lengths: NDArray[np.int64] = np.diff(np.frombuffer(values.buffers()[1], np.int32)[: len(values) + 1]).astype(
        np.int64
    )
    return lengths


def _values(
    events: RowSource, expression: Expression, rows: NDArray[np.int32], evaluate_expression: EvaluateExpression
) -> Sequence[Any]:
    """Return an output column as values for the encoder."""
    sql_type: SqlType = expression.type  # type: ignore[union-attr]  # no slot stands alone in a SELECT list
    if not isinstance(expression, Column):
        return shown_values(evaluate_expression(expression, events, rows), sql_type)
    name = expression.reference
    if events.declares(name):
        if events.type_of(name) in _AS_THEY_COME:
            return events.values_at(name, rows)
        if (
            not isinstance(name, TableColumn) and (show := shown_as_decoded(sql_type)) is not None
        ):  # tables hold Arrow arrays
            return list(map(show, events.values_at(name, rows)))
    return shown_values(events.column(name).take(pa.array(rows)), sql_type)


def _split_lines(lines: bytes, count: int) -> pa.BinaryArray:
    """Divide the encoder's output into lines, without a Python object for each line.

    A newline always ends a line, since JSON escapes newlines in texts.
    """
    ends = np.flatnonzero(np.frombuffer(lines, np.uint8) == ord("\n"))
    offsets = np.zeros(count + 1, np.int32)
    offsets[1:] = ends - np.arange(count)
    return pa.Array.from_buffers(
        pa.binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(lines.replace(b"\n", b""))]
    )
