"""Thousands of calls of functions and operators over the corners of their types mean the same as in Spark.

``tests/spark/record_functions.py`` has recorded Spark's results in ``tests/cases/functions/expected.jsonl``, and
``tests/spark/test_function_corpus.py`` asks Spark again for a sample.
"""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grouping.compiler.compiler import compile_select
from grouping.model.catalog import Catalog, Stream, StreamColumn
from grouping.model.errors import InputError
from grouping.model.expression import Call, Expression, Slot, Value
from spark_jobs.engine.expressions.expression import compile_expression
from spark_jobs.engine.match.evaluate import match
from spark_jobs.engine.match.residual import evaluate_expression
from tests.unit.matching.matching import Events, entry, snapshot

_EXPECTED = Path(__file__).parents[2] / "cases" / "functions" / "expected.jsonl"
_CATALOG = Catalog(
    [Stream("s_1", "q", (StreamColumn("i", "INT"),), "q", "json", {"0": 0}, "2026-11-21T00:00:00Z")],
)
_EVENTS = Events({"i": ("INT", [1])})
_ROW = np.arange(1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PARTS = 4
_YEARS = "Spark's dates go on; a date beyond the year 9999 is NULL here"
_KNOWN = {
    """to_json(from_json('{"b": -0, "c": "1.5", "a": "20260105"}', 'a DATE, b TIMESTAMP, c STRING'))""": _YEARS,
    "map_keys(map_filter(map('a', 1), (k, v) -> k > v))": "'a' is no number, and failure is NULL within a lambda too",
}
"""The only differences, with their reasons: whoever mends one takes it out."""


def _shown(value: object) -> object:
    """Return a value as JSON holds it: numbers other than whole ones as text, times as counts since 1970."""
    match value:
        case bool() | None:
            return value
        case float():
            return "nan" if math.isnan(value) else repr(value + 0.0)
        case Decimal():
            return format(value, "f")
        case bytes():
            return value.hex()
        case datetime():
            return (value - _EPOCH) // timedelta(microseconds=1)
        case date():
            return value.toordinal() - _EPOCH.toordinal()
        case list():
            return [_shown(each) for each in value]
    return value


def _placed(expression: Expression, values: list[Value]) -> Expression:
    match expression:
        case Slot(index):
            return values[index]
        case Call(op, args, kind):
            return Call(op, tuple(_placed(argument, values) for argument in args), kind)
    return expression


def _selected(text: str) -> Expression:
    """Return an expression with its constants in place."""
    made = compile_select(f"SELECT {text} AS v FROM q", _CATALOG).select.items[0].expression
    assert made is not None
    return made


def _value(made: Expression) -> object:
    return _shown(evaluate_expression(made, _EVENTS, _ROW).to_pylist()[0])


def _lifted(text: str) -> Expression:
    """Return the expression with the constants that a group's row has of it."""
    query = compile_select(f"SELECT i FROM q WHERE ({text}) IS NULL", _CATALOG)
    (conjunct,) = query.plan.conjuncts
    assert isinstance(conjunct, Call), conjunct
    values: list[Value] = [
        Value(value if isinstance(value, str | int | float | None) else str(value), str(sql_type))
        for sql_type, value in zip(query.row.types, query.row.values, strict=True)
    ]
    return _placed(conjunct.args[0], values)


def _truth(text: str) -> bool | None:
    """Return the value of a predicate: whether a CQ of it, or of its negation, matches."""
    for truth, where in ((True, f"({text})"), (False, f"NOT ({text})")):
        query = compile_select(f"SELECT i FROM q WHERE {where}", _CATALOG)
        tables = snapshot(query.plan.conjuncts, [entry(0, query.row.type_texts, query.row.values)])
        if match(tables, _EVENTS).event.tolist():
            return truth
    return None


def _difference(text: str, kind: str | None, expected: Any) -> str | None:
    try:
        selected = _selected(text)
        our_kind, found = str(compile_expression(selected, ()).type), _value(selected)
    except InputError:
        return None  # which functions are refused is for test_functions and the documentation to say
    if kind is None:
        return f"{text} is accepted, and Spark refuses it"
    if (our_kind, found) != (kind, expected):
        return f"{text} is {found!r} of {our_kind}, Spark's {expected!r} of {kind}"
    if kind == "BOOLEAN":
        lifted: object = _truth(text)
    else:
        placed = _lifted(text)
        # Most are the same expression again: repr tells 0.0 and -0.0, 1 and True apart, which == does not.
        lifted = found if repr(placed) == repr(selected) else _value(placed)
    return None if lifted == expected else f"{text} lifted is {lifted!r}, Spark's {expected!r}"


@pytest.mark.parametrize("part", range(_PARTS))
def test_calls_mean_what_spark_says(part: int) -> None:
    """Each expression that is accepted has Spark's type and value, its constants in place and lifted."""
    lines = _EXPECTED.read_text("utf-8").splitlines()[part::_PARTS]
    differing = {text: found for text, *expected in map(json.loads, lines) if (found := _difference(text, *expected))}
    wrong = [found for text, found in differing.items() if text not in _KNOWN]
    mended = [text for text, *_ in map(json.loads, lines) if text in _KNOWN.keys() - differing.keys()]
    assert not mended
    assert not wrong, f"{len(wrong)} of {len(lines)} differ:\n" + "\n".join(wrong[:40])
