"""Spark's functions that make maps, computed for all rows together: a map is a list of keys and values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from grouping.model.sql_type import SqlType
from spark_jobs.engine.expressions.by_value import each_distinct
from spark_jobs.engine.expressions.nested.lists import Ints, Lists, codes_of, lists_of, made_of, over
from spark_jobs.engine.expressions.types import Operand, polars_type

__all__ = ["MAPS", "OF_MAPS"]

_ENTRY = ["key", "value"]


def _faulty(rows: Ints, keys: pa.Array, count: int) -> NDArray[np.bool_]:
    """Return for each row whether one of its keys is NULL or repeated; Spark refuses to make a map with such keys."""
    codes = codes_of(keys)
    order = np.lexsort((codes, rows))
    again = (np.diff(rows[order]) == 0) & (np.diff(codes[order]) == 0)
    faulty = np.zeros(count, np.bool_)
    faulty[rows[order][1:][again]] = True
    faulty[rows[codes < 0]] = True
    return faulty


def _map_of(lists: Lists, keys: pa.Array, values: pa.Array, null: NDArray[np.bool_], sql_type: SqlType) -> pl.Series:
    """Return maps with a key and a value for each element of `lists`; a row's map is NULL if `null` is true."""
    null = null | _faulty(lists.row, keys, lists.null.size)
    kept = np.flatnonzero(~null[lists.row])
    return made_of(pa.StructArray.from_arrays([keys, values], names=_ENTRY), kept, lists.row[kept], null, sql_type)


def _from_arrays(base: Operand, sql_type: SqlType, other: Operand) -> pl.Expr:
    def compute(left: pl.Series, right: pl.Series) -> pl.Series:
        keys, values = lists_of(left), lists_of(right)
        null = keys.null | values.null | (keys.length != values.length)
        known = [np.flatnonzero(~null[side.row]) for side in (keys, values)]
        paired = Lists(keys.elements.take(pa.array(known[0])), keys.row[known[0]], null)
        return _map_of(paired, paired.elements, values.elements.take(pa.array(known[1])), null, sql_type)

    return over(compute, polars_type(sql_type), base, other)


def _from_entries(base: Operand, sql_type: SqlType) -> pl.Expr:
    def compute(column: pl.Series) -> pl.Series:
        lists = lists_of(column)
        null = lists.null.copy()
        null[lists.row[lists.elements.is_null().to_numpy(zero_copy_only=False)]] = True
        key, value = (pc.struct_field(lists.elements, [place]) for place in range(2))
        return _map_of(lists, key, value, null, sql_type)

    return over(compute, polars_type(sql_type), base)


def _merged(base: Operand, sql_type: SqlType, other: Operand) -> pl.Expr:
    """Return an entry for each key of two maps, with its values in both maps; the first map's keys come first."""

    def compute(left: pl.Series, right: pl.Series) -> pl.Series:
        sides = (lists_of(left), lists_of(right))
        null = sides[0].null | sides[1].null
        places: dict[tuple[int, str], list[int]] = {}
        for side, lists in enumerate(sides):
            keys = lists.elements.field("key").to_pylist()
            for place, key in enumerate(zip(lists.row.tolist(), keys, strict=True)):
                places.setdefault(key, [-1, -1])[side] = place
        found = np.array([row for row, _ in places], np.int64)
        order = np.argsort(found, kind="stable")
        chosen = np.array(list(places.values()), np.int64).reshape(-1, 2)
        values = [
            lists.elements.field("value").take(pa.array(at, mask=at < 0))
            for lists, at in zip(sides, chosen.T, strict=True)
        ]
        names = pa.array([key for _, key in places], pa.large_string())
        entries = pa.StructArray.from_arrays([names, *values], names=["0", "1", "2"])
        order = order[~null[found[order]]]
        return made_of(entries, order, found[order], null, sql_type)

    return over(compute, polars_type(sql_type), base, other)


def _str_to_map(text: Operand, sql_type: SqlType, pairs: Any, within: Any) -> pl.Expr:
    def entries(value: str) -> list[dict[str, str | None]] | None:
        found: dict[str, str | None] = {}
        for pair in value.split(pairs):
            key, sign, rest = pair.partition(within)
            if key in found:
                return None  # Spark refuses a repeated key
            found[key] = rest if sign else None
        return [{"key": key, "value": rest} for key, rest in found.items()]

    return each_distinct([text.expr], entries, polars_type(sql_type))


MAPS: dict[str, Callable[..., pl.Expr]] = {
    "map_entries": lambda base, _: base.expr,
    "map_from_arrays": _from_arrays,
    "map_from_entries": _from_entries,
    "maps merged": _merged,
    "str_to_map": _str_to_map,
}
"""The implementation by operator or function, which takes the first argument, the result's type, and the others."""
OF_MAPS = frozenset(MAPS) - {"str_to_map"}
"""Functions for which a constant argument is an operand; in the other functions a constant is a delimiter."""
