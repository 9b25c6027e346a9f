"""Spark's access to fields, elements and keys over typed Polars expressions; a map is a list of keys and values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isnan
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from grouping.model.sql_type import INT, STRING, SqlType, array_of
from grouping.values.json_path import parse_json_path
from grouping.values.number_format import read_number_format
from spark_jobs.engine.expressions.by_value import each_distinct, of_one_length
from spark_jobs.engine.expressions.nested.arrays import ARRAYS, OF_ARRAYS
from spark_jobs.engine.expressions.nested.from_json import from_json
from spark_jobs.engine.expressions.nested.json_object import json_object
from spark_jobs.engine.expressions.nested.maps import MAPS, OF_MAPS
from spark_jobs.engine.expressions.nested.variants import VARIANTS
from spark_jobs.engine.expressions.numbers.written import to_char
from spark_jobs.engine.expressions.texts.regex import split_texts
from spark_jobs.engine.expressions.types import Operand, polars_type
from spark_jobs.engine.rows.event_column import rows_of_elements

__all__ = ["NESTED", "OF_OPERANDS"]

Argument = Operand | str | int
"""A constant name of a field or place of an element is passed as a Python value; other arguments are operands."""


def _field(base: Operand, sql_type: SqlType, name: Argument) -> pl.Expr:
    if base.type.name == "ARRAY":
        return base.expr.list.eval(pl.element().struct.field(str(name)))
    return base.expr.struct.field(str(name))


def _element(base: Operand, sql_type: SqlType, place: Argument) -> pl.Expr:
    if base.type.name == "MAP":
        key = place.expr if isinstance(place, Operand) else pl.lit(place, pl.String)
        return pl.map_batches([base.expr, key], _of_keys, return_dtype=polars_type(sql_type))
    at = _whole(place)
    return pl.when(at >= 0).then(base.expr.list.get(at, null_on_oob=True))


def _element_at(base: Operand, sql_type: SqlType, place: Argument) -> pl.Expr:
    at = _whole(place)
    counted = pl.when(at > 0).then(at - 1).when(at < 0).then(at)
    return base.expr.list.get(counted, null_on_oob=True)


def _whole(place: Argument) -> pl.Expr:
    return place.expr.cast(pl.Int64) if isinstance(place, Operand) else pl.lit(place, pl.Int64)


def _of_keys(columns: Sequence[pl.Series]) -> pl.Series:
    """Return the value that each map has for a key; the first value if the map has the key several times.

    The columns are the maps and the keys. The column of keys has a single row if the key is the same for all maps.
    """
    maps, wanted = columns
    if len(maps) == 1:
        maps = maps.new_from_index(0, len(wanted))
    lists = maps.to_arrow()
    entries = lists.flatten()
    of = rows_of_elements(lists)
    keys, values = pl.Series(entries.field("key")), entries.field("value")
    equal = keys == (wanted if len(wanted) == 1 else wanted.gather(of))
    hits = np.flatnonzero(equal.fill_null(False).to_numpy())[::-1]
    place = np.full(len(lists), -1, np.int64)
    place[of[hits]] = hits
    return pl.Series(values.take(pa.array(place, mask=place < 0)), dtype=maps.dtype.inner.fields[1].dtype)  # type: ignore[attr-defined]


def _array_contains(base: Operand, _: SqlType, value: Argument) -> pl.Expr:
    """Return whether an element of each array equals the value of its row.

    If no element is equal, the result is NULL if an element, the array or the value is NULL, else FALSE.
    """
    assert isinstance(value, Operand), "it is of the elements' type"

    def apply(columns: Sequence[pl.Series]) -> pl.Series:
        arrays, wanted = of_one_length(columns)
        lists = arrays.to_arrow()
        elements = pl.Series(lists.flatten())
        of = rows_of_elements(lists)
        equal = (elements == wanted.gather(of)).fill_null(False).to_numpy()
        found, unknown = np.zeros(len(arrays), np.bool_), np.zeros(len(arrays), np.bool_)
        found[of[equal]] = True
        unknown[of[elements.is_null().to_numpy()]] = True
        unknown |= arrays.is_null().to_numpy() | wanted.is_null().to_numpy()
        return pl.Series(found).set(pl.Series(unknown & ~found), None)

    return pl.map_batches([base.expr, value.expr], apply, return_dtype=pl.Boolean)


def _arrays_overlap(base: Operand, _: SqlType, other: Argument) -> pl.Expr:
    assert isinstance(other, Operand), "it is an array"

    def apply(columns: Sequence[pl.Series]) -> pl.Series:
        pairs = zip(columns[0].to_list(), columns[1].to_list(), strict=True)
        return pl.Series([_overlap(one, two) for one, two in pairs], dtype=pl.Boolean)

    return pl.map_batches([base.expr, other.expr], apply, return_dtype=pl.Boolean)


def _overlap(one: list[Any] | None, other: list[Any] | None) -> bool | None:
    """Tell whether two arrays share a value; NaN equals NaN, 0.0 and -0.0 differ, and NULL may be any value."""
    if one is None or other is None:
        return None
    left, right = ({_comparable(value) for value in values} for values in (one, other))
    if (left & right) - {None}:
        return True
    return None if one and other and None in left | right else False


def _comparable(value: Any) -> Any:
    return repr(value) if isinstance(value, float) and (isnan(value) or not value) else value


def _keys(base: Operand, _: SqlType) -> pl.Expr:
    return base.expr.list.eval(pl.element().struct.field("key"))


def _values(base: Operand, _: SqlType) -> pl.Expr:
    return base.expr.list.eval(pl.element().struct.field("value"))


def _split(text: Operand, _: SqlType, delimiter: Argument) -> pl.Expr:
    def parts(value: str) -> list[str]:
        return value.split(str(delimiter)) if delimiter else list(value) or [""]

    return each_distinct([text.expr], parts, polars_type(array_of(STRING)))


def _split_by_pattern(text: Operand, sql_type: SqlType, pattern: Argument, limit: Argument) -> pl.Expr:
    return text.expr.map_batches(
        lambda texts: split_texts(texts, str(pattern), int(str(limit))), return_dtype=polars_type(sql_type)
    )


def _to_number(text: Operand, sql_type: SqlType, form: Argument) -> pl.Expr:
    return each_distinct([text.expr], read_number_format(str(form)).read, polars_type(sql_type))


def _get_json_object(text: Operand, _: SqlType, path: Argument) -> pl.Expr:
    steps = parse_json_path(str(path))
    return each_distinct([text.expr], lambda value: json_object(value, steps), pl.String)


NESTED: dict[str, Callable[..., pl.Expr]] = {
    "field": _field,
    "element": _element,
    "element_at": _element_at,
    "array_contains": _array_contains,
    "arrays_overlap": _arrays_overlap,
    "size": lambda base, _: base.expr.list.len().cast(polars_type(INT)),
    "map_keys": _keys,
    "map_values": _values,
    "split": _split,
    "split by pattern": _split_by_pattern,
    "from_json": lambda text, kind, _: from_json(text, kind),
    "get_json_object": _get_json_object,
    "to_char": to_char,
    "to_number": _to_number,
    **ARRAYS,
    **MAPS,
    **VARIANTS,
}
"""The implementation by operator or function, which takes the first argument, the result's type, and the others."""
OF_OPERANDS = OF_ARRAYS | OF_MAPS | {"array_contains", "arrays_overlap"}
"""Functions for which a constant argument is an operand.

The other functions take a constant as a Python value: a name, a place, a delimiter or a path.
"""
