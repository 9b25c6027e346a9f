"""The recorded expectations of the corpus are the results of the installed Spark."""

from __future__ import annotations

import gc
import json
import random
import warnings

from pyspark.sql import SparkSession

from tests.spark.record_functions import EXPECTED, read, shown, spelt


def test_a_sample_of_the_corpus_is_as_recorded(spark: SparkSession) -> None:
    """Types and values of some expressions that do not fail come out again; all of them are one query of Spark's."""
    lines = [json.loads(line) for line in EXPECTED.read_text("utf-8").splitlines()]
    sample = random.Random(20261123).sample([line for line in lines if line[2] is not None], 200)
    kinds = spark.sql(
        "SELECT " + ", ".join(f"{spelt(text)} AS v{n}" for n, (text, _, _) in enumerate(sample))
    ).schema.fields
    texts = [f"{read(text, kind)} AS v{n}" for n, (text, kind, _) in enumerate(sample)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # pyspark leaves the socket of each result open
        [row] = spark.sql(f"SELECT {', '.join(texts)} FROM VALUES (1) AS t(one)").toArrow().to_pylist()
        gc.collect()
    found = [
        [text, field.dataType.simpleString().upper(), shown(value)]
        for (text, _, _), field, value in zip(sample, kinds, row.values(), strict=True)
    ]
    assert sample == found
