"""Spark's functions that make arrays from arrays, computed for all rows together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from grouping.model.sql_type import STRING, SqlType
from spark_jobs.engine.expressions.nested.lists import Ints, Lists, codes_of, identities_of, lists_of, made_of, over
from spark_jobs.engine.expressions.types import Operand, polars_type, widened
from spark_jobs.engine.rows.cpu_budget import checked

__all__ = ["ARRAYS", "OF_ARRAYS"]

Choice = Callable[[Lists, Ints], Ints]
"""Returns the places of the elements that stay, ordered by row, from the arrays and the codes of all elements."""


def _first_of_each(lists: Lists, codes: Ints) -> Ints:
    pairs = lists.row * (codes.max(initial=0) + 2) + codes + 1
    return np.sort(np.unique(pairs, return_index=True)[1])


def _ordered(*, nulls_last: bool, descending: bool = False) -> Choice:
    def choose(lists: Lists, codes: Ints) -> Ints:
        keys = -codes if descending else codes
        return np.lexsort((keys, (codes < 0) == nulls_last, lists.row))

    return choose


def _choosing(choose: Choice, codes: Callable[[pa.Array], Ints] = codes_of) -> Callable[..., pl.Expr]:
    """Return the implementation of a function that keeps the elements that `choose` returns, in the returned order."""

    def implementation(base: Operand, sql_type: SqlType) -> pl.Expr:
        def compute(column: pl.Series) -> pl.Series:
            lists = lists_of(column)
            chosen = choose(lists, codes(lists.elements))
            return made_of(lists.elements, chosen, lists.row[chosen], lists.null, sql_type)

        return over(compute, polars_type(sql_type), base)

    return implementation


def _places(elements: pa.Array) -> Ints:
    """Return each element's place as its code, for functions that do not compare values."""
    return np.arange(len(elements))


def _sort_array(base: Operand, sql_type: SqlType, ascending: Operand | bool) -> pl.Expr:
    choose = _ordered(nulls_last=not ascending, descending=not ascending)
    return _choosing(choose)(base, sql_type)


def _extreme(*, greatest: bool) -> Callable[..., pl.Expr]:
    def implementation(base: Operand, sql_type: SqlType) -> pl.Expr:
        def compute(column: pl.Series) -> pl.Series:
            lists = lists_of(column)
            codes = codes_of(lists.elements)
            known = np.flatnonzero(codes >= 0)
            # If several elements are assigned to a row, NumPy keeps the last one: here the greatest, or the least.
            order = known[np.argsort(codes[known], kind="stable")]
            found = np.full(lists.null.size, -1, np.int64)
            order = order if greatest else order[::-1]
            found[lists.row[order]] = order
            return pl.Series(lists.elements.take(pa.array(found, mask=found < 0))).cast(polars_type(sql_type))

        return over(compute, polars_type(sql_type), base)

    return implementation


def _equal(lists: Lists, wanted: pl.Series) -> NDArray[np.bool_]:
    """Return for each element whether it equals the wanted value of its array's row."""
    elements = pl.Series(lists.elements)
    equal = elements == wanted.gather(lists.row)
    return equal.fill_null(False).to_numpy()


def _position(base: Operand, sql_type: SqlType, value: Operand) -> pl.Expr:
    def compute(column: pl.Series, wanted: pl.Series) -> pl.Series:
        lists = lists_of(column)
        hits = np.flatnonzero(_equal(lists, wanted))[::-1]
        found = np.zeros(lists.null.size, np.int64)
        found[lists.row[hits]] = lists.place[hits] + 1
        return pl.Series(found).set(pl.Series(lists.null) | wanted.is_null(), None)

    return over(compute, polars_type(sql_type), base, value)


def _remove(base: Operand, sql_type: SqlType, value: Operand) -> pl.Expr:
    def compute(column: pl.Series, wanted: pl.Series) -> pl.Series:
        lists = lists_of(column)
        kept = np.flatnonzero(~_equal(lists, wanted))
        return made_of(lists.elements, kept, lists.row[kept], lists.null | wanted.is_null().to_numpy(), sql_type)

    return over(compute, polars_type(sql_type), base, value)


def _together(columns: Sequence[pl.Series]) -> Lists:
    """Return for each row the arrays of all columns as one array; NULL if one of the row's arrays is NULL."""
    parts = [lists_of(column) for column in columns]
    rows = np.concatenate([part.row for part in parts])
    order = np.argsort(rows, kind="stable")
    kinds = parts[0].elements.type
    elements = pa.concat_arrays([part.elements.cast(kinds) for part in parts])
    return Lists(elements.take(pa.array(order)), rows[order], np.logical_or.reduce([part.null for part in parts]))


def _concat(base: Operand, sql_type: SqlType, *others: Operand) -> pl.Expr:
    def compute(*columns: pl.Series) -> pl.Series:
        lists = _together(columns)
        kept = np.flatnonzero(~lists.null[lists.row])
        return made_of(lists.elements, kept, lists.row[kept], lists.null, sql_type)

    return over(compute, polars_type(sql_type), base, *others)


