"""The join of a batch of events with tables: which rows of the tables does each event meet?"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from grouping.model.computation import Computation, Join, JoinKey
from grouping.model.expression import Column
from spark_jobs.batch.event_column import VALUE_BYTES, EventColumn, EventColumns
from spark_jobs.batch.events import Events, arrow_type
from spark_jobs.index import Ints
from spark_jobs.joins.joined_events import JoinedEvents
from spark_jobs.match.residual import evaluate_expression, holds
from spark_jobs.replica.table_view import TableView

__all__ = ["join"]

_WHOLE = pa.decimal128(19, 0)
"""Holds every BIGINT."""


def join(
    events: Events, computation: Computation, views: Mapping[str, TableView], value_bytes: int = VALUE_BYTES
) -> JoinedEvents:
    """Return the rows of a computation over a batch of events.

    Args:
        events: The decoded events.
        computation: What is joined with them, and how.
        views: By table id, the tables as they were at the batch's pins.
        value_bytes: What a computed text may have; a longer one is NULL.

    Raises:
        Exception: Of any kind, as the expressions of ON are somebody else's code (`faults.FAULTS`).
    """
    rows = JoinedEvents.alone(events)
    for each in computation.joins:
        rows = _met(rows, each, views[each.table_id], value_bytes)
    return rows


def _met(rows: JoinedEvents, one: Join, view: TableView, value_bytes: int) -> JoinedEvents:
    """Return the rows that some rows make with those of one more table."""
    columns = tuple(key.column for key in one.keys)
    probe, row = _found(view, columns, [_key_values(rows, key, value_bytes) for key in one.keys])
    if one.rest and probe.size:
        pairs = rows.meeting(probe, one.prefix, view, row, numbered=not one.single)
        true = holds(one.rest, EventColumns(pairs, value_bytes), np.arange(pairs.count))
        probe, row = probe[true], row[true]
    if one.outer:
        probe, row = _with_alone(rows.count, probe, row)
    return rows.meeting(probe, one.prefix, view, row, numbered=not one.single)


def _with_alone(count: int, probe: Ints, row: Ints) -> tuple[Ints, Ints]:
    """Add those of the rows that meet none, beside -1, in their places."""
    alone = np.ones(count, np.bool_)
    alone[probe] = False
    lonely = np.flatnonzero(alone)
    if not lonely.size:
        return probe, row
    probe, row = np.concatenate((probe, lonely)), np.concatenate((row, np.full(lonely.size, -1)))
    order = np.argsort(probe, kind="stable")
    return probe[order], row[order]


def _found(view: TableView, columns: tuple[str, ...], keys: list[pa.Array]) -> tuple[Ints, Ints]:
    """Look rows up, each distinct value once where values repeat."""
    if len(keys) > 1:
        return view.find(columns, keys)
    column = EventColumn(keys[0])
    probe, row = view.find(columns, [column.values])
    return (probe, row) if len(column.values) == len(keys[0]) else _spread(column, probe, row)


def _spread(column: EventColumn, probe: Ints, row: Ints) -> tuple[Ints, Ints]:
    """Return for each event what was found for its value."""
    counts = np.bincount(probe, minlength=len(column.values))
    first = column.spread(np.cumsum(counts) - counts)
    length = column.spread(counts, null=0)
    events = np.repeat(np.arange(length.size), length)
    shift = first - (np.cumsum(length) - length)
    return events, row[np.arange(events.size) + np.repeat(shift, length)]


def _key_values(rows: JoinedEvents, key: JoinKey, value_bytes: int) -> pa.Array:
    """Return the values that are looked up, in the type of the table's column; NULL for what that cannot hold."""
    if isinstance(key.left, Column):
        values = rows.encoded(key.left.name)
        if pa.types.is_dictionary(values.type):
            return values  # of texts, which are compared with texts alone
    else:
        values = evaluate_expression(key.left, rows, np.arange(rows.count), value_bytes)
    wanted = arrow_type(key.type)
    if values.type == wanted:
        return pc.add(values, 0.0) if pa.types.is_floating(wanted) else values  # -0.0 is 0.0
    return _brought_to(values, wanted)


def _brought_to(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Cast exact numbers, one distinct value after the other: few streams and tables differ in the type of a key."""
    encoded = values.dictionary_encode()
    distinct = encoded.dictionary
    if pa.types.is_decimal(wanted) and pa.types.is_integer(distinct.type):
        distinct = distinct.cast(_WHOLE)  # Arrow takes no integer to a DECIMAL that could not hold all integers
    cast = []
    for value in distinct:
        try:
            cast.append(value.cast(wanted).as_py())
        except pa.ArrowInvalid:
            cast.append(None)
    return pa.array(cast, wanted).take(encoded.indices)
