"""The recorded expectations of the corpus are what this Spark says."""

from __future__ import annotations

import json
import random

from pyspark.sql import SparkSession

from tests.spark.record_functions import EXPECTED, asked


def test_a_sample_of_the_corpus_is_as_recorded(spark: SparkSession) -> None:
    """Some of the recorded types and values come out again."""
    lines = [json.loads(line) for line in EXPECTED.read_text("utf-8").splitlines()]
    known = [line for line in lines if line[1] is not None]
    sample = random.Random(20261123).sample(known, 25)
    assert sample == [[text, *asked(spark, text)] for text, _, _ in sample]
