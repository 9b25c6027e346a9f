"""WHERE clauses in the style of authors of alerts are accepted, and TRUE for the same rows as in Spark.

``tests/spark/record_alerts.py`` has recorded Spark's verdicts in ``tests/cases/alerts/expected.jsonl``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache

import pytest

from gateway.testing import InputError, Record, Stream, evaluate
from grouping.compiler.compiler import compile_select
from grouping.model.catalog import Catalog
from grouping.model.sql_type import SqlType
from tests.alerts import EXPECTED, FAILS, STREAMS, TIME, clauses

_SHARE = 0.98
_QUOTED = re.compile(r"'((?:[^']|'')*)'")
_HASH = re.compile(r"#[0-9a-f]{8}")
_NAMES = {"MICROSECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "YEAR", "key", "value", "0", "1"}
"""Units of time, and the fields of entries of maps and of zipped arrays."""
_VERDICTS = [json.loads(line) for line in EXPECTED.read_text("utf-8").splitlines()]


@cache
def _stream(name: str) -> tuple[Stream, list[Record]]:
    """Return a stream and its rows."""
    declared = STREAMS[name]
    return Stream(f"alerts ({declared['columns']})"), [Record(row, time=TIME) for row in declared["rows"]]


def _held(name: str, where: str) -> list[bool]:
    """Return for each row whether a CQ matches it."""
    return [row.matches for row in evaluate(f"SELECT id FROM alerts WHERE {where}", *_stream(name))]


@cache
def _values(name: str, text: str) -> list[bool | None] | None:
    """Return the value of a clause in each row, NULL if neither it nor its negation holds; None after a refusal."""
    try:
        held = _held(name, text)
    except InputError:
        return None
    both = zip(held, _held(name, f"NOT ({text})"), strict=True)
    return [True if held else False if denied else None for held, denied in both]


def _differ(ours: Sequence[bool | None], theirs: Sequence[bool | str | None]) -> bool:
    """Tell whether values differ, but for rows on which Spark fails."""
    return any(their not in (FAILS, our) for our, their in zip(ours, theirs, strict=True))


def test_the_verdicts_are_on_all_clauses() -> None:
    """A clause that is added is asked of Spark."""
    assert [(name, text) for name, text, _ in _VERDICTS] == clauses()


@pytest.mark.parametrize("field", STREAMS)
def test_clauses_mean_what_spark_says(field: str) -> None:
    """Each accepted clause has Spark's value in each row; clauses refused by Spark are refused."""
    wrong = []
    for name, text, values in _VERDICTS:
        if name != field or (ours := _values(name, text)) is None:
            continue
        if values is None:
            wrong.append(f"{text} is accepted, and Spark refuses it")
        elif _differ(ours, values):
            wrong.append(f"{text} is {ours}, Spark's {values}")
    assert not wrong, "\n".join(wrong)


def test_nearly_all_that_spark_evaluates_is_accepted() -> None:
    """Among the clauses with a value in some row, hardly any is refused."""
    evaluated = [(name, text) for name, text, values in _VERDICTS if values and {*values} - {FAILS, None}]
    refused = [text for name, text in evaluated if _values(name, text) is None]
    assert len(refused) <= (1 - _SHARE) * len(evaluated), "\n".join(refused)


def _is_type(text: str) -> bool:
    try:
        SqlType.of(text)
    except ValueError:
        return False
    return True


def test_signatures_show_no_literal() -> None:
    """Quotes in a signature are around hashes, names of fields and of units, and types."""
    shown = set()
    for name, text in clauses():
        try:
            plan = compile_select(f"SELECT id FROM alerts WHERE {text}", Catalog([_stream(name)[0].declared])).plan
        except InputError:
            continue
        for quoted in _QUOTED.findall(plan.signature):
            field = re.escape(quoted)
            if re.search(rf"\b{field}:", STREAMS[name]["columns"]) or re.search(rf"\.{field}\b", text):
                continue
            if not (_HASH.fullmatch(quoted) or quoted in _NAMES or _is_type(quoted)):
                shown.add((text, quoted))
    assert not shown
