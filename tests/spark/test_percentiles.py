"""Percentiles and collected lists in digests are those of Spark, over random groups."""

from __future__ import annotations

import gc
import random
import warnings
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from gateway.testing import Stream, digests

_STREAM = Stream("t (k STRING, i INT, n BIGINT, d DOUBLE, a DECIMAL(12,3), s STRING, at TIMESTAMP)")
_TYPES = pa.schema(
    [
        ("k", pa.string()),
        ("i", pa.int32()),
        ("n", pa.int64()),
        ("d", pa.float64()),
        ("a", pa.decimal128(12, 3)),
        ("s", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
    ]
)
_RANKED = [
    f"{name}({column}, {share})"
    for name, columns in (("percentile", "inda"), ("approx_percentile", "inda"))
    for column in columns
    for share in ("0", "0.1", "0.25", "0.333", "0.9D", "0.99", "1")
]
_OTHERS = (
    "median(i)", "median(n)", "median(d)", "median(a)", "percentile(d, 0.5) FILTER (WHERE i > 0)",
    "approx_percentile(at, 0.5)", "percentile_approx(i, 0.5, 1000)", "collect_list(i)", "array_agg(s)",
    "collect_list(d) FILTER (WHERE s = 'b')", "sort_array(collect_set(s))", "sort_array(collect_set(i))",
    "size(collect_set(a))", "percentile(n, 0.5) - median(i)",
)  # fmt: skip


def _rows() -> list[dict[str, Any]]:
    chance = random.Random(43)

    def maybe(value: Any) -> Any:
        return None if chance.random() < 0.1 else value

    begin = datetime(2026, 1, 1, tzinfo=UTC)
    return [
        {
            "k": chance.choice("abcdefg"),
            "i": maybe(chance.randint(-5, 5)),
            "n": maybe(chance.randint(-(10**15), 10**15)),
            "d": maybe(chance.uniform(-100, 100)),
            "a": maybe(Decimal(chance.randint(-(10**9), 10**9)).scaleb(-3)),
            "s": maybe(chance.choice("abcé")),
            "at": maybe(begin + timedelta(microseconds=chance.randrange(10**12))),
        }
        for _ in range(chance.randint(150, 300))
    ] + [dict.fromkeys(_TYPES.names) | {"k": "nothing"}]


def test_aggregates_of_all_values_are_those_of_spark(spark: SparkSession) -> None:
    """Each group of a digest has Spark's value, to the last bit."""
    rows = _rows()
    items = ", ".join(f"{text} AS c{place}" for place, text in enumerate((*_RANKED, *_OTHERS)))
    table = pa.Table.from_pylist(rows, schema=_TYPES)
    spark.createDataFrame(table).coalesce(1).createOrReplaceTempView("t")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # pyspark leaves the socket of each result open
        expected = spark.sql(f"SELECT k, {items} FROM t GROUP BY k ORDER BY k").toArrow().to_pylist()
        gc.collect()
    [digest] = digests(f"SELECT k, {items} FROM t GROUP BY k EVERY '5 seconds'", _STREAM, rows)
    assert [_plain(row) for row in expected] == [_plain(row) for row in digest["rows"]]


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return {name: _plain(each) for name, each in value.items()}
        case list():
            return [_plain(each) for each in value]
        case Decimal():
            return f"{value:f}"
        case datetime():
            return value.astimezone(UTC).isoformat(timespec="microseconds")
        case str() if value[:2] == "20" and value.endswith("Z"):
            return _plain(datetime.fromisoformat(value))
    return value
