"""Functions: the row and the evaluator of each function are complete, and accepted functions are evaluated."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from grouping.functions.any_type import CASTING
from grouping.functions.function import Function
from grouping.functions.functions import AGGREGATES, ALIASES, CASTS, FUNCTIONS, GROUPS
from grouping.functions.nested import ELEMENTWISE
from grouping.functions.operators import OPERATORS
from grouping.functions.params import PARAMS
from grouping.functions.spark_functions import REASONS
from grouping.model.sql_type import INT, STRING, SqlType
from spark_jobs.engine.expressions import casts
from spark_jobs.engine.expressions import functions as polars_functions
from spark_jobs.engine.expressions.nested.parts import NESTED
from spark_jobs.engine.expressions.times.units import BY_UNIT

_EVALUATED = frozenset((*polars_functions.FUNCTIONS, *NESTED, *BY_UNIT, *ELEMENTWISE))
_CORPUS = Path(__file__).parents[2] / "cases" / "functions" / "expected.jsonl"
_CALL = re.compile(r"(\w+)\(([^()]*(?:\([^()]*\)[^()]*)*)\)")
_ARGUMENT = re.compile(r"(?:[^,()']|'[^']*'|\([^()]*\))+")
_NULL = re.compile(r"\s*(?:NULL|CAST\(NULL AS [A-Z]+(?:\(\d+,\d+\))?\))\s*")


def _missing(rows: Mapping[str, Function], evaluated: Collection[str]) -> Iterator[str]:
    """Yield what keeps a function from being complete."""
    for name, row in rows.items():
        if row.compiled == (name in evaluated):
            yield f"{name}: {'an evaluator that no call reaches' if row.compiled else 'no evaluator'}"
        if not row.meaning:
            yield f"{name}: no meaning"
        if not row.example and any(kind not in PARAMS or not PARAMS[kind].examples for kind in row.params):
            yield f"{name}: no example"
        if row.result == STRING and row.size is None and not row.compiled:
            yield f"{name}: no size of its text"
        if name in OPERATORS or name in REASONS:
            yield f"{name}: an operator, or refused"
    yield from (f"{op}: no row" for op in sorted(set(evaluated) - set(rows) - set(OPERATORS)))


def test_every_function_is_complete() -> None:
    """Each row has an evaluator, a meaning, an example and a size, and each evaluator has a row."""
    assert not list(_missing(FUNCTIONS, _EVALUATED))
    assert all(row.meaning and (row.example or row.params) for row in AGGREGATES.values())


def test_what_a_new_function_lacks_is_named() -> None:
    """A row alone, and an evaluator alone, are told by name with everything that is missing."""
    added = Function("sounds_of(STRING, sharpness)", STRING, "")
    found = list(_missing({**FUNCTIONS, added.name: added}, _EVALUATED | {"sounds_in"}))
    lacks = ("no evaluator", "no meaning", "no example", "no size of its text")
    assert [*(f"sounds_of: {lack}" for lack in lacks), "sounds_in: no row"] == found


def test_no_name_stands_twice() -> None:
    """Names and aliases are unique, and nothing is both accepted and refused."""
    rows = [row for group in GROUPS.values() for row in group]
    names = [name for row in rows for name in (row.name, *row.aliases) if row.name not in AGGREGATES]
    assert len(names) == len(set(names)) == len({*FUNCTIONS, *ALIASES})
    assert not set(REASONS) & set(names)


def test_a_form_is_read_as_it_is_written() -> None:
    """Optional and repeated parameters, and lambdas with several variables."""
    forms = ("e()", "f(INT)", "f(INT[, STRING][, INT])", "f([INT], …)", "f(MAP, (key, value) -> key)")
    read = [Function(form, INT, "") for form in forms]
    assert [(), ("INT",), ("INT", "STRING", "INT"), ("INT",), ("MAP", "(key, value) -> key")] == [
        row.params for row in read
    ]
    assert [(0, False), (0, False), (2, False), (1, True), (0, False)] == [(row.optional, row.variadic) for row in read]


def test_strictness_is_that_of_spark() -> None:
    """A function gives a value for a NULL argument in Spark's answers exactly where its row says so."""
    values: set[str] = set()
    nulls: set[str] = set()
    for line in _CORPUS.read_text("utf-8").splitlines():
        written, sql_type, value = json.loads(line)
        call = _CALL.fullmatch(written)
        name = ALIASES.get(call[1], call[1]) if call else None
        if sql_type is None or name not in FUNCTIONS or not call:
            continue
        if any(_NULL.fullmatch(argument) for argument in _ARGUMENT.findall(call[2])):
            (nulls if value is None else values).add(name)
    assert len(nulls) > 150
    assert not {name for name in values if FUNCTIONS[name].strict}
    assert not {name for name in nulls - values if not FUNCTIONS[name].strict}


def test_every_cast_is_evaluated() -> None:
    """The evaluator computes every CAST that a query may use."""
    plain = {source: targets for source, targets in CASTS.items() if source != "VARIANT"}  # by variant_get
    assert {(source, target) for source, targets in plain.items() for target in targets} <= set(casts.CASTS)
    assert all(isinstance(sql_type, SqlType) for sql_type in CASTING.values())
