"""Every regular expression of the product takes time in proportion to the text that it meets.

A text of a command, a record or a constant comes from outside, so a pattern that takes quadratic time lets a sender
stop everybody. The patterns are found by walking the modules, and calls that compile a pattern from a value are found
in the sources: a new one cannot be forgotten.
"""

from __future__ import annotations

import ast
import gc
import importlib
import pkgutil
import re
import time
import types
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import polars as pl
import pytest

from gateway.commands.listing import like_filter
from grouping.model.sql_type import STRING
from grouping.statements.cq_text import CqText
from grouping.values.intervals import parse_interval
from spark_jobs.engine.expressions.texts.urls import part_of_url
from spark_jobs.engine.expressions.times.formats import to_timestamp
from spark_jobs.engine.expressions.types import Operand
from tests.pages import ROOT

_PACKAGES = ("gateway", "grouping", "schemas", "spark_jobs")
_KINDS = ("1", "a", " ", "'", '"', '\\"', "1e1+", "a.", "\n", "a b ,")
"""Ten kinds of texts, each the period of a long one."""
_SIZES = (1_000, 2_000, 4_000)
_QUICK_SECONDS = 1e-3
"""A pattern that reads 4,000 characters faster than this is linear: quadratic time takes 8 ms and more."""
_MOST_GROWTH = 8
"""Growth of the time from 1,000 to 4,000 characters that is allowed: linear is 4, quadratic 16."""
_SEARCHES = ("search", "finditer", "findall", "sub", "subn", "split")

_COMPILED_FROM_VALUES = {
    "gateway/commands/listing.py:like_filter",
    "grouping/statements/cq_text.py:_like",
    "grouping/values/intervals.py:_clock",
    "spark_jobs/engine/decode/json_events.py:_decimal_reader",  # each part is bounded by the DECIMAL's precision
    "spark_jobs/engine/expressions/times/formats.py:_reader",
    "spark_jobs/engine/expressions/texts/urls.py:part_of_url",
}
"""The functions that compile a pattern themselves, by file and name."""


def _modules() -> Iterator[types.ModuleType]:
    for package in _PACKAGES:
        for found in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            if not found.name.endswith("__main__"):
                yield importlib.import_module(found.name)


def _patterns_of(value: object, depth: int = 0) -> Iterator[tuple[re.Pattern[str] | re.Pattern[bytes], bool]]:
    """Yield the patterns within a module's value, each with whether the value is a bound search of it."""
    if isinstance(value, re.Pattern):
        yield value, False
    elif isinstance(value, types.BuiltinMethodType) and isinstance(value.__self__, re.Pattern):
        yield value.__self__, value.__name__ in _SEARCHES
    elif isinstance(value, (dict, list, tuple, set, frozenset)) and depth < 3:
        for each in list(value.values()) if isinstance(value, dict) else list(value):
            yield from _patterns_of(each, depth + 1)


@cache
def _source(module: types.ModuleType) -> str:
    return (ROOT / str(module.__file__)).read_text("utf-8")


def _uses() -> dict[str, Callable[[Any], object]]:
    """Return the calls to measure, by pattern and how the product calls it: a search begins at each character."""
    found = []
    for module in _modules():
        for name, value in list(vars(module).items()):
            searched = re.search(rf"\b{name}\.(?:{'|'.join(_SEARCHES)})\b", _source(module)) is not None
            found += [(pattern, searched or bound) for pattern, bound in _patterns_of(value)]
    for _, method, written in _inline_calls():
        if written is not None:
            found.append((re.compile(written), method in _SEARCHES))
    uses: dict[str, Callable[[Any], object]] = {}
    for pattern, searched in found:
        for method in ("fullmatch", "findall") if searched else ("fullmatch",):
            uses[f"{method} of {pattern!r}"] = getattr(pattern, method)
    return uses


