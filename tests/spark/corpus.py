"""Expressions as people write them, evaluated here and by Spark over the same rows of edge values.

An expression that fails in Spark, which stops the query, is NULL here. Failing rows are found by evaluating each row
alone.
"""

from __future__ import annotations

import gc
import math
import re
import warnings
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from grouping.compiler.compiler import compile_select
from grouping.model.catalog import Catalog, Stream, StreamColumn
from grouping.model.errors import InputError
from grouping.model.expression import Call, Expression, Slot, Value
from grouping.model.sql_type import BOOLEAN, SqlType
from spark_jobs.engine.expressions.expression import compile_expression
from spark_jobs.engine.match.evaluate import match
from spark_jobs.engine.match.residual import evaluate_expression
from spark_jobs.engine.rows.events import arrow_type
from tests.unit.matching.matching import Events, entry, snapshot

__all__ = ["Corpus"]


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


_EDGES: dict[str, tuple[str, list[Any]]] = {
    "i": ("INT", [0, 1, -1, 7, None, 2**31 - 1, -(2**31), 31, 100]),
    "l": ("BIGINT", [0, 2, -3, None, 2**63 - 1, -(2**63), 10**12, 64]),
    "x": ("DOUBLE", [0.0, -0.0, 1.5, -2.5, None, math.nan, math.inf, 1e18, 0.1, 12345.6789]),
    "n": ("DECIMAL(10,2)", [*map(Decimal, ("0", "1.25", "-2.50", "99999999.99", "-7.05")), None]),
    "s": ("STRING", ["abc", "", None, "12", " -7 ", "1.5", "é😀", "2024-02-29", "ABC", "0x1F", "true"]),
    "d": (
        "DATE",
        [date(2024, 2, 29), date(1, 1, 1), date(9999, 12, 31), None, date(1969, 12, 31), date(2023, 1, 31),
         date(2021, 1, 1)],
    ),
    "e": ("DATE", [date(2024, 3, 31), date(2020, 2, 29), date(2024, 2, 29), None, date(2000, 12, 30)]),
    "ts": (
        "TIMESTAMP",
        [_time("2024-02-29T12:34:56.789012"), _time("1969-12-31T23:59:59.999999"), _time("2024-03-31T01:30:00"), None,
         _time("0001-01-01T00:00:00"), _time("9999-12-31T23:59:59.999999"), _time("2024-10-27T00:30:00.000001"),
         _time("1900-01-01T00:00:00"), _time("2038-07-01T12:00:00"), _time("1582-10-15T03:04:05.06")],
    ),
    "us": (
        "TIMESTAMP",
        [_time("2024-02-29T12:30:00"), _time("2024-01-31T23:59:59"), _time("1970-01-01T00:00:00"), None,
         _time("2023-02-28T13:00:00.5"), _time("2024-11-03T06:30:00"), _time("1945-08-14T22:59:59")],
    ),
    "f": ("BOOLEAN", [True, False, None]),
}  # fmt: skip
_ROWS = 40
_DAY_MICROS = 86_400_000_000


