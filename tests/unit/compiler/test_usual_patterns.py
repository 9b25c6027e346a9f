"""Patterns as people write them for Java: each is right, or refused with the nearest form.

``tests/spark/test_patterns.py`` asks Spark for the same texts.
"""

from __future__ import annotations

import json

import polars as pl
import pytest

from grouping.model.errors import InputError
from grouping.model.sql_type import BOOLEAN, STRING
from grouping.values.patterns import rust_pattern
from spark_jobs.engine.expressions.texts.search import rlike
from spark_jobs.engine.expressions.types import Operand
from tests.pages import ROOT

USUAL = [json.loads(line) for line in (ROOT / "tests/cases/patterns/usual.jsonl").read_text("utf-8").splitlines()]
"""For an accepted pattern: the pattern, the texts in which it is found, other texts. Else: the pattern, and a part of
the hint."""


@pytest.mark.parametrize(("pattern", "found", "others"), [case for case in USUAL if len(case) == 3])
def test_a_usual_pattern_is_found_as_by_java(pattern: str, found: list[str], others: list[str]) -> None:
    """RLIKE is TRUE for the one list of texts and FALSE for the other."""
    texts = [*found, *others]
    both = [Operand(pl.col("text"), STRING), Operand(pl.repeat(pattern, pl.len(), dtype=pl.String), STRING)]
    own = pl.DataFrame({"text": texts}).select(rlike(both, BOOLEAN).expr)["text"].to_list()
    assert [text in found for text in texts] == own


@pytest.mark.parametrize(("pattern", "hint"), [case for case in USUAL if len(case) == 2])
def test_a_pattern_without_a_linear_form_is_refused_with_the_nearest(pattern: str, hint: str) -> None:
    """The refusal says what to write instead."""
    with pytest.raises(InputError) as caught:
        rust_pattern(pattern)
    assert caught.value.code == "unsupported-query"
    assert hint in str(caught.value.hint)


def test_seventy_patterns() -> None:
    """The list is as long as promised, and most of it is accepted."""
    assert len(USUAL) >= 70
    assert sum(len(case) == 3 for case in USUAL) >= 70
