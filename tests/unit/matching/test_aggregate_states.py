"""States of aggregates: whatever the matches are cut into they merge to the same values, and these are Spark's."""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grouping.compiler.compiler import compile_select
from grouping.model.catalog import Catalog, Stream, StreamColumn
from grouping.model.expression import Column
from grouping.model.sql_type import SqlType
from spark_jobs.engine.expressions.types import polars_type
from spark_jobs.engine.operators.aggregate.partials import Partials

_COLUMNS = {
    "f": "BOOLEAN",
    "i": "INT",
    "n": "BIGINT",
    "d": "DOUBLE",
    "a": "DECIMAL(38,2)",
    "b": "DECIMAL(10,2)",
    "s": "STRING",
}
_STREAM = Stream(
    "s_1", "t", tuple(StreamColumn(name, kind) for name, kind in _COLUMNS.items()), "t", "json", {"0": 0}, ""
)
_ALL = (
    "count(*)", "count(n, d)", "count(DISTINCT s)", "count(DISTINCT d, f)", "approx_count_distinct(a)", "sum(n)",
    "sum(i)", "sum(d)", "sum(a)", "sum(b)", "avg(n)", "avg(d)", "avg(b)", "min(d)", "max(d)", "min(s)", "max(b)",
    "max(f)", "min_by(s, n)", "max_by(n, d)", "first(s)", "last(s)", "first(n, TRUE)", "stddev(d)", "stddev_pop(i)",
    "variance(n)", "var_pop(b)", "percentile(n, 0.3)", "percentile(d, 0.95)", "median(b)", "collect_list(s)",
    "approx_percentile(i, 0.7, 100)", "percentile_approx(a, 1)", "collect_list(d)", "collect_set(i)", "array_agg(n)",
    "bool_and(f)", "bool_or(f)", "sum(n) FILTER (WHERE f)", "max(s) FILTER (WHERE i > 2)",
)  # fmt: skip

Row = dict[str, Any]


@lru_cache
def _partials(*aggregates: str) -> tuple[Partials, Any]:
    named = ", ".join(f"{text} AS c{number}" for number, text in enumerate(aggregates))
    aggregation = compile_select(f"SELECT {named} FROM t", Catalog([_STREAM])).select.aggregation
    assert aggregation is not None
    return Partials(aggregation), aggregation


def _counted(partials: Partials, aggregation: Any, rows: list[Row], first: int = 0) -> pl.DataFrame:
    """Return the partial aggregate of some rows; a condition is one of two, which Python decides here."""
    columns = {
        name: pl.Series([row.get(name) for row in rows], dtype=polars_type(SqlType.of(_COLUMNS[name])), strict=False)
        for name in _COLUMNS
    }
    args = []
    for aggregate in aggregation.aggregates:
        wanted = None
        if aggregate.condition is not None:
            wanted = np.array([_holds(aggregate.stored, row) for row in rows], np.bool_)
        args.append(([columns[each.stored] for each in aggregate.args if isinstance(each, Column)], wanted))
    offsets = np.arange(first, first + len(rows))
    lifted = partials.lifted({"store": pl.Series(np.zeros(len(rows), np.int32))}, [], args, offsets)
    return partials.counted(lifted, ["store"])


def _holds(name: str, row: Row) -> bool:
    if "IS NULL" in name:
        return row.get("n") is not None
    return bool(row.get("f")) if "f = TRUE" in name else (row.get("i") or 0) > 2


def _values(*aggregates: str, rows: list[Row], cuts: tuple[int, ...] = ()) -> list[Any]:
    partials, aggregation = _partials(*aggregates)
    bounds = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    parts = [
        _counted(partials, aggregation, rows[begin:end], begin)
        for begin, end in zip(bounds, bounds[1:], strict=False)
        if begin < end
    ]
    found = partials.values(partials.merged(pl.concat(parts), []))
    order = list(dict.fromkeys(aggregate.column.reference for aggregate in aggregation.aggregates))
    return [found[name].to_list()[0] for name in order]


_ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "f": st.none() | st.booleans(),
            "i": st.none() | st.integers(-4, 4),
            "n": st.none() | st.integers(-(10**6), 10**6),
            "d": st.none() | st.floats(-10, 10) | st.just(float("nan")) | st.just(-0.0),
            "a": st.none() | st.decimals(-(10**35), 10**35, places=2),
            "b": st.none() | st.decimals(-99, 99, places=2),
            "s": st.none() | st.sampled_from(["", "a", "é", "𝄞", "b"]),
        }
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=40)
@given(_ROWS, st.tuples(st.integers(0, 12), st.integers(0, 12), st.integers(0, 12)))
def test_any_cutting_gives_the_same(rows: list[Row], cuts: tuple[int, ...]) -> None:
    """Parts of the matches merge to the state of all of them together, sums of DOUBLE within rounding."""
    whole, cut = _values(*_ALL, rows=rows), _values(*_ALL, rows=rows, cuts=cuts)
    for name, one, other in zip(_ALL, whole, cut, strict=True):
        if isinstance(one, float):
            assert other == pytest.approx(one, rel=1e-9, abs=1e-9, nan_ok=True), name
        else:
            assert repr(one) == repr(other) if isinstance(one, list) else one == other, name


