"""LIKE with another pattern in each row, against a matcher that tries every way."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from grouping.model.sql_type import STRING
from spark_jobs.engine.expressions.texts.search import like
from spark_jobs.engine.expressions.types import Operand

_TEXT = st.text("ab%_!\n", max_size=5)


def _matches(text: str, pattern: str) -> bool:
    """Tell whether a text is like a pattern; the escape is ``!``."""
    if not pattern:
        return not text
    head, tail = pattern[0], pattern[1:]
    if head == "%":
        return any(_matches(text[skipped:], tail) for skipped in range(len(text) + 1))
    if head == "_":
        return bool(text) and _matches(text[1:], tail)
    if head == "!":
        head, tail = tail[0], tail[1:]
    return text[:1] == head and _matches(text[1:], tail)


def _refused(pattern: str) -> bool:
    """Tell whether an escape stands before a plain character or last."""
    left = pattern.replace("!!", "").replace("!%", "").replace("!_", "")
    return "!" in left


@settings(max_examples=400, deadline=None)
@given(st.lists(st.tuples(st.one_of(_TEXT, st.none()), st.one_of(_TEXT, st.none())), min_size=1, max_size=8))
@example([("a\nb", "%"), ("a\nb", "a%b"), ("", "%%"), ("a%", "a!%"), ("a", "a!%"), ("ab", "_b"), ("b", "%a%")])
def test_like_is_what_trying_every_way_finds(rows: list[tuple[str | None, str | None]]) -> None:
    """Whatever kind of search a pattern becomes, each row has its own answer, NULL where text or pattern is."""
    frame = pl.DataFrame(rows, {"text": pl.String, "pattern": pl.String}, orient="row")
    args = [Operand(pl.col("text"), STRING), Operand(pl.col("pattern"), STRING), Operand(pl.lit("!"), STRING)]
    expected = [
        None if text is None or pattern is None or _refused(pattern) else _matches(text, pattern)
        for text, pattern in rows
    ]
    assert expected == frame.select(like(args, "BOOLEAN").expr)["text"].to_list()


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("_" * 5_000 + "x" * 95_000, False),
        ("%é_" * 2_000 + "%", False),
        ("%" * 5_000, True),
        ("_" * 5_001, None),
        ("_" + "\U0001f600" * 25_000, None),
    ],
)
def test_patterns_are_as_large_as_the_engine_takes(pattern: str, found: bool | None) -> None:
    """A pattern from a column that no regular expression can be is NULL, like any failure on a row."""
    frame = pl.DataFrame({"text": ["ab"], "pattern": [pattern]})
    args = [Operand(pl.col(name), STRING) for name in ("text", "pattern")]
    assert [found] == frame.select(like(args, "BOOLEAN").expr).to_series().to_list()
