"""The operator that finds the previous row of the same key for each row (`grouping.plan.row_before.RowBefore`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grouping.model.catalog import Stream
from grouping.model.errors import InternalError
from grouping.model.expression import Column, Computed, Expression, Framed, TableColumn, read_reference, walk
from grouping.model.sql_type import DOUBLE, FLOAT
from grouping.plan.group import GroupPlan
from grouping.plan.row_before import RowBefore
from grouping.plan.scan import Scan
from grouping.plan.switch import Switch
from spark_jobs.engine.index import Ints
from spark_jobs.engine.match.residual import holds
from spark_jobs.engine.operators.extended_rows import ExtendedRows
from spark_jobs.engine.operators.log_state import LogOperator
from spark_jobs.engine.operators.partition_clock import PartitionClock
from spark_jobs.engine.operators.row_before.key_extremes import extremes_names, with_rows
from spark_jobs.engine.operators.row_before.key_numbers import key_columns
from spark_jobs.engine.operators.row_before.last_rows import NO_ROW, LastRows
from spark_jobs.engine.operators.switched_rows import switched_rows
from spark_jobs.engine.rows.event_column import VALUE_BYTES, EventColumns
from spark_jobs.engine.rows.extremes import Extremes, is_extremes
from spark_jobs.engine.rows.row_source import RowSource
from spark_jobs.engine.rows.rows_before import RowsBefore

__all__ = ["RowBeforeOperator", "read_before"]

_DAY_MINUTES = 24 * 60


@dataclass(frozen=True, slots=True)
class RowBeforeOperator(LogOperator[LastRows]):
    """Finds the previous rows (`operators.operator.Operator`).

    All rows of a task must be of one source partition, in its order.
    """

    by: tuple[Column, ...]
    """The columns of the key."""
    reads: tuple[Column, ...]
    """The columns of previous rows that groups read, in the order of their stored texts."""
    kept_minutes: int = 1 << 30
    """For how many minutes after its last row a key stays known, by the partition's clock."""
    extremes: frozenset[str] = frozenset()
    """The columns of extremes that groups with UNTIL need (`key_extremes.extremes_names`)."""
    switch: Switch | None = None
    """The conditions of the column `SWITCH`; None without this column."""
    value_bytes: int = VALUE_BYTES
    """The largest number of bytes of a text that a condition computes; a longer text is NULL."""
    of_from: tuple[Expression, ...] = ()
    """The conditions of FROM; other rows are left out (`RowBefore.of_from`)."""

    @classmethod
    def of(
        cls,
        stream: Stream,
        node: RowBefore,
        plans: Sequence[GroupPlan],
        last_row_days: float,
        value_bytes: int = VALUE_BYTES,
    ) -> RowBeforeOperator:
        """Return the operator of a node for groups over a stream; keys of a table are never forgotten."""
        reads, names = read_before(stream, plans), extremes_names(plans)
        if stream.changes_of:
            return cls(node.by, reads, extremes=names)
        return cls(node.by, reads, round(last_row_days * _DAY_MINUTES), names, node.switch, value_bytes, node.of_from)

    def prepared(self, rows: RowSource) -> RowSource:
        """Return the rows that the conditions of FROM keep, with the column `SWITCH` if the operator has this column.

        Raises:
            Exception: Any exception, since conditions run code of libraries (`faults.FAULTS`).
        """
        if self.of_from and rows.count:
            kept = np.flatnonzero(holds(self.of_from, EventColumns(rows, self.value_bytes), np.arange(rows.count)))
            rows = ExtendedRows(rows, kept, {})
        return switched_rows(rows, self.switch, self.value_bytes)

    @property
    def names(self) -> frozenset[str]:
        """The stored names of all columns of the last rows."""
        return self.extremes.union(column.stored for column in self.reads)

    def begin(self) -> LastRows:
        """Return the state before the first rows."""
        return LastRows()

    def step(
        self, state: LastRows, rows: RowSource, watermark: int | None = None
    ) -> tuple[LastRows, Iterator[RowsBefore]]:
        """Return the previous row of each row, and keep the last row of each key; changes the state in place.

        If the last row of a key is a removal, the key's next row has no previous row.

        Raises:
            InternalError: An earlier step failed midway.
        """
        if state.torn:
            raise InternalError("the last rows of keys cannot be used: an earlier step failed midway")
        state.torn = True
        state.kept_minutes = self.kept_minutes
        numbers, (minutes, clock) = self.numbers(state, rows), state.clocks(rows.time_ms, rows.offsets)
        order, again = _by_key(numbers)
        place = np.full(rows.count, -1, np.int64)
        place[order[again]] = order[np.flatnonzero(again) - 1]
        first = np.flatnonzero(place < 0)
        place[(place >= 0) & state.forgotten(minutes[place], minutes)] = -1
        if rows.removals is not None:
            place[(place >= 0) & rows.removals[place]] = -1  # after a removal the key has no row
        own_offsets = np.where(place >= 0, rows.offsets[place], NO_ROW)
        own_offsets[first] = state.offsets(numbers[first], minutes[first])
        known = first[own_offsets[first] != NO_ROW]
        place[known] = rows.count + np.arange(known.size)
        kept = state.taken((column.stored for column in self.reads), numbers[known])
        of = np.flatnonzero(place >= 0)
        found = self._with_rows(state, rows, numbers, minutes, order, again)
        extremes = {name: each for name, (each, _) in found.items()}
        before = RowsBefore(rows, of, place[of], own_offsets[of], kept, self._equal, extremes)
        packed = {name: values for name, (_, values) in found.items()}
        self._put(state, rows, numbers, minutes, clock, order, again, packed, undoable=True)
        return state, iter([before])

    def fold(self, state: LastRows, rows: RowSource) -> None:
        """Keep the last row of each key, without returning previous rows; the change cannot be undone.

        Either all rows must be below the state's position, or no row may be. The state already has the rows below its
        position; such rows only fill columns that are new in the state.
        """
        state.kept_minutes = self.kept_minutes
        numbers, (minutes, clock) = self.numbers(state, rows), state.clocks(rows.time_ms, rows.offsets)
        order, again = _by_key(numbers)
        found = self._with_rows(state, rows, numbers, minutes, order, again)
        packed = {name: values for name, (_, values) in found.items()}
        self._put(state, rows, numbers, minutes, clock, order, again, packed, undoable=False)

    def numbers(self, state: LastRows, rows: RowSource) -> Ints:
        """Return the number of each row's key in a state."""
        return state.keys.of(key_columns([rows.column(column.reference) for column in self.by]))

    def _with_rows(
        self,
        state: LastRows,
        rows: RowSource,
        numbers: Ints,
        minutes: NDArray[np.int32],
        order: Ints,
        again: NDArray[np.bool_],
    ) -> dict[str, tuple[Extremes, pa.Array]]:
        """Return by column of extremes: the extremes before each row, and each key's packed extremes after all rows.

        The columns are those of the state and of the operator, without the columns that already have these rows
        (`LastRows.ready`).
        """
        names = self.extremes.union(filter(is_extremes, state.columns)) - state.ready
        return {name: with_rows(name, state, rows, numbers, minutes, order, again) for name in names}

    def _put(
        self,
        state: LastRows,
        rows: RowSource,
        numbers: Ints,
        minutes: NDArray[np.int32],
        clock: PartitionClock,
        order: Ints,
        again: NDArray[np.bool_],
        extremes: Mapping[str, pa.Array],
        *,
        undoable: bool,
    ) -> None:
        """Set the last row of each key among the rows, with all columns of the state and of the operator."""
        last = order[np.append(~again[1:], np.ones(min(order.size, 1), np.bool_))]
        stored_names = {*self._stored, *state.columns}
        references = {stored: read_reference(stored) for stored in stored_names if not is_extremes(stored)}
        places = pa.array(last)
        columns = {stored: rows.column(reference).take(places) for stored, reference in references.items()}
        offsets = rows.offsets[last]
        if rows.removals is not None:
            offsets = np.where(rows.removals[last], NO_ROW, offsets)
        state.put(numbers[last], offsets, minutes[last], {**columns, **extremes}, clock, undoable=undoable)

    @property
    def _equal(self) -> frozenset[str]:
        """The columns of BY that are equal in a row and its previous row; floating-point zeros may differ in sign."""
        return frozenset(column.stored for column in self.by if column.type not in (FLOAT, DOUBLE))

    @property
    def _stored(self) -> list[str]:
        """The stored names of the columns to keep."""
        return [column.stored for column in self.reads if column.stored not in self._equal]


def read_before(stream: Stream, plans: Iterable[GroupPlan]) -> tuple[Column, ...]:
    """Return the columns of previous rows that groups read, in the order of their stored texts.

    For changes of a table these are all columns, since the result of a removal has the SELECT list of the removed row.
    """
    if stream.changes_of:
        return tuple(sorted(Scan(stream).columns, key=lambda column: column.stored))
    leaves = (leaf for plan in plans for each in plan.conjuncts for leaf in walk(each) if isinstance(leaf, Column))
    found = {leaf.stored: leaf for leaf in leaves if isinstance(leaf.reference, str | TableColumn | Computed | Framed)}
    return tuple(found[stored] for stored in sorted(found))


def _by_key(numbers: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """Return the rows ordered by key, then by place, and for each row whether the preceding row has the same key."""
    order = np.argsort(numbers, kind="stable")
    sorted_numbers = numbers[order]
    again = np.zeros(order.size, np.bool_)
    again[1:] = sorted_numbers[1:] == sorted_numbers[:-1]
    return order, again
