"""Evaluates HAVING on aggregates and makes the rows of digests, for many destinations at once, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from grouping.digests.digest_aggregates import AggregateDestination, DigestAggregates
from grouping.digests.rows import DigestRow, DigestRows, RowsUnavailable
from grouping.functions.functions import has_rule, result_type
from grouping.model.expression import Call, Column, Expression, Reference, Slot
from grouping.model.sql_type import UNKNOWN, SqlType
from grouping.model.wording import counted
from grouping.plan.group import GroupPlan, SelectList
from grouping.store.constant_table import constants_array
from spark_jobs.engine.index import Ints
from spark_jobs.engine.match.residual import evaluate_expression, holds
from spark_jobs.engine.match.row_slices import slices
from spark_jobs.engine.operators.aggregate.merging import MergedAggregates, partials_of
from spark_jobs.engine.results.encode import encode, row_bytes
from spark_jobs.engine.results.pending import MAX_ROW_BYTES
from spark_jobs.engine.rows.arrays import distinct_values
from spark_jobs.engine.rows.event_column import EventColumns
from spark_jobs.engine.rows.events import arrow_type
from spark_jobs.engine.rows.value_sizes import value_sizes

__all__ = ["kept_aggregates"]

PAIRS = 250_000
"""The largest number of pairs of a destination and an aggregate for which HAVING is evaluated at once.

A single destination may have more aggregates, and is then evaluated alone.
"""
_BYTES = 16 << 20
"""The approximate largest number of bytes of rows that are made at once, without JSON's escapes.

Only a single row may have more.
"""

_Spans = Sequence[tuple[int, int]]


def kept_aggregates(
    plan: GroupPlan, select: SelectList, destinations: Sequence[AggregateDestination]
) -> Iterator[DigestAggregates]:
    """Yield the results of a query's destinations, in their order.

    Args:
        plan: The plan of the query's group.
        select: The query's SELECT list.
        destinations: The destinations, with the constants and the aggregates of each.
    """
    aggregation = select.aggregation
    assert aggregation is not None, "the query has aggregates"
    partials = partials_of(select)
    table, spans = _joined([each.aggregates for each in destinations])
    columns, counts = partials.no_aggregates(), np.empty(0, np.int64)
    if table.height:
        columns, counts = partials.values(table), table["n"].to_numpy()
    if not aggregation.keys and any(each.with_none for each in destinations):
        empty = partials.empty()
        columns = {name: pl.concat([values, empty[name]]) for name, values in columns.items()}
        none = (counts.size, counts.size + 1)
        counts = np.append(counts, 0)
        spans = [
            none if each.with_none and span[0] == span[1] else span
            for each, span in zip(destinations, spans, strict=True)
        ]
    aggregates = _Aggregates(columns, select, counts.size)
    having, rows = _Having(plan, aggregates), _AggregateRows(aggregates, select)
    total = np.append(0, np.cumsum(counts))
    for first, last in slices(np.cumsum([end - begin for begin, end in spans]), PAIRS):
        own = spans[first:last]
        found = having.kept(destinations[first:last], own)
        matches = [int(total[end] - total[begin]) for begin, end in own]
        yield from map(_digest, rows.of(found), matches)


def _digest(rows: Iterable[_MadeRow], matches: int) -> DigestAggregates:
    """Return a destination's result: its rows, without the rows that are too large for a record."""
    fitting, large, largest = DigestRows(), 0, 0
    try:
        for place, row in enumerate(rows):
            if row.body is not None and row.size <= MAX_ROW_BYTES:
                fitting.append(DigestRow(0, place, 0, row.body))
            else:
                large, largest = large + 1, max(largest, row.size)
    except RowsUnavailable as error:
        return DigestAggregates(DigestRows(), matches, failure=error.detail or error.message)
    if not large:
        return DigestAggregates(fitting, matches)
    return DigestAggregates(
        fitting,
        matches,
        f"The digest comes without {counted(large, 'row')}: the largest has {largest} bytes or more,"
        f" and a row may have {MAX_ROW_BYTES} bytes.",
    )


def _joined(aggregates: Sequence[MergedAggregates]) -> tuple[pl.DataFrame, list[tuple[int, int]]]:
    """Return one table with the aggregates of several questions, and the range of rows of each question.

    Aggregates that several questions share are in the table only once.
    """
    tables: dict[int, tuple[pl.DataFrame, dict[tuple[int, int], int]]] = {}
    for each in aggregates:
        tables.setdefault(id(each.table), (each.table, {}))[1][each.begin, each.end] = 0
    found, base = [], 0
    for table, spans in tables.values():
        found.append(table[np.concatenate([np.arange(*span) for span in spans])])
        for begin, end in spans:
            spans[begin, end] = base
            base += end - begin
    own = ((tables[id(each.table)][1][each.begin, each.end], each.end - each.begin) for each in aggregates)
    joined = pl.concat(found, how="diagonal_relaxed")
    return joined, [(begin, begin + count) for begin, count in own]


