"""Predicates on candidate pairs and on events, and the expressions of SELECT lists: one call for all rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from grouping.errors import InternalError
from grouping.expression import Call, Column, Expression
from spark_jobs.event_column import EventColumns, EventSource
from spark_jobs.index import Ints
from spark_jobs.key_codes import KeyCodes
from spark_jobs.keys import key_space
from spark_jobs.polars_expression import Compiled, KeyPair, Member, compile_expression
from spark_jobs.set_membership import in_sets

__all__ = ["evaluate_expression", "holds"]

Positions = NDArray[np.integer]

_BUNDLE = 32
"""Conjuncts that are evaluated at once where there are more."""
_DENSE = 16
"""Rows of a table for each pair, up to which the rows that are met are found by marking them."""


def holds(
    conjuncts: Sequence[Expression],
    events: EventColumns,
    positions: Positions,
    types: tuple[str, ...] = (),
    constants: Sequence[pa.Array] = (),
    rows: Positions | None = None,
) -> NDArray[np.bool_]:
    """Tell for each (event, row) pair whether all conjuncts are TRUE.

    Args:
        conjuncts: What must hold.
        events: The batch.
        positions: The event of each pair.
        types: Of the slots.
        constants: Of the slots, by row.
        rows: The row of each pair; None for conjuncts without slots.
    """
    true = np.ones(positions.size, np.bool_)
    for conjunct in _bundled(conjuncts):
        left = np.flatnonzero(true)
        if not left.size:
            break
        compiled = compile_expression(conjunct, types)
        frame = _Frame(events, positions[left], types, constants, None if rows is None else rows[left])
        true[left] = frame.evaluate(compiled).fill_null(False).to_numpy()
    return true


def _bundled(conjuncts: Sequence[Expression]) -> Sequence[Expression]:
    """Return conjuncts, many of them in bundles: each has its cost, and the first ones leave few pairs."""
    if len(conjuncts) <= _BUNDLE:
        return conjuncts
    return [
        Call("and", tuple(conjuncts[start : start + _BUNDLE]), "BOOLEAN") for start in range(0, len(conjuncts), _BUNDLE)
    ]


def evaluate_expression(expression: Expression, events: EventSource, rows: Positions) -> pa.Array:
    """Return the value of an expression without slots for each of some events."""
    compiled = compile_expression(expression, ())
    result: pa.Array = _Frame(EventColumns(events), rows, (), (), None).evaluate(compiled).to_arrow()
    return result


def _numbered(rows: Positions, count: int) -> tuple[Ints, Ints]:
    """Return the distinct ones of some rows, of so many that there are, and for each which of these it is."""
    if count > _DENSE * rows.size:
        distinct, which = np.unique(rows.astype(np.int64), return_inverse=True)
        return distinct, which
    seen = np.zeros(count, np.bool_)
    seen[rows] = True
    return np.flatnonzero(seen), (np.cumsum(seen) - 1)[rows]


class _Values:
    """Computed values, to be looked up as a column of events is."""

    def __init__(self, values: pa.Array) -> None:
        self.count = len(values)
        self.time_ms = np.empty(0, np.int64)
        self.offsets = np.empty(0, np.int64)
        self.partitions = np.empty(0, np.int32)
        self._values = values

    def column(self, name: str) -> pa.Array:
        """Return the values, whatever the name."""
        return self._values


def _needle_name(member: Member) -> str:
    return member.needle.name if isinstance(member.needle, Column) else member.name


class _Frame:
    """Event values and constants side by side, one row for each pair."""

    def __init__(
        self,
        events: EventColumns,
        positions: Positions,
        types: tuple[str, ...],
        constants: Sequence[pa.Array],
        rows: Positions | None,
    ) -> None:
        self._events = events
        self._positions = positions
        self._types = types
        self._constants = constants
        self._rows = rows

    def evaluate(self, compiled: Compiled) -> pl.Series:
        columns = [self._event(name) for name in compiled.columns]
        columns += [pl.Series(f":c{slot}", self._constant(slot)) for slot in compiled.slots]
        for pair in compiled.keys:
            columns += self._keys(pair)
        columns += [self._member(member) for member in compiled.members]
        # Without a column of the right height an expression of constants alone would be a single row.
        frame = pl.DataFrame([pl.Series(":row", np.zeros(self._positions.size, np.int8)), *columns])
        return frame.with_columns(compiled.expression.alias(":result"))[":result"]

    def _event(self, name: str) -> pl.Series:
        return self._events.series(name).gather(self._positions)

    def _constant(self, slot: int) -> pa.Array:
        values = self._constants[slot].take(pa.array(self._rows))
        return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values

    def _keys(self, pair: KeyPair) -> list[pl.Series]:
        constants = self._constant(pair.slot)
        space = key_space(pair.column.type, (self._types[pair.slot],), (constants,))
        column = self._events[pair.column.name]
        event = pl.Series(pair.names[0], column.spread(space.events(column))[self._positions])
        if column.nulls is not None:
            event = event.set(pl.Series(column.nulls[self._positions]), None)
        constant = pl.Series(pair.names[1], space.constants(constants))
        if constants.null_count:
            constant = constant.set(pl.Series(constants.is_null()), None)
        return [event, constant]

    def _needles(self, member: Member) -> tuple[EventColumns, Positions]:
        """Return what is looked up, and where in it each pair's value is."""
        if isinstance(member.needle, Column):
            return self._events, self._positions
        values = self.evaluate(compile_expression(member.needle, self._types)).to_arrow()
        if pa.types.is_large_string(values.type) or pa.types.is_string_view(values.type):
            values = values.cast(pa.string())
        return EventColumns(_Values(values)), np.arange(self._positions.size)

    def _member(self, member: Member) -> pl.Series:
        """Look up (row, value) among the elements of the sets that are met."""
        if self._rows is None:
            raise InternalError("a set without rows")
        distinct, which = _numbered(self._rows, len(self._constants[member.slot]))
        sets = self._constants[member.slot].take(pa.array(distinct))
        elements, parents = sets.flatten(), sets.value_parent_indices().to_numpy()
        offsets = np.searchsorted(parents, np.arange(distinct.size + 1))
        needles, found_at = self._needles(member)
        keys = KeyCodes(_needle_name(member), member.type, self._types[member.slot][4:-1], elements)
        codes = keys.constants(elements)
        null_set = np.zeros(distinct.size, np.bool_)
        null_set[parents[codes < 0]] = True
        null_set |= sets.is_null().to_numpy(zero_copy_only=False)
        met = in_sets(keys.find(needles)[found_at], which, codes, offsets)
        nulls = needles[_needle_name(member)].nulls
        unknown = ~met & null_set[which]
        if nulls is not None:
            unknown |= nulls[found_at]
        return pl.Series(member.name, met).set(pl.Series(unknown), None)
