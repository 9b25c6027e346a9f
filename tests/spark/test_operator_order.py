"""Operators without parentheses are applied in Spark's order, and what Spark does not read is refused."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.spark.corpus import Corpus

_EDGES: dict[str, tuple[str, list[Any]]] = {
    "i": ("INT", [0, 1, 7, None]),
    "l": ("BIGINT", [2, 3, 12]),
    "s": ("STRING", ["1", "25"]),
    "t": ("STRING", ["abc", "", "b", None]),
    "ts": ("TIMESTAMP", [datetime(2024, 2, 29, tzinfo=UTC)]),
    "f": ("BOOLEAN", [True, False, None]),
}
"""Values of which few operators fail: Spark stops at a row that fails."""
_OPERANDS = ("i", "l", "i", "l", "2", "3", "s", "'5'")
_OPERATORS = ("+", "-", "*", "||", "||", "||", "&", "|", "^", "<<", ">>", ">>>")
_PATTERNS = ("s || s", "'a%'", "s")
_ODD = (
    "regexp_substr(t, 'x*')", "regexp_substr(t, '[a-c]*')", "regexp_substr(t, '(b|)')", "getbit(i, 3)", "getbit(l, 63)",
    "t LIKE ANY ('a%', '%c')", "t NOT LIKE ALL ('a%', '%c')", "ts + INTERVAL '1-2' YEAR TO MONTH", "f = (i IS NULL)",
    "'a' || 2 + 2", "2 + 2 || '1'", "'1' || 2 - 1 || '3'", "i::STRING || '1' + 1", "- i IS NULL", "! f", "NOT f = f",
)  # fmt: skip


@pytest.fixture(scope="module")
def corpus(spark: SparkSession) -> Corpus:
    """Rows of edge values."""
    return Corpus(spark, _EDGES)


def _operand(rng: random.Random) -> str:
    operand = rng.choice(_OPERANDS)
    if rng.random() < 0.15:
        operand = f"{rng.choice(('~', '+', '- -'))}{operand}"
    return f"{operand}::{rng.choice(('STRING', 'INT', 'BIGINT'))}" if rng.random() < 0.1 else operand


def _chain(rng: random.Random, most: int) -> str:
    operators = [f" {rng.choice(_OPERATORS)} {_operand(rng)}" for _ in range(rng.randint(0, most))]
    return _operand(rng) + "".join(operators)


def _predicate(rng: random.Random) -> str:
    no, chain, other = rng.choice(("", "NOT ")), _chain(rng, 2), _chain(rng, 1)
    forms = (
        f"{chain} {rng.choice(('=', '<', '>', '<=>', '<>', '=='))} {other}",
        f"{chain} IS {no}NULL",
        f"{chain} {no}IN ({_operand(rng)}, {_operand(rng)})",
        f"{chain} {no}BETWEEN {other} AND {_operand(rng)}",
        f"s {no}{rng.choice(('LIKE', 'RLIKE', 'ILIKE'))} {rng.choice(_PATTERNS)}",
        f"f IS {no}{rng.choice(('TRUE', 'FALSE', 'UNKNOWN'))}",
        f"{chain} IS {no}DISTINCT FROM {other}",
    )
    behind = rng.choice((" IS NULL", " = f", " IN (f, TRUE)", " IS TRUE", " <=> f")) if rng.random() < 0.1 else ""
    return f"{rng.choice(forms)}{behind}"


def _expression(rng: random.Random) -> str:
    if rng.random() < 0.5:
        return _chain(rng, 4)
    words = [f" {rng.choice(('AND', 'OR'))} " for _ in range(rng.randint(0, 2))]
    signed = [f"{rng.choice(('', '', 'NOT ', '! '))}{_predicate(rng)}" for _ in range(len(words) + 1)]
    return "".join(part for pair in zip(signed, [*words, ""], strict=True) for part in pair)


def test_operators_in_a_row_mean_what_spark_says(corpus: Corpus) -> None:
    """Whatever is accepted of random operators in a row, without parentheses, has Spark's type and values."""
    rng = random.Random(39)
    texts = corpus.accepted(list(dict.fromkeys(_expression(rng) for _ in range(120))))
    assert len(texts) > 30
    assert [] == corpus.differences(texts)


def test_odd_forms_mean_what_spark_says(corpus: Corpus) -> None:
    """Forms of Spark's own golden corpus that were read otherwise once."""
    assert [] == corpus.differences(_ODD)