class _Having:
    """Evaluates HAVING for the aggregates of destinations."""

    def __init__(self, plan: GroupPlan, aggregates: _Aggregates) -> None:
        self._slots = 0 if plan.kept is None else plan.kept.slots
        self._conditions = () if plan.kept is None else tuple(_retyped(each, aggregates) for each in plan.kept.having)
        self._columns = EventColumns(aggregates)

    def kept(self, destinations: Sequence[AggregateDestination], spans: _Spans) -> list[Ints]:
        """Return for each destination the aggregates that pass HAVING.

        Destinations whose constants have equal types are evaluated together.
        """
        own = [np.arange(*span) for span in spans]
        if not self._conditions:
            return own
        by_types: dict[tuple[SqlType, ...], list[int]] = {}
        for number, each in enumerate(destinations):
            by_types.setdefault(each.row.types, []).append(number)
        for types, numbers in by_types.items():
            values = [destinations[number].row.values for number in numbers]
            constants = [
                constants_array(sql_type, [value[slot] for value in values]) if slot >= self._slots else pa.nulls(0)
                for slot, sql_type in enumerate(types)
            ]
            sizes = [own[number].size for number in numbers]
            positions = np.concatenate([own[number] for number in numbers])
            rows = np.repeat(np.arange(len(numbers)), sizes)
            true = holds(self._conditions, self._columns, positions, types, constants, rows)
            ends = np.cumsum(sizes)
            for number, begin, end in zip(numbers, (ends - sizes).tolist(), ends.tolist(), strict=True):
                own[number] = own[number][true[begin:end]]
        return own


def _retyped(expression: Expression, aggregates: _Aggregates) -> Expression:
    """Return a condition of HAVING with the types of a query's own aggregates and keys.

    The queries of a group have HAVING in common, but constants may decide the type of an aggregate (``max(i * 1.5)``).
    """
    match expression:
        case Column(stored):
            found = aggregates.types.get(expression.reference)
            return expression if found is None else Column(stored, str(found))
        case Call(op, args, kind):
            own = tuple(_retyped(each, aggregates) for each in args)
            kinds = [UNKNOWN if isinstance(each, Slot) else each.type for each in own]
            return Call(op, own, str(result_type(op, kinds)) if has_rule(op) else kind)
    return expression


class _MadeRow(NamedTuple):
    """An aggregate as a row of a digest."""

    body: bytes | None
    """The JSON object; None if the texts of the row are so large that no object was made."""
    size: int


class _AggregateRows:
    """Makes the rows of aggregates, a bounded number at a time."""

    def __init__(self, aggregates: _Aggregates, select: SelectList) -> None:
        self._aggregates = aggregates
        self._select = select
        self._bytes = np.broadcast_to(row_bytes(select, aggregates.text_bytes()), aggregates.count)
        """The approximate number of bytes that the row of each aggregate takes while it is made."""

    def of(self, found: Sequence[Ints]) -> Iterator[Iterable[_MadeRow]]:
        """Yield the rows of each destination.

        If all rows together have at most `_BYTES`, a row that several destinations have is made only once.
        """
        wanted = distinct_values(np.concatenate(found)) if found else np.empty(0, np.int64)
        if int(self._bytes[wanted].sum()) <= _BYTES:
            made = dict(zip(wanted.tolist(), self._made(wanted), strict=True))
            yield from ([made[number] for number in rows.tolist()] for rows in found)
        else:
            yield from map(self._made, found)

    def _made(self, rows: Ints) -> Iterator[_MadeRow]:
        for first, last in slices(np.cumsum(self._bytes[rows]), _BYTES):
            some = rows[first:last].astype(np.int32)
            bodies, sizes = encode(self._aggregates, self._select, some, _evaluated, stored=True)  # type: ignore[arg-type]
            yield from map(_MadeRow, bodies.to_pylist(), sizes.tolist())


def _evaluated(expression: Expression, aggregates: Any, rows: NDArray[np.int32]) -> pa.Array:
    return evaluate_expression(expression, aggregates, rows)


class _Aggregates:
    """Aggregates as rows on which predicates and SELECT lists are evaluated."""

    def __init__(self, columns: dict[Reference, pl.Series], select: SelectList, count: int) -> None:
        aggregation = select.aggregation
        assert aggregation is not None
        self.count = count
        self._columns = columns
        made = (*(key.column for key in aggregation.keys), *(value.column for value in aggregation.aggregates))
        self.types = {column.reference: column.type for column in made}
        """The types of the keys and of the aggregates."""
        self._arrays: dict[Reference, pa.Array] = {}

    def column(self, name: Reference) -> pa.Array:
        """Return a column of the aggregates."""
        found = self._arrays.get(name)
        if found is None:
            found = self._arrays[name] = self._columns[name].to_arrow().cast(arrow_type(self.types[name]))
        return found

    def encoded(self, name: Reference) -> pa.Array:
        """Return the same array as `column`: no dictionary of repeated values is known here."""
        return self.column(name)

    def declares(self, name: Reference) -> bool:
        """Return False, since no stream or table declares a column of aggregates."""
        return False

    def text_bytes(self) -> Ints:
        """Return the number of bytes of each aggregate's texts."""
        return sum((value_sizes(self.column(name)) for name in self.types), np.zeros(self.count, np.int64))
