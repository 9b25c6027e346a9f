"""Expressions mean the same as in Spark, from the text of a query to its matching rows."""

from __future__ import annotations

import gc
import math
import re
import warnings
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import ArithmeticException
from pyspark.sql import DataFrame, SparkSession

from grouping.compiler.compiler import compile_select
from grouping.model.catalog import Catalog, Stream, StreamColumn
from grouping.model.errors import InputError
from grouping.model.expression import Call, Expression
from grouping.model.sql_type import SqlType
from spark_jobs.engine.expressions.expression import compile_expression
from spark_jobs.engine.match.evaluate import match
from spark_jobs.engine.match.residual import evaluate_expression
from spark_jobs.engine.rows.events import arrow_type
from tests.spark.dialects import our_text, spark_text
from tests.spark.expressions import COLUMNS, GRAMMAR, ROWS, Generator, data
from tests.unit.matching.matching import Events, entry, snapshot

_COMPARISONS = frozenset(("=", "<>", "<", "<=", ">", ">=", "<=>"))
_REFUSED = re.compile("No DECIMAL holds both sides|have no common DECIMAL")
"""Why a generated expression may be refused."""
_BATCH = 200
_ALL = np.arange(ROWS)
_STREAM = Stream(
    "s_1",
    "q",
    tuple(StreamColumn(*column) for column in COLUMNS.items()),
    "q",
    "json",
    {"0": 0},
    "2026-11-21T00:00:00Z",
)
_CATALOG = Catalog([_STREAM])
_DATA = data()
_EVENTS = Events({name: (kind, _DATA[name]) for name, kind in COLUMNS.items()})


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    """The events as a Spark table."""
    columns = {name: pa.array(_DATA[name], arrow_type(SqlType.of(kind))) for name, kind in COLUMNS.items()}
    return spark.createDataFrame(pa.table({"row": pa.array(range(ROWS), pa.int32()), **columns}))


def _spark(frame: DataFrame, expressions: Sequence[Expression]) -> list[tuple[str, list[object]] | None]:
    """Return type and values that Spark gives each expression; None where Spark fails on a row.

    Only negations of DECIMALs fail, for which Spark has no form that gives NULL.
    """
    found: list[tuple[str, list[object]] | None] = []
    for start in range(0, len(expressions), _BATCH):
        some = expressions[start : start + _BATCH]
        try:
            found += _collected(frame, some)
        except ArithmeticException:
            for one in some:
                try:
                    found += _collected(frame, [one])
                except ArithmeticException as error:
                    assert "cannot be represented as Decimal(38" in str(error)
                    found.append(None)
    return found


def _collected(frame: DataFrame, expressions: Sequence[Expression]) -> list[tuple[str, list[object]]]:
    result = frame.selectExpr("row", *(f"{spark_text(one)} AS c{i}" for i, one in enumerate(expressions)))
    kinds = [field.dataType.simpleString().upper() for field in result.schema.fields[1:]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # pyspark leaves its sockets to the garbage collector
        table = result.toArrow().sort_by("row")
        gc.collect()
    return [(kind, table[f"c{i}"].to_pylist()) for i, kind in enumerate(kinds)]


def _same(left: object, right: object) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return left == right or (math.isnan(left) and math.isnan(right))
    return left == right


def _selected(expression: Expression) -> tuple[str, list[object]]:
    """Return type and values of the expression in a SELECT list."""
    compiled = compile_select(f"SELECT {our_text(expression)} AS v FROM q", _CATALOG).select.items[0].expression
    return str(compile_expression(compiled, ()).type), evaluate_expression(compiled, _EVENTS, _ALL).to_pylist()


def _matched(expression: Expression) -> list[int]:
    """Return the rows that a query with that WHERE matches."""
    query = compile_select(f"SELECT i FROM q WHERE {our_text(expression)}", _CATALOG)
    tables = snapshot(query.plan.conjuncts, [entry(0, query.row.type_texts, query.row.values)])
    return sorted(match(tables, _EVENTS).event.tolist())


def _accepted(expressions: Sequence[Expression], wrong: list[str]) -> dict[Expression, tuple[str, list[object]]]:
    """Return our type and values of each accepted expression; note wrongly refused ones."""
    ours = {}
    for expression in expressions:
        try:
            ours[expression] = _selected(expression)
        except InputError as error:
            if not _REFUSED.search(str(error.detail)):
                wrong.append(f"{our_text(expression)} is refused: {error.message}: {error.detail}")
    return ours


def _differences(frame: DataFrame, expressions: Sequence[Expression]) -> list[str]:
    wrong: list[str] = []
    ours = _accepted(expressions, wrong)
    for (expression, (our_kind, actual)), answer in zip(ours.items(), _spark(frame, [*ours]), strict=True):
        if answer is None:
            continue
        kind, expected = answer
        text = our_text(expression)
        if our_kind != kind:
            wrong.append(f"{text} is {our_kind}, Spark's {kind}")
            continue
        for row, (one, other) in enumerate(zip(actual, expected, strict=True)):
            if not _same(one, other):
                values = {name: _DATA[name][row] for name in COLUMNS if name in text}
                wrong.append(f"{text} is {one!r}, Spark's {other!r} for {values}")
                break
        if kind == "BOOLEAN":
            for truth, where in ((True, expression), (False, Call("not", (expression,), "BOOLEAN"))):
                rows = [row for row, value in enumerate(expected) if value is truth]
                if rows != (found := _matched(where)):
                    wrong.append(f"WHERE {our_text(where)} matches {found}, Spark's {rows}")
    return wrong


def _report(wrong: list[str], expressions: Sequence[Expression]) -> str:
    return f"{len(wrong)} of {len(expressions)} differ:\n" + "\n".join(wrong[:40])


def test_each_function_means_what_spark_says(frame: DataFrame) -> None:
    """Every operator and function, over columns and constants: type, values and NULLs are Spark's."""
    generator = Generator(1)
    made = [
        Call(op, tuple(generator.make(argument, 0) for argument in args), "BOOLEAN" if kind == "FLAG" else kind)
        for kind, rules in GRAMMAR.items()
        for op, args in dict.fromkeys(rules)
        for _ in range(1 if op in _COMPARISONS else 2)
    ]
    expressions = list(dict.fromkeys(made))
    wrong = _differences(frame, expressions)
    assert not wrong, _report(wrong, expressions)


@pytest.mark.parametrize("seed", range(3))
def test_generated_expressions_mean_what_spark_says(frame: DataFrame, seed: int) -> None:
    """Expressions nested at random, of every type, and predicates as WHERE and as NOT of it."""
    generator = Generator(20261121 + seed)
    kinds = ["BIGINT", "BOOLEAN", "BOOLEAN", "BOOLEAN", "DATE", "DECIMAL", "DOUBLE", "INT", "STRING", "TIMESTAMP"]
    expressions = list(
        dict.fromkeys(generator.make(kind, depth) for kind in kinds for depth in (2, 3) for _ in range(8))
    )
    wrong = _differences(frame, expressions)
    assert not wrong, _report(wrong, expressions)