def _union(base: Operand, sql_type: SqlType, other: Operand) -> pl.Expr:
    return _choosing(_first_of_each, identities_of)(Operand(_concat(base, sql_type, other), sql_type), sql_type)


def _among(*, present: bool) -> Callable[..., pl.Expr]:
    """Return the implementation that keeps the first array's distinct elements that the second array has, or lacks."""

    def implementation(base: Operand, sql_type: SqlType, other: Operand) -> pl.Expr:
        def compute(left: pl.Series, right: pl.Series) -> pl.Series:
            one, two = lists_of(left), lists_of(right)
            codes = identities_of(pa.concat_arrays([one.elements, two.elements.cast(one.elements.type)]))
            wide = codes.max(initial=0) + 2
            pairs = np.concatenate((one.row, two.row)) * wide + codes + 1
            first = _first_of_each(one, codes[: one.row.size])
            kept = first[np.isin(pairs[first], pairs[one.row.size :]) == present]
            null = one.null | two.null
            kept = kept[~null[one.row[kept]]]
            return made_of(one.elements, kept, one.row[kept], null, sql_type)

        return over(compute, polars_type(sql_type), base, other)

    return implementation


def _slice(base: Operand, sql_type: SqlType, start: Operand, length: Operand) -> pl.Expr:
    """Return `length` elements from the place `start` on, which counts from 1, or from the end if negative.

    The result is NULL for the place 0 or a negative length.
    """

    def compute(column: pl.Series, first: pl.Series, most: pl.Series) -> pl.Series:
        lists = lists_of(column)
        begin, size = (part.fill_null(0).to_numpy().astype(np.int64) for part in (first, most))
        null = lists.null | first.is_null().to_numpy() | most.is_null().to_numpy() | (begin == 0) | (size < 0)
        begin = np.where(begin > 0, begin - 1, lists.length + begin)
        size = np.where(begin < 0, 0, size)
        place = lists.place - begin[lists.row]
        kept = np.flatnonzero((place >= 0) & (place < size[lists.row]) & ~null[lists.row])
        return made_of(lists.elements, kept, lists.row[kept], null, sql_type)

    return over(compute, polars_type(sql_type), base, start, length)


def _flatten(base: Operand, sql_type: SqlType) -> pl.Expr:
    def compute(column: pl.Series) -> pl.Series:
        outer = lists_of(column)
        inner = lists_of(pl.Series(outer.elements))
        null = outer.null.copy()
        null[outer.row[inner.null]] = True
        row = outer.row[inner.row]
        kept = np.flatnonzero(~null[row])
        return made_of(inner.elements, kept, row[kept], null, sql_type)

    return over(compute, polars_type(sql_type), base)


def _paired(base: Operand, sql_type: SqlType, *others: Operand) -> pl.Expr:
    """Return an array of STRUCTs with the elements at equal places of the arrays, or a map with the pairs."""
    assert sql_type.element is not None, "an array or a map"
    names = ["key", "value"] if sql_type.key else [name for name, _ in sql_type.element.fields]

    def compute(*columns: pl.Series) -> pl.Series:
        all_lists = [lists_of(column) for column in columns]
        null = np.logical_or.reduce([lists.null for lists in all_lists])
        size = np.where(null, 0, np.maximum.reduce([lists.length for lists in all_lists]))
        row = np.repeat(np.arange(size.size), size)
        place = np.arange(row.size) - (np.cumsum(size) - size)[row]
        sides = []
        for lists in all_lists:
            chosen = np.where(place < lists.length[row], lists.begin[row] + place, -1)
            sides.append(lists.elements.take(pa.array(chosen, mask=chosen < 0)))
        pairs = pa.StructArray.from_arrays(sides, names=names)
        return made_of(pairs, np.arange(row.size), row, null, sql_type)

    return over(compute, polars_type(sql_type), base, *others)


def _repeated(base: Operand, sql_type: SqlType, times: int) -> pl.Expr:
    def compute(column: pl.Series) -> pl.Series:
        row = np.repeat(np.arange(len(column)), max(times, 0))
        return made_of(column.to_arrow(), row, row, np.zeros(len(column), np.bool_), sql_type)

    return over(compute, polars_type(sql_type), base)


def _numbered(base: Operand, sql_type: SqlType) -> pl.Expr:
    def compute(column: pl.Series) -> pl.Series:
        lists = lists_of(column)
        sides = [lists.elements, pa.array(lists.place.astype(np.int32))]
        return made_of(
            pa.StructArray.from_arrays(sides, names=["0", "1"]),
            np.arange(lists.row.size),
            lists.row,
            lists.null,
            sql_type,
        )

    return over(compute, polars_type(sql_type), base)


