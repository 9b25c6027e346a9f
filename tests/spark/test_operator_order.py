"""Operators without parentheses are applied in Spark's order."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

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
"""Values for which no operator fails: Spark stops at a row that fails."""
_FORMS = (
    "regexp_substr(t, 'x*')", "regexp_substr(t, '[a-c]*')", "regexp_substr(t, '(b|)')", "getbit(i, 3)", "getbit(l, 63)",
    "t LIKE ANY ('a%', '%c')", "t NOT LIKE ALL ('a%', '%c')", "ts + INTERVAL '1-2' YEAR TO MONTH", "f = (i IS NULL)",
    "'1' || 2 + 2", "2 + 2 || '1'", "'1' || 2 - 1 || '3'", "s || i + l", "- i IS NULL", "! f", "NOT f = f",
)  # fmt: skip


def test_forms_of_the_golden_corpus(spark: SparkSession) -> None:
    """Forms that were read otherwise once have Spark's types and values."""
    assert [] == Corpus(spark, _EDGES).differences(_FORMS)
