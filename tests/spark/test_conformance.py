"""What an expression means is what Spark SQL says that it means."""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from grouping.expression import Call, Column, Value
from spark_jobs.events import arrow_type
from spark_jobs.residual import evaluate_expression
from tests.spark.spark_text import COLUMNS, Generator, spark_text
from tests.unit.matching import Events

_EDGES: dict[str, list[object]] = {
    "INT": [0, 1, -1, 2, 3, -7, 12, 2**31 - 1, -(2**31)],
    "BIGINT": [0, 1, -1, 5, -3, 2**53 + 1, 2**63 - 1, -(2**63)],
    "DOUBLE": [0.0, -0.0, 1.0, -2.5, 2.5, 0.1, 5e-324, 1e308, float("inf"), float("-inf"), float("nan"), 2.0**63, -1e19],
    "STRING": ["", " ", "a", "aB a", " ab ", "é", "\U0001f600b", "ß", "b%_a", "12", " -7 ", "1.5", "x" * 30, "Σας", "\tq\n", "+5", "99999999999"],
    "DATE": [date(1, 1, 1), date(1582, 10, 15), date(1969, 12, 31), date(2024, 2, 29), date(9999, 12, 31)],
    "BOOLEAN": [True, False],
}  # fmt: skip
_EDGES["TIMESTAMP"] = [
    datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), datetime(2026, 11, 21, 12, 30, 15, 5, tzinfo=UTC),
    datetime(2000, 2, 29, tzinfo=UTC), datetime(1900, 1, 1, tzinfo=UTC) + timedelta(microseconds=1),
]  # fmt: skip
_ROWS = 60


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """A local Spark for batch queries."""
    session = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.pyspark.python", sys.executable)
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
        .getOrCreate()
    )
    yield session
    session.stop()


def _data() -> dict[str, list[object]]:
    rng = random.Random(7)
    return {
        name: [rng.choice([*_EDGES[kind], None]) for _ in range(_ROWS - len(_EDGES[kind]))] + _EDGES[kind]
        for name, kind in COLUMNS.items()
    }


def _same(left: object, right: object) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return left == right or (math.isnan(left) and math.isnan(right))
    return left == right


def _expressions() -> list[object]:
    generator = Generator(20261121)
    made = [
        generator.make(kind, depth) for kind in sorted({*COLUMNS.values()}) for depth in (1, 1, 2, 3) for _ in range(12)
    ]
    likes = ["%", "_", "a%", "%a", "%!%%", "!_", "", "a_", "%é%", "a\nb", ".*", "b!%!_a"]
    made += [Call("like", (Column("s", "STRING"), Value(p, "STRING"), Value("!", "STRING")), "BOOLEAN") for p in likes]
    return list(dict.fromkeys(made))


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"  # pyspark leaves its sockets to the garbage collector
)
def test_expressions_mean_what_spark_says(spark: SparkSession) -> None:
    """Generated expressions over edge values give the same values and NULLs as Spark's ``try_`` forms."""
    data = _data()
    events = Events({name: (kind, data[name]) for name, kind in COLUMNS.items()})
    table = pa.table(
        {"row": pa.array(range(_ROWS), pa.int32()), **{n: pa.array(data[n], arrow_type(k)) for n, k in COLUMNS.items()}}
    )
    frame = spark.createDataFrame(table)
    expressions = _expressions()
    wrong = []
    for start in range(0, len(expressions), 100):
        some = expressions[start : start + 100]
        texts = [f"{spark_text(expression)} AS c{i}" for i, expression in enumerate(some)]
        expected = frame.selectExpr("row", *texts).toArrow().sort_by("row")
        for i, expression in enumerate(some):
            actual = evaluate_expression(expression, events, np.arange(_ROWS)).to_pylist()
            for row, (ours, theirs) in enumerate(zip(actual, expected[f"c{i}"].to_pylist(), strict=True)):
                if not _same(ours, theirs):
                    values = {name: data[name][row] for name in COLUMNS if name in texts[i]}
                    wrong.append((spark_text(expression), ours, theirs, values))
                    break
    assert [] == wrong[:20], f"{len(wrong)} of {len(expressions)} differ"
