"""Values of a SELECT list before and after an update: which of them are equal."""

from __future__ import annotations

from itertools import product
from math import isnan

import pyarrow as pa
import pytest

from grouping.model.sql_type import SqlType
from spark_jobs.engine.results.updates import same_values

_NAN, _INF = float("nan"), float("inf")
_NUMBERS = (None, 0.0, -0.0, 1.0, _NAN, _INF, -_INF)
_EQUAL = {(0.0, 0.0), (1.0, 1.0), (_INF, _INF), (-_INF, -_INF)}


def _are_equal(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return (one, other) in _EQUAL or (isnan(one) and isnan(other))


@pytest.mark.parametrize("text", ["DOUBLE", "ARRAY<DOUBLE>", "STRUCT<v: DOUBLE, w: INT>", "MAP<STRING,ARRAY<DOUBLE>>"])
def test_numbers_are_equal_at_any_depth(text: str) -> None:
    """NaN is NaN, 0.0 is -0.0, and neither NaN nor an infinity is NULL, however deep a number is nested."""
    wrapped = {
        "DOUBLE": lambda value: value,
        "ARRAY<DOUBLE>": lambda value: [1.0, value],
        "STRUCT<v: DOUBLE, w: INT>": lambda value: {"v": value, "w": 2},
        "MAP<STRING,ARRAY<DOUBLE>>": lambda value: [{"key": "k", "value": [value]}],
    }[text]
    types = {
        "DOUBLE": pa.float64(),
        "ARRAY<DOUBLE>": pa.list_(pa.float64()),
        "STRUCT<v: DOUBLE, w: INT>": pa.struct([("v", pa.float64()), ("w", pa.int32())]),
        "MAP<STRING,ARRAY<DOUBLE>>": pa.list_(pa.struct([("key", pa.string()), ("value", pa.list_(pa.float64()))])),
    }
    pairs = list(product(_NUMBERS, repeat=2))
    sides = [pa.array([wrapped(pair[side]) for pair in pairs], types[text]) for side in (0, 1)]
    found = same_values(*sides, SqlType.of(text)).tolist()
    assert [_are_equal(*pair) for pair in pairs] == found
