"""A STRING beside a whole number: what Spark means in both of its modes, and the forms that a refusal names."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.spark.corpus import Corpus

_R = "get_json_object(b, '$.r')"
_WHOLE = ["70", "71", " 71 ", "-0", "3000000000", "9007199254740993", None]
_NUMBERS = ["99.5", "70.5", "70", "71.0", '"71"', "7.1e1", "1e400", "null"]


@pytest.fixture
def without_ansi(spark: SparkSession) -> Iterator[SparkSession]:
    """The session without ANSI."""
    spark.conf.set("spark.sql.ansi.enabled", "false")
    yield spark
    spark.conf.set("spark.sql.ansi.enabled", "true")


def _truths(spark: SparkSession, *texts: str) -> list[bool | None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # pyspark leaves its sockets to the garbage collector
        [row] = spark.sql("SELECT " + ", ".join(f"'{text}' > 70" for text in texts)).toArrow().to_pylist()
        gc.collect()
    return [*row.values()]


def _json(numbers: list[str | None]) -> tuple[str, list[str]]:
    return "STRING", [f'{{"r": {number or "null"}}}' for number in numbers]


def test_whole_numbers_are_spark_s(spark: SparkSession) -> None:
    """A computed STRING beside a whole number, and the CAST of get_json_object to BIGINT, have Spark's values."""
    corpus = Corpus(spark, {"i": ("INT", [70, 71, None]), "s": ("STRING", _WHOLE), "b": _json(_WHOLE)})
    texts = [f"{text} {op} {other}" for text in ("upper(s)", f"CAST({_R} AS BIGINT)") for op, other in
             ((">", "70"), ("<=", "i"), ("=", "9007199254740992"))]  # fmt: skip
    assert not corpus.differences(texts)


def test_numbers_with_fractions_are_spark_s(spark: SparkSession) -> None:
    """The other form for get_json_object compares as DOUBLE, as Spark does beside 70.0."""
    corpus = Corpus(spark, {"i": ("INT", [70]), "b": _json([*_NUMBERS])})
    assert not corpus.differences([f"{_R} > 70.0", f"CAST({_R} AS DOUBLE) > i", f"{_R} = 70.5"])


def test_spark_reads_a_whole_number_as_ansi_says(spark: SparkSession) -> None:
    """Under ANSI the STRING becomes a BIGINT, and a fraction fails."""
    assert _truths(spark, "70", "71", "3000000000") == [False, True, True]
    with pytest.raises(PySparkException, match="CAST_INVALID_INPUT"):
        _truths(spark, "99.5")


def test_spark_without_ansi_cuts_the_fraction(without_ansi: SparkSession) -> None:
    """Without ANSI the STRING becomes an INT, so no mode of Spark compares as DECIMAL."""
    assert _truths(without_ansi, "99.5", "70.5", "3000000000") == [True, False, None]
