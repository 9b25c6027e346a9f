"""Joins a batch of events with tables: finds the rows of the tables that each event is joined with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from grouping.model.expression import Column
from grouping.plan.computation import Computation
from grouping.plan.lookup_join import JoinKey, LookupJoin
from grouping.settings.evaluator_settings import EvaluatorSettings
from spark_jobs.engine.index import Ints
from spark_jobs.engine.match.residual import evaluate_expression, holds
from spark_jobs.engine.operators.lookup_join.joined_events import JoinedEvents
from spark_jobs.engine.operators.lookup_join.table_view import TableView
from spark_jobs.engine.rows.event_column import VALUE_BYTES, EventColumn, EventColumns
from spark_jobs.engine.rows.events import Events, arrow_type

__all__ = ["EVENT_ROWS", "JoinedSlice", "LookupJoinOperator", "join"]

EVENT_ROWS: int = EvaluatorSettings().event_rows
"""The default of the setting `event_rows`: the largest number of rows that one event may make."""
ROWS = 2_000_000
"""The largest number of joined rows that are made at once, unless a single event has more."""
_PROBES = 1000
"""How many events are looked up at once if one event may be joined with many rows of the table.

Such look-ups are by several columns that do not include the whole PRIMARY KEY.
"""
_WHOLE = pa.decimal128(19, 0)
"""A type that holds every BIGINT."""


JoinedSlice = tuple[int, Events | JoinedEvents | None]
"""The number of events joined so far, and the joined rows of this slice.

The rows are None if the slice is one event that makes too many rows. Without a join, the rows are the events.
"""


@dataclass(frozen=True, slots=True)
class LookupJoinOperator:
    """The join of events with tables (`operators.operator.Operator`).

    The tables are read as of the batch's pins, so the operator has no state. If the joined rows wait for the watermark,
    every event must have a row, since every event moves the watermark. Then an event without a partner in an inner join
    has a row with NULL in all columns of the table (`operators.timed_operator.TimedOperator.inner_keys`).
    """

    computation: Computation
    views: Mapping[str, TableView]
    """By table id, the tables as they were at the batch's pins."""
    value_bytes: int = VALUE_BYTES
    """The largest number of bytes of a text that an expression of ON computes; a longer text is NULL."""
    event_rows: int = EVENT_ROWS
    """The largest number of rows that an event may make at each join, counted before the other conditions of ON.

    The other conditions are all that the look-up of the join's keys does not decide.
    """
    slice_rows: int = ROWS
    """The largest number of rows of a slice; only an event with more rows makes a larger slice."""

    def begin(self) -> tuple[()]:
        """Return the state, which is empty."""
        return ()

    def step(
        self, state: tuple[()], rows: Events, watermark: int | None = None
    ) -> tuple[tuple[()], Iterator[JoinedSlice]]:
        """Return the joined rows of events, slice by slice, so that memory is bounded.

        Whether an event makes too many rows does not depend on the other events of the batch. So every replay leaves
        out the same events.

        Raises:
            Exception: Any exception, while a slice is made, since the expressions of ON run code of libraries
                (`faults.FAULTS`).
        """
        return state, self._slices(rows)

    def _slices(self, events: Events) -> Iterator[JoinedSlice]:
        if not self.computation.nodes:
            yield events.count, events
            return
        padded = self.computation.timed is not None
        scattered = any(len(node.keys) > 1 and not node.single for node in self.computation.nodes)
        width = _PROBES if scattered else max(events.count, 1)
        waiting = [(first, min(first + width, events.count)) for first in range(0, max(events.count, 1), width)][::-1]
        while waiting:
            first, last = waiting.pop()
            unjoined = JoinedEvents(events, np.arange(first, last), {})
            try:
                at_once = min(self.slice_rows, self.event_rows) if last - first > 1 else self.event_rows
                rows = _joined(unjoined, self.computation, self.views, self.value_bytes, at_once, padded=padded)
            except _TooManyRows:
                if last - first == 1:
                    yield last, None
                    continue
                middle = (first + last) // 2
                waiting += [(middle, last), (first, middle)]
                continue
            yield last, rows

    def snapshot(self, state: tuple[()]) -> bytes:
        """Return nothing."""
        return b""

    def restore(self, snapshot: bytes) -> tuple[()]:
        """Return the state, which is empty."""
        return ()

    def size(self, state: tuple[()]) -> int:
        """Return 0."""
        return 0


def join(
    events: Events, computation: Computation, views: Mapping[str, TableView], value_bytes: int = VALUE_BYTES
) -> JoinedEvents:
    """Return the joined rows of a computation over a batch of events, however many there are.

    Args:
        events: The decoded events.
        computation: The computation, with its joins.
        views: By table id, the tables as they were at the batch's pins.
        value_bytes: The largest number of bytes of a computed text; a longer text is NULL.

    Raises:
        Exception: Any exception, since the expressions of ON run code of libraries (`faults.FAULTS`).
    """
    return _joined(JoinedEvents.of_events(events), computation, views, value_bytes, None)


class _TooManyRows(Exception):
    """The events would make more rows than may be made at once."""


def _joined(
    rows: JoinedEvents,
    computation: Computation,
    views: Mapping[str, TableView],
    value_bytes: int,
    most: int | None,
    *,
    padded: bool = False,
) -> JoinedEvents:
    for each in computation.nodes:
        rows = _further_joined(rows, each, views[each.table_id], value_bytes, most, padded=padded)
    return rows