class Corpus:
    """The rows, and expressions over them."""

    def __init__(self, spark: SparkSession, edges: dict[str, tuple[str, list[Any]]] | None = None) -> None:
        """Take the columns by name, each with its type and values; without them columns of any type."""
        self._edges = edges or _EDGES
        self._rows = max(_ROWS, *(len(values) for _, values in self._edges.values()))
        self._data = {
            name: [values[(row + shift) % len(values)] for row in range(self._rows)]
            for shift, (name, (_, values)) in enumerate(self._edges.items())
        }
        kinds = {name: kind for name, (kind, _) in self._edges.items()}
        columns = tuple(StreamColumn(*column) for column in kinds.items())
        self._catalog = Catalog([Stream("s_1", "q", columns, "q", "json", {"0": 0}, "2026-11-21T00:00:00Z")])
        self._events = Events({name: (kind, self._data[name]) for name, kind in kinds.items()})
        arrays = {name: pa.array(self._data[name], arrow_type(SqlType.of(kind))) for name, kind in kinds.items()}
        self._frame = spark.createDataFrame(pa.table({"row": pa.array(range(self._rows), pa.int32()), **arrays}))

    def differences(self, texts: Sequence[str]) -> list[str]:
        """Return how expressions differ from Spark's: in type, in values, with constants in place and lifted."""
        wrong: list[str] = []
        ours = {}
        for text in texts:
            try:
                ours[text] = self._ours(text)
            except InputError as error:
                wrong.append(f"{text} is refused: {error.message}: {error.detail}")
        theirs = _evaluated(self._frame, [*ours], range(self._rows))
        for (text, (kind, values)), (spark_kind, expected) in zip(ours.items(), theirs, strict=True):
            if kind != spark_kind:
                wrong.append(f"{text} is {kind}, Spark's {spark_kind}")
            for which, found in (("", values), (" lifted", self._lifted(text, kind))):
                rows = [row for row in range(self._rows) if not _same(found[row], expected[row])]
                if rows:
                    row = rows[0]
                    read = {name: self._data[name][row] for name in self._data if name in text}
                    wrong.append(f"{text}{which} is {found[row]!r}, Spark's {expected[row]!r} for {read}")
        return wrong

    def accepted(self, texts: Sequence[str]) -> list[str]:
        """Return the accepted expressions."""
        found = []
        for text in texts:
            try:
                self._ours(text)
            except InputError:
                continue
            found.append(text)
        return found

    def _ours(self, text: str) -> tuple[str, list[Any]]:
        made = compile_select(f"SELECT {text} AS v FROM q", self._catalog).select.items[0].expression
        sql_type = compile_expression(made, ()).type
        return str(sql_type), evaluate_expression(made, self._events, np.arange(self._rows)).to_pylist()

    def _lifted(self, text: str, kind: str) -> list[Any]:
        """Return the values with the constants where a group has them: in its rows."""
        if kind == str(BOOLEAN):
            return self._matched(text)
        query = compile_select(f"SELECT i FROM q WHERE ({text}) IS NULL", self._catalog)
        (conjunct,) = query.plan.conjuncts
        assert isinstance(conjunct, Call) and conjunct.op == "is_null", conjunct
        values = [
            Value(value if isinstance(value, str | int | float | None) else str(value), str(sql_type))
            for sql_type, value in zip(query.row.types, query.row.values, strict=True)
        ]
        placed = _placed(conjunct.args[0], values)
        return evaluate_expression(placed, self._events, np.arange(self._rows)).to_pylist()  # type: ignore[no-any-return]

    def _matched(self, text: str) -> list[Any]:
        truths: list[bool | None] = [None] * self._rows
        for truth, where in ((True, f"({text})"), (False, f"NOT ({text})")):
            query = compile_select(f"SELECT i FROM q WHERE {where}", self._catalog)
            tables = snapshot(query.plan.conjuncts, [entry(0, query.row.type_texts, query.row.values)])
            for row in match(tables, self._events).event.tolist():
                truths[row] = truth
        return truths


def _placed(expression: Expression, values: Sequence[Value]) -> Expression:
    match expression:
        case Slot(index):
            return values[index]
        case Call(op, args, kind):
            return Call(op, tuple(_placed(argument, values) for argument in args), kind)
    return expression


def _evaluated(frame: DataFrame, texts: Sequence[str], rows: range) -> list[tuple[str, list[Any]]]:
    """Return the type and values that Spark gives each expression; failing rows are found by halving."""
    if not texts:
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # pyspark leaves its sockets to the garbage collector
        try:
            result = frame.where(f"row BETWEEN {rows.start} AND {rows.stop - 1}").selectExpr(
                "row", *[f"{_spark_text(text)} AS c{i}" for i, text in enumerate(texts)]
            )
            kinds = [field.dataType.simpleString().upper() for field in result.schema.fields[1:]]
            table = result.toArrow().sort_by("row")
            return [(kind, _values(table[f"c{i}"])) for i, kind in enumerate(kinds)]
        except PySparkException:
            pass
        finally:
            gc.collect()
    if len(texts) > 1:
        half = len(texts) // 2
        return [*_evaluated(frame, texts[:half], rows), *_evaluated(frame, texts[half:], rows)]
    if len(rows) > 1:
        half = rows.start + len(rows) // 2
        parts = [_evaluated(frame, texts, part)[0] for part in (range(rows.start, half), range(half, rows.stop))]
        return [(next((kind for kind, _ in parts if kind), ""), [*parts[0][1], *parts[1][1]])]
    return [(_type(frame, texts[0]), [None])]


def _spark_text(text: str) -> str:
    """Return the text with quotes in strings as Spark has them."""
    return re.sub(r"(?<=[^\s(,])''(?=[^\s),])|(?<=\s)''(?=\w)|(?<=\w)''(?=\s)", r"\\'", text)


def _values(column: pa.ChunkedArray) -> list[Any]:
    """Return Spark's values, None for a time beyond the years 1 to 9999."""
    if pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
        whole = column.cast(pa.int32() if pa.types.is_date(column.type) else pa.int64())
        first, last = pa.array([date.min, date.max]).cast(pa.int32()).to_pylist()
        if pa.types.is_timestamp(column.type):
            first, last = first * _DAY_MICROS, (last + 1) * _DAY_MICROS - 1
        known = pc.and_(pc.greater_equal(whole, first), pc.less_equal(whole, last))
        column = pc.if_else(known, column, pa.scalar(None, column.type))
    return column.to_pylist()  # type: ignore[no-any-return]


def _type(frame: DataFrame, text: str) -> str:
    """Return the type of a failing expression; empty where Spark refuses it whole."""
    try:
        return str(frame.selectExpr(_spark_text(text)).schema.fields[0].dataType.simpleString().upper())
    except PySparkException:
        return ""


def _same(left: object, right: object) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return left == right or (math.isnan(left) and math.isnan(right))
    return left == right