@cache
def _inline_calls() -> list[tuple[str, str, str | None]]:
    """Return each function that calls `re`, the method, and the pattern, None where it is made from a value."""
    calls = []
    for path in (path for package in _PACKAGES for path in (ROOT / package).rglob("*.py")):
        source = path.read_text("utf-8")
        for function in ast.walk(ast.parse(source)) if "import re\n" in source else ():
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                for call in ast.walk(function):
                    match call:
                        case ast.Call(ast.Attribute(ast.Name("re"), method), [first, *_]) if method != "escape":
                            written = first.value if isinstance(first, ast.Constant) else None
                            calls.append((f"{path.relative_to(ROOT)}:{function.name}", method, written))
    return calls


def _best_seconds(call: Callable[[Any], object], text: object, tries: int) -> float:
    """Return the shortest CPU time of several calls, in seconds; a wrong text may be refused.

    Garbage is collected between the calls: a search that makes thousands of matches would pay for the whole heap.
    """
    best = float("inf")
    for _ in range(tries):
        gc.disable()
        began = time.thread_time()
        try:
            call(text)
        except (ValueError, RecursionError):
            pass
        finally:
            took = time.thread_time() - began
            gc.enable()
        best = min(best, took)
    return best


def _growth(call: Callable[[Any], object], text: Callable[[int], object]) -> float:
    """Return how many times longer the longest text takes than the shortest, 0 for a quick call."""
    if _best_seconds(call, text(_SIZES[-1]), 1) < _QUICK_SECONDS:
        return 0
    growth = float("inf")
    for _ in range(3):  # other work of the machine only ever makes a time longer
        short, _, long = (_best_seconds(call, text(size), 3) for size in _SIZES)
        growth = min(growth, long / short)
        if growth < _MOST_GROWTH or long < _QUICK_SECONDS:
            return 0
    return growth


def _text(kind: str, end: str, size: int) -> str:
    return (kind * size)[:size] + end


def _characters(pattern: str | bytes) -> set[str]:
    """Return the characters that a pattern's source names: runs of them may take its loops furthest."""
    source = pattern.decode("latin-1") if isinstance(pattern, bytes) else pattern
    return set(source) - set("\\|*+?")


def test_every_pattern_is_linear() -> None:
    """Each pattern reads 4,000 characters of every kind in about four times the time of 1,000."""
    slow = []
    for name, call in _uses().items():
        pattern = call.__self__  # type: ignore[attr-defined]
        binary = isinstance(pattern.pattern, bytes)
        kinds = {*_KINDS, *_characters(pattern.pattern)}
        for kind in sorted(each for each in kinds if each.isascii() or not binary):
            for end in ("", "\0"):

                def text(size: int, kind: str = kind, end: str = end, binary: bool = binary) -> object:
                    made = _text(kind, end, size)
                    return made.encode() if binary else made

                if growth := _growth(call, text):
                    slow.append(f"{name}: {growth:.0f} times for {kind!r} and {end!r}")
    assert not slow, "\n".join(slow)


def test_no_other_function_compiles_a_pattern() -> None:
    """A pattern is a constant of its source, unless the list above names the function that makes it from a value."""
    assert {function for function, _, written in _inline_calls() if written is None} == _COMPILED_FROM_VALUES


@pytest.mark.parametrize("kind", _KINDS)
def test_patterns_made_from_values_are_linear(kind: str) -> None:
    """A pattern that is made from a user's text reads any other text in linear time."""
    for name in "abc":  # the second of a kind makes the pattern
        CqText.cut(f"CREATE CQ {name} AS SELECT x FROM s WHERE a = 'b' AND c = 5")
    calls: dict[str, Callable[[Any], object]] = {
        "LIKE of SHOW": like_filter("%a_b%1%"),
        "the fast path": lambda text: CqText.cut(f"CREATE CQ c AS SELECT x FROM s WHERE a = '{text[96:]}"),
        "an interval": lambda text: parse_interval(text, "DAY", "SECOND"),
        "to_timestamp": lambda text: pl.select(to_timestamp("[[yyyy]MM]ddHH", [Operand(pl.lit(text), STRING)])),
        "a key of parse_url": lambda text: part_of_url(f"http://a/?{text}", "QUERY", "k"),
    }
    growing = {
        name: growth for name, call in calls.items() if (growth := _growth(call, lambda n: _text(kind, "\0", n)))
    }
    assert not growing
