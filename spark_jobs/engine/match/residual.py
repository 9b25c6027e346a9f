"""Evaluates predicates on candidate pairs or events, and expressions of SELECT lists, for all rows in one call."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from grouping.functions.sizes import Size, constant_size
from grouping.functions.text_size import TextSizes
from grouping.model.errors import InternalError
from grouping.model.expression import LEFT_ON, Call, Column, Expression, Reference, Slot, Value, walk
from grouping.model.sql_type import STRING, VARIANT, SqlType
from spark_jobs.engine.expressions.expression import KeyPair, Member, compile_expression
from spark_jobs.engine.index import Ints
from spark_jobs.engine.index.key_codes import KeyCodes
from spark_jobs.engine.index.keys import key_space
from spark_jobs.engine.index.set_membership import in_sets
from spark_jobs.engine.match.elements import ElementSource
from spark_jobs.engine.match.reduction import ReductionSource
from spark_jobs.engine.match.row_slices import numbered, slices
from spark_jobs.engine.rows.columns import Columns, SingleColumn
from spark_jobs.engine.rows.cpu_budget import check_cpu
from spark_jobs.engine.rows.event_column import VALUE_BYTES, EventColumns, as_plain, longest_text
from spark_jobs.engine.rows.partners import partners
from spark_jobs.engine.rows.value_sizes import value_sizes

__all__ = ["BYTES", "ELEMENTS", "evaluate_expression", "holds", "truth"]

PairPositions = NDArray[np.integer]

_AT_ONCE = 32
"""Conjuncts are evaluated one by one if there are at most this many. More conjuncts are joined in chunks of this
size."""
BYTES = 64 << 20
"""The largest number of bytes of texts that are read and computed at once, unless a single row has more."""
_IN_MEMORY = 8
"""An upper bound of the bytes in memory for each byte of a value."""
ELEMENTS = 1 << 20
"""The largest number of elements for which a lambda's body is evaluated at once, unless a single row has more."""


def holds(
    conjuncts: Sequence[Expression],
    events: EventColumns,
    positions: PairPositions,
    types: tuple[SqlType, ...] = (),
    constants: Sequence[pa.Array] = (),
    rows: PairPositions | None = None,
) -> NDArray[np.bool_]:
    """Return for each pair of an event and a constant row whether all conjuncts are TRUE.

    Args:
        conjuncts: The conjuncts.
        events: The batch.
        positions: The event of each pair.
        types: The types of the slots.
        constants: For each slot, its constants by constant row.
        rows: The constant row of each pair; None for conjuncts without slots.
    """
    true = np.ones(positions.size, np.bool_)
    for conjunct in _joined(conjuncts):
        left = np.flatnonzero(true)
        if not left.size:
            break
        values = truth(conjunct, events, positions[left], types, constants, None if rows is None else rows[left])
        # `fill_null` and `gather` start a Polars query, which for a small batch takes longer than the conjunct itself.
        true[left] = (values.fill_null(False) if values.null_count() else values).to_numpy()
    return true


def truth(
    conjunct: Expression,
    events: EventColumns,
    positions: PairPositions,
    types: tuple[SqlType, ...],
    constants: Sequence[pa.Array],
    rows: PairPositions | None,
) -> pl.Series:
    """Return the value of one conjunct, TRUE, FALSE or NULL, for each pair; the arguments are those of `holds`."""
    return _PairFrame(events, positions, types, constants, rows).evaluate(conjunct)


def _joined(conjuncts: Sequence[Expression]) -> Sequence[Expression]:
    """Return conjuncts; more than `_AT_ONCE` are joined with AND in chunks, as each evaluation has a fixed cost."""
    if len(conjuncts) <= _AT_ONCE:
        return conjuncts
    return [
        Call("and", tuple(conjuncts[start : start + _AT_ONCE]), "BOOLEAN")
        for start in range(0, len(conjuncts), _AT_ONCE)
    ]