def _further_joined(
    rows: JoinedEvents, node: LookupJoin, view: TableView, value_bytes: int, most: int | None, *, padded: bool
) -> JoinedEvents:
    """Return the rows that a further join makes of some rows."""
    columns = tuple(key.column for key in node.keys)
    probe, row = _found(view, columns, [_key_values(rows, key, value_bytes) for key in node.keys], most)
    if node.rest and probe.size:
        pairs = rows.meeting(probe, node, view, row)
        true = holds(node.rest, EventColumns(pairs, value_bytes), np.arange(pairs.count))
        probe, row = probe[true], row[true]
    if node.outer or padded:
        probe, row = _with_padded(rows.count, probe, row, every_row=node.undecided)
        _check(probe.size, most)
    return rows.meeting(probe, node, view, row)


def _with_padded(count: int, probe: Ints, row: Ints, *, every_row: bool) -> tuple[Ints, Ints]:
    """Add a pair of a row and -1 for each row without a partner, or for every row if `every_row` is true.

    The added pair comes after the other pairs of its row.
    """
    is_padded = np.ones(count, np.bool_)
    if not every_row:
        is_padded[probe] = False
    padded = np.flatnonzero(is_padded)
    if not padded.size:
        return probe, row
    place = np.arange(probe.size) + (np.cumsum(is_padded) - is_padded)[probe]
    between = np.searchsorted(probe, padded, side="right") + np.arange(padded.size)
    probes, rows = np.empty(probe.size + padded.size, np.int64), np.full(probe.size + padded.size, -1)
    probes[place], probes[between], rows[place] = probe, padded, row
    return probes, rows


def _found(view: TableView, columns: tuple[str, ...], keys: list[pa.Array], most: int | None) -> tuple[Ints, Ints]:
    """Return the pairs of an event and a row of the table; repeated values are looked up once."""
    if len(keys) > 1:
        return _found_by_steps(view, columns, keys, most)
    column = EventColumn(keys[0])
    probe, row = view.find(columns, [column.values])
    if column.by_event:
        _check(probe.size, most)
        return probe, row
    return _spread(column, probe, row, most)


def _found_by_steps(
    view: TableView, columns: tuple[str, ...], keys: list[pa.Array], most: int | None
) -> tuple[Ints, Ints]:
    """Return the pairs of an event and a row of the table, for a key of several columns.

    If an event may be joined with many rows, only some events are looked up at a time, so that too many pairs are
    noticed before all of them are made.
    """
    count = len(keys[0])
    width = max(count, 1) if most is None or set(view.table.key) <= set(columns) else _PROBES
    found, size = [], 0
    for first in range(0, max(count, 1), width):
        probe, row = view.find(columns, [key.slice(first, width) for key in keys])
        found.append((probe + first, row))
        size += probe.size
        _check(size, most)
    return np.concatenate([probe for probe, _ in found]), np.concatenate([row for _, row in found])


def _check(count: int, most: int | None) -> None:
    if most is not None and count > most:
        raise _TooManyRows


def _spread(column: EventColumn, probe: Ints, row: Ints, most: int | None) -> tuple[Ints, Ints]:
    """Return the pairs of events and rows, given the pairs of distinct values and rows."""
    counts = np.bincount(probe, minlength=len(column.values))
    first = column.spread(np.cumsum(counts) - counts)
    length = column.spread(counts, null=0)
    _check(int(length.sum()), most)
    events = np.repeat(np.arange(length.size), length)
    shift = first - (np.cumsum(length) - length)
    return events, row[np.arange(events.size) + np.repeat(shift, length)]


def _key_values(rows: JoinedEvents, key: JoinKey, value_bytes: int) -> pa.Array:
    """Return the values to look up, in the type of the table's column; NULL for a value that the type cannot hold."""
    if isinstance(key.left, Column):
        values = rows.encoded(key.left.reference)
        if pa.types.is_dictionary(values.type):
            return values  # texts, which are only compared with texts, so no cast is needed
    else:
        values = evaluate_expression(key.left, rows, np.arange(rows.count), value_bytes)
    wanted = arrow_type(key.type)
    if values.type == wanted:
        return pc.add(values, 0.0) if pa.types.is_floating(wanted) else values  # -0.0 becomes 0.0
    return _brought_to(values, wanted)


def _brought_to(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Cast values exactly; a value that does not fit becomes NULL.

    If any value does not fit, the distinct values are cast one by one.
    """
    if not (pa.types.is_decimal(wanted) and pa.types.is_integer(values.type)):
        try:
            return values.cast(wanted)
        except pa.ArrowInvalid:
            pass  # at least one value does not fit the wanted type
    encoded = values.dictionary_encode()
    distinct = encoded.dictionary
    if pa.types.is_decimal(wanted) and pa.types.is_integer(distinct.type):
        distinct = distinct.cast(_WHOLE)  # Arrow casts an integer type only to a DECIMAL that holds all its values
    cast = []
    for value in distinct:
        try:
            cast.append(value.cast(wanted).as_py())
        except pa.ArrowInvalid:
            cast.append(None)
    return pa.array(cast, wanted).take(encoded.indices)