def test_sums_that_overflow_are_null() -> None:
    """A sum is NULL when the whole of it does not fit its type, and exact when only a part of it does not."""
    most = 2**63 - 1
    rows = [{"n": most, "a": Decimal("9" * 36)}, {"n": 1, "a": Decimal(1)}, {"n": -1, "a": Decimal(-1)}]
    assert _values("sum(n)", "sum(a)", rows=rows) == [most, Decimal("9" * 36)]
    assert _values("sum(n)", "sum(a)", rows=rows[:2]) == [None, None]
    assert _values("sum(n)", rows=[{"n": -most}, {"n": -1}]) == [-most - 1]


def test_means_of_decimals_are_rounded_as_spark_does() -> None:
    """The mean of DECIMAL(p,s) is DECIMAL(p+4,s+4), rounded half up; that of an overflow is NULL."""
    rows = [{"b": Decimal("0.01")}, {"b": Decimal("0.02")}, {"b": Decimal("0.02")}]
    assert _values("avg(b)", rows=rows) == [Decimal("0.016667")]
    assert _values("avg(a)", rows=[{"a": Decimal("9" * 36)}, {"a": Decimal("9" * 36)}]) == [None]


def test_nothing_to_count() -> None:
    """Without a value all are NULL but counts; one value has no deviation among samples."""
    names = ("count(n)", "sum(n)", "avg(d)", "min(s)", "stddev(d)", "bool_or(f)", "count(DISTINCT s)", "max_by(s, n)")
    assert _values(*names, rows=[{}]) == [0, None, None, None, None, None, 0, None]
    assert _values("stddev(d)", "var_pop(d)", rows=[{"d": 3.0}]) == [None, 0.0]
    lists = ("median(n)", "percentile(d, 0)", "collect_list(s)", "collect_set(n)")
    found = _values(*lists, rows=[{}, {}], cuts=(1,))
    assert [None, None, [], []] == found


def test_equal_values_do_not_deviate() -> None:
    """Without rounding: as Spark has it, equal values have deviation and variance 0, however they are cut."""
    for value in (0.1, 1e-300, -7.3, 1e300):
        rows = [{"d": value}] * 7
        found = _values("stddev_pop(d)", "stddev(d)", "var_pop(d)", rows=rows, cuts=(2, 3))
        assert [0.0, 0.0, 0.0] == found
    assert _values("var_pop(d)", rows=[{"d": 1e9}, {"d": 1e9 + 2}], cuts=(1,)) == [1.0]


def test_nan_is_the_greatest() -> None:
    """NaN is greater than all numbers; the two zeros are one value."""
    rows = [{"d": float("nan")}, {"d": 1.0}, {"d": 0.0}, {"d": -0.0}]
    greatest, least, distinct = _values("max(d)", "min(d)", "count(DISTINCT d)", rows=rows)
    assert np.isnan(greatest)
    assert (least, distinct) == (0.0, 3)
    assert _values("min(d)", rows=[{"d": float("nan")}])[0] != 0.0


def test_percentiles_stand_between_two_values() -> None:
    """A percentile is in proportion between the values around its position, an approximate one the next value."""
    rows = [{"n": value} for value in (40, 10, 30, 20)]
    names = ("percentile(n, 0)", "percentile(n, 0.5)", "percentile(n, 0.9)", "median(n)", "approx_percentile(n, 0.5)")
    assert _values(*names, rows=rows, cuts=(1, 3)) == [10.0, 25.0, 37.0, 25.0, 20]
    wide = [{"n": 2**62 + 1}, {"n": 2**62 + 1}, {"n": None}]
    assert _values("median(n)", "approx_percentile(n, 1)", rows=wide) == [float(2**62), 2**62 + 1]


def test_a_list_is_in_the_order_of_arrival() -> None:
    """However parts are merged: values come by offset, those of one event in their order; NULLs are left out."""
    partials, aggregation = _partials("collect_list(n)", "collect_set(n)")
    parts = [
        _counted(partials, aggregation, [{"n": 3}, {"n": None}, {"n": 1}], 7),
        _counted(partials, aggregation, [{"n": 3}], 2),
    ]
    found = partials.values(partials.merged(pl.concat(parts), []))
    lists = [each[0].to_list() for each in found.values()]
    assert lists[0] == [3, 3, 1]
    assert sorted(lists[1]) == [1, 3]


def test_percentiles_of_one_column_share_their_values() -> None:
    """Each value is kept once, whatever the number of percentiles."""
    partials, aggregation = _partials("percentile(n, 0.5)", "percentile(n, 0.99)", "median(n)", "median(i)")
    counted = _counted(partials, aggregation, [{"n": 1, "i": 2}])
    assert [name for name, kind in counted.schema.items() if kind.is_nested()] == ["a0.v", "a3.v"]