def evaluate_expression(
    expression: Expression, events: Columns, rows: PairPositions, value_bytes: int = VALUE_BYTES
) -> pa.Array:
    """Return the value of an expression without slots for each of some events.

    Args:
        expression: The expression to compute.
        events: The batch.
        rows: The indexes of the events.
        value_bytes: The largest size of a text that the expression computes; a longer text is NULL.
    """
    result: pa.Array = _PairFrame(EventColumns(events, value_bytes), rows, (), (), None).evaluate(expression).to_arrow()
    return result


@lru_cache(maxsize=4096)
def _has_text(expression: Expression) -> bool:
    """Tell whether an expression reads or computes texts."""
    return any(not isinstance(part, Slot) and part.type.is_sized for part in walk(expression))


def _needle_name(member: Member) -> Reference:
    return member.needle.reference if isinstance(member.needle, Column) else member.name


class _PairFrame:
    """Pairs of an event and a constant row, with the columns of the events and the constants of the constant rows."""

    def __init__(
        self,
        events: EventColumns,
        positions: PairPositions,
        types: tuple[SqlType, ...],
        constants: Sequence[pa.Array],
        rows: PairPositions | None,
    ) -> None:
        self._events = events
        self._positions = positions
        self._types = types
        self._constants = constants
        self._rows = rows

    def evaluate(self, expression: Expression) -> pl.Series:
        """Compute an expression for all pairs, in slices if its texts are large."""
        if not _has_text(expression):
            return self.at_once(expression, None)
        limit = self._events.value_bytes
        sizes = TextSizes(self._longest, limit)
        sizes.of(expression)
        most = limit if sizes.longest > limit else None
        if sizes.total * self._positions.size <= BYTES:
            return self.at_once(expression, most)
        sizes = TextSizes(self._lengths, limit)
        sizes.of(expression)
        total = np.cumsum(np.broadcast_to(sizes.total, self._positions.size))
        return pl.concat([self._between(*part).at_once(expression, most) for part in slices(total, BYTES)])

    def _between(self, first: int, last: int) -> _PairFrame:
        rows = None if self._rows is None else self._rows[first:last]
        return _PairFrame(self._events, self._positions[first:last], self._types, self._constants, rows)

    def _longest(self, leaf: Column | Slot | Value) -> Size:
        """Return the bytes of the longest text in a column, slot or constant."""
        if isinstance(leaf, Column):
            return self._events.longest(leaf.reference) if leaf.type.is_sized else 0
        return constant_size(leaf) if isinstance(leaf, Value) else self._longest_constant(leaf.index)

    def _longest_constant(self, slot: int) -> int:
        if self._types[slot] != STRING:
            return 0
        known = self._constants[slot].dictionary
        return longest_text(known if len(known) <= self._positions.size else self._texts(slot).to_arrow())

    def _lengths(self, leaf: Column | Slot | Value) -> Size:
        """Return the number of bytes of a column's or slot's text for each pair, or one bound for all pairs."""
        match leaf:
            case Column() if leaf.type in (STRING, VARIANT):
                texts = self._event(leaf)
            case Column() if leaf.type.is_sized:
                return self._events.longest(leaf.reference)
            case Slot(slot) if self._types[slot] == STRING:
                texts = self._texts(slot)
            case _:
                return constant_size(leaf)
        return texts.str.len_bytes().fill_null(0).to_numpy().astype(np.int64)

    def at_once(self, expression: Expression, most: int | None) -> pl.Series:
        """Compute an expression for all pairs; texts longer than `most` bytes are NULL, if `most` is given."""
        compiled = compile_expression(expression, self._types, most)
        columns = [self._event(column).alias(column.stored) for column in compiled.columns]
        for slot in compiled.slots:
            values = self._texts(slot) if self._types[slot] == STRING else pl.Series(self._constant(slot))
            columns.append(values.alias(f":c{slot}"))
        for pair in compiled.keys:
            columns += self._keys(pair)
        columns += [self._member(member) for member in compiled.members]
        columns += [self.of_elements(each.call).alias(each.name) for each in compiled.lambdas]
        # The column ":row" sets the number of rows: an expression of constants only would give a single row.
        frame = pl.DataFrame([pl.Series(":row", np.zeros(self._positions.size, np.int8)), *columns])
        check_cpu()
        for name, step in compiled.steps:
            frame = frame.with_columns(step.alias(name))
            check_cpu()
        return frame.with_columns(compiled.expression.alias(":result"))[":result"]

    def _event(self, column: Column) -> pl.Series:
        return self._events.series(column.reference)[self._positions]

    def _constant(self, slot: int) -> pa.Array:
        values = self._constants[slot].take(pa.array(self._rows))
        return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values

    def _texts(self, slot: int) -> pl.Series:
        """Return the text of a slot for each pair; a text that many pairs share is in memory only once."""
        encoded = self._constants[slot].take(pa.array(self._rows))
        if encoded.null_count == len(encoded):
            return pl.Series([None], dtype=pl.String).new_from_index(0, len(encoded))
        codes = encoded.indices.fill_null(0) if encoded.null_count else encoded.indices
        distinct, which = numbered(codes.to_numpy(), len(encoded.dictionary))
        texts = pl.Series(encoded.dictionary.take(pa.array(distinct)))[which]
        return texts.set(pl.Series(encoded.is_null()), None) if encoded.null_count else texts

    def of_elements(self, call: Call) -> pl.Series:
        """Return the value of a function with a lambda, in slices with a bounded number of elements.

        Nested lambdas multiply the elements of one event; slices bound the elements that are in memory at once.
        """
        if call.op == LEFT_ON:
            return self._left_on(call)
        rows = list(slices(np.cumsum(self._array_sizes(call.args[0])), BYTES))
        if len(rows) > 1:
            return pl.concat([self._between(*some).of_elements(call) for some in rows])
        arrays = self.evaluate(call.args[0])
        if call.op == "reduce":
            return self._reduced(call, arrays)
        total = np.cumsum(arrays.list.len().fill_null(0).to_numpy(), dtype=np.int64)
        if not total.size or total[-1] <= ELEMENTS:
            return self.of_slice(call, arrays)
        parts = slices(total, ELEMENTS)
        return pl.concat([self._between(*part).of_slice(call, arrays[slice(*part)]) for part in parts])

    def _array_sizes(self, arrays: Expression) -> Ints:
        """Estimate the bytes of each pair's array. With nested lambdas, many pairs share an event's array."""
        if isinstance(arrays, Column):
            if self._events.longest(arrays.reference) * self._positions.size <= BYTES:
                return np.zeros(self._positions.size, np.int64)
            return _IN_MEMORY * value_sizes(self._events.source.column(arrays.reference))[self._positions]
        sizes = TextSizes(self._longest, self._events.value_bytes)
        return np.full(self._positions.size, int(sizes.of(arrays)), np.int64)

    def _reduced(self, call: Call, arrays: pl.Series) -> pl.Series:
        """Return the result of reduce; each step evaluates the lambda for the next element of all arrays."""
        _, start, total, variable, body = call.args
        assert isinstance(total, Column) and isinstance(variable, Column), "the variables of the lambda"
        steps = ReductionSource(self._events.source, self._positions, (total.reference, variable.reference), arrays)
        steps.begin(self.evaluate(start))
        while steps.count:
            rows = None if self._rows is None else self._rows[steps.rows]
            events = EventColumns(steps, self._events.value_bytes)
            inner = _PairFrame(events, np.arange(steps.count), self._types, self._constants, rows)
            steps.advance(inner.evaluate(body))
        return steps.result()

    def _left_on(self, call: Call) -> pl.Series:
        """Return for each row of a LEFT JOIN whether ON keeps it; rows of NULLs are kept if no partner satisfies ON."""
        prefix, condition = call.args
        assert isinstance(prefix, Value), "the prefix of the table"
        found = partners(self._events.source, str(prefix.value), self._positions)
        events = self._events if found.rows is None else EventColumns(found.rows, self._events.value_bytes)
        joined = np.zeros(self._positions.size, np.bool_)
        for first, last in slices(np.cumsum(found.size), ELEMENTS):
            of = np.repeat(np.arange(first, last), found.size[first:last])
            if not of.size:
                continue
            begins = np.cumsum(found.size[first:last]) - found.size[first:last]
            places = found.first[of] + np.arange(of.size) - begins[of - first]
            rows = None if self._rows is None else self._rows[of]
            true = _PairFrame(events, places, self._types, self._constants, rows).evaluate(condition).fill_null(False)
            joined[of[true.to_numpy()]] = True
        return pl.Series(joined != found.is_padded)

    def of_slice(self, call: Call, arrays: pl.Series) -> pl.Series:
        """Return the value of a function with a lambda; the lambda's body is evaluated for all elements at once."""
        _, variable, body = call.args
        assert isinstance(variable, Column), "the lambda's variable"
        elements = ElementSource(self._events.source, self._positions, variable.reference, arrays)
        events = EventColumns(elements, self._events.value_bytes)
        rows = None if self._rows is None else self._rows[elements.of]
        inner = _PairFrame(events, np.arange(elements.count), self._types, self._constants, rows)
        if not call.type.is_nested:
            return elements.result(call, inner.evaluate(body))
        return inner._collected(call, elements, body)

    def _collected(self, call: Call, elements: ElementSource, body: Expression) -> pl.Series:
        """Return arrays or MAPs of the values of a lambda's body; `self` must be the frame of the elements.

        An array or MAP larger than `value_bytes` is NULL, and its values are dropped early.
        """
        limit = self._events.value_bytes
        sizes = TextSizes(self._longest, limit)
        most = max(int(sizes.of(body)), 1)
        if most * self._positions.size <= limit:
            return elements.result(call, self.evaluate(body))
        made = np.zeros(elements.arrays, np.int64)
        values = []
        for first, last in slices(np.arange(1, self._positions.size + 1), max(BYTES // most, 1)):
            of = elements.of[first:last]
            part = self._between(first, last).evaluate(body)
            np.add.at(made, of, value_sizes(part.to_arrow()))
            # Values of arrays that are too large are dropped by `take`; `Series.set` would keep them in memory.
            values.append(pl.Series(part.to_arrow().take(pa.array(np.arange(of.size), mask=made[of] > limit))))
        return elements.result(call, pl.concat(values)).set(pl.Series(made > limit), None)

    def _keys(self, pair: KeyPair) -> list[pl.Series]:
        constants = self._constant(pair.slot)
        space = key_space(pair.column.type, (self._types[pair.slot],), (constants,))
        column = self._events[pair.column.reference]
        event = pl.Series(pair.names[0], column.spread(space.events(column))[self._positions])
        if column.nulls is not None:
            event = event.set(pl.Series(column.nulls[self._positions]), None)
        constant = pl.Series(pair.names[1], space.constants(constants))
        if constants.null_count:
            constant = constant.set(pl.Series(constants.is_null()), None)
        return [event, constant]

    def _needles(self, member: Member) -> tuple[EventColumns, PairPositions]:
        """Return the values to look up in sets, and for each pair the index of its value."""
        if isinstance(member.needle, Column):
            return self._events, self._positions
        values = as_plain(self.evaluate(member.needle).to_arrow())
        return EventColumns(SingleColumn(values)), np.arange(self._positions.size)

    def _member(self, member: Member) -> pl.Series:
        """Return for each pair whether its value is in the set of its constant row; NULL as for SQL's IN."""
        if self._rows is None:
            raise InternalError("a set without rows")
        distinct, which = numbered(self._rows, len(self._constants[member.slot]))
        sets = self._constants[member.slot].take(pa.array(distinct))
        elements, parents = sets.flatten(), sets.value_parent_indices().to_numpy()
        offsets = np.searchsorted(parents, np.arange(distinct.size + 1))
        needles, found_at = self._needles(member)
        keys = KeyCodes(_needle_name(member), member.type, self._types[member.slot].member, elements)
        codes = keys.constants(elements)
        null_set = np.zeros(distinct.size, np.bool_)
        null_set[parents[codes < 0]] = True
        null_set |= sets.is_null().to_numpy(zero_copy_only=False)
        is_member = in_sets(keys.find(needles)[found_at], which, codes, offsets)
        nulls = needles[_needle_name(member)].nulls
        unknown = ~is_member & null_set[which]
        if nulls is not None:
            unknown |= nulls[found_at]
        return pl.Series(member.name, is_member).set(pl.Series(unknown), None)