def _insert(base: Operand, sql_type: SqlType, place: Operand, value: Operand) -> pl.Expr:
    """Insert a value at the place `place`, which counts from 1, or from the end if negative.

    If the place is outside of the array, NULLs fill the places between the array and the value.
    """

    def compute(column: pl.Series, at: pl.Series, values: pl.Series) -> pl.Series:
        lists = lists_of(column)
        elements = pa.concat_arrays([lists.elements, values.to_arrow().cast(lists.elements.type)])
        chosen: list[int] = []
        row: list[int] = []
        for number in checked(np.flatnonzero(~lists.null).tolist()):
            begin = int(lists.begin[number])
            places = list(range(begin, begin + int(lists.length[number])))
            made = _with_inserted(places, at[number], len(lists.elements) + number)
            chosen += made
            row += [number] * len(made)
        return made_of(elements, np.array(chosen, np.int64), np.array(row, np.int64), lists.null, sql_type)

    return over(compute, polars_type(sql_type), base, place, value)


def _with_inserted(places: list[int], at: int, new: int) -> list[int]:
    if at > 0:
        places += [-1] * (at - 1 - len(places))
        return [*places[: at - 1], new, *places[at - 1 :]]
    before = len(places) + at + 1  # -1 is after the last element
    if before < 0:
        return [new, *[-1] * -before, *places]
    return [*places[:before], new, *places[before:]]


def _join(base: Operand, _: SqlType, between: Operand, *instead: Operand) -> pl.Expr:
    def compute(column: pl.Series, signs: pl.Series, *others: pl.Series) -> pl.Series:
        nulls = others[0].to_list() if others else [None] * len(column)
        rows = zip(column.to_list(), signs.to_list(), nulls, strict=True)
        return pl.Series(
            [_joined(texts, sign, null, known=not others or null is not None) for texts, sign, null in checked(rows)],
            dtype=pl.String,
        )

    return over(compute, polars_type(STRING), base, between, *instead)


def _joined(texts: list[str | None] | None, sign: str | None, instead: str | None, *, known: bool) -> str | None:
    if texts is None or sign is None or not known:
        return None
    kept = [instead if text is None else text for text in texts]
    return sign.join([text for text in kept if text is not None])


def _without_null(base: Operand, sql_type: SqlType) -> pl.Expr:
    """Return the arrays, with an empty array in place of NULL."""
    return pl.coalesce(base.expr, pl.lit([], dtype=polars_type(sql_type)))


def _array(first: Operand, sql_type: SqlType, *others: Operand) -> pl.Expr:
    """Return for each row an array of the operands' values; Polars' own function would concatenate arrays."""
    assert sql_type.element is not None, "an array"
    typed = [Operand(widened(part, sql_type.element), sql_type.element) for part in (first, *others)]

    def compute(*columns: pl.Series) -> pl.Series:
        size, count = len(columns[0]), len(columns)
        chosen = np.arange(size * count).reshape(count, size).T.ravel()  # the first of each column, then the second, …
        null = np.zeros(size, np.bool_)
        return made_of(pl.concat(columns).to_arrow(), chosen, np.repeat(np.arange(size), count), null, sql_type)

    return over(compute, polars_type(sql_type), *typed)


def _named_struct(_: Operand, sql_type: SqlType, *others: Operand) -> pl.Expr:
    """Return a STRUCT. Names and values alternate among the operands; the names are read from the type."""
    values = zip(sql_type.fields, others[::2], strict=True)
    return pl.struct([value.expr.alias(name) for (name, _), value in values])


ARRAYS: dict[str, Callable[..., pl.Expr]] = {
    "array": _array,
    "array_compact": _choosing(
        lambda lists, _: np.flatnonzero(lists.elements.is_valid().to_numpy(zero_copy_only=False)), _places
    ),
    "array_distinct": _choosing(_first_of_each, identities_of),
    "array_except": _among(present=False),
    "array_insert": _insert,
    "array_intersect": _among(present=True),
    "array_join": _join,
    "array_max": _extreme(greatest=True),
    "array_min": _extreme(greatest=False),
    "array_position": _position,
    "array_remove": _remove,
    "array_repeat": _repeated,
    "array_sort": _choosing(_ordered(nulls_last=True)),
    "array_union": _union,
    "array numbered": _numbered,
    "arrays paired": _paired,
    "concat arrays": _concat,
    "array or none": _without_null,
    "flatten": _flatten,
    "named_struct": _named_struct,
    "reverse array": _choosing(lambda lists, _: np.lexsort((-lists.place, lists.row)), _places),
    "slice": _slice,
    "sort_array": _sort_array,
}
"""The implementation by operator or function, which takes the first argument, the result's type, and the others."""
OF_ARRAYS = frozenset(ARRAYS) - {"array_repeat", "sort_array"}
"""Functions for which a constant argument is an operand, as any expression is.

The other functions take a constant as a Python value: a count or an order.
"""
