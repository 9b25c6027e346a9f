"""VARIANT columns of JSON records hold the same as Spark's from_json."""

from __future__ import annotations

import gc
import json
import warnings

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from grouping.model.catalog import StreamColumn
from grouping.values.variant import shown
from spark_jobs.engine.decode.json_events import JsonReader
from tests.spark.calls.variants import DOCUMENTS

_VALUES = (*DOCUMENTS, '{"z": {"b": 2, "a": [ ]}, "é": "\\u00e9\\/", "B": 1}', " 1.0E+2", '"\\u001f\\b"')


@pytest.mark.parametrize(
    "kind", ["VARIANT", "ARRAY<VARIANT>", "STRUCT<v: VARIANT, w: VARIANT>", "MAP<STRING, VARIANT>"]
)
def test_columns_hold_what_spark_reads(spark: SparkSession, kind: str) -> None:
    """Each value stands in a column, an array, a struct and a map; null is a value, a missing field is none."""
    around = {"VARIANT": "%s", "ARRAY<VARIANT>": "[%s, null]"}.get(kind, '{"v": %s}')
    records = ["{}", '{"n": 1}', *(f'{{"v": {around % value}, "n": 1}}' for value in _VALUES)]
    column = StreamColumn("v", kind)
    read, wrong = JsonReader([column])(pa.array([record.encode() for record in records]))
    assert not wrong
    ours = [_as_json(value, kind) for value in read(column)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # pyspark leaves the socket of each result open
        frame = spark.createDataFrame(pa.table({"id": list(range(len(records))), "record": records}))
        schema = f"v {kind.replace(': ', ' ')}"
        made = frame.selectExpr("id", f"to_json(struct(from_json(record, '{schema}').v AS v)) AS v").toArrow()
        gc.collect()
    theirs = [json.loads(value).get("v") for value in made.sort_by("id")["v"].to_pylist()]
    assert theirs[2:] == ours[2:]
    assert ours[:2] == [None, None]


def _as_json(value: object, kind: str) -> object:
    """Return a value of a column as its result is shown."""
    match value:
        case str() if kind == "VARIANT":
            return json.loads(shown(value))
        case list():
            return [_as_json(each, "VARIANT") for each in value]
        case dict():
            return {name: _as_json(each, "VARIANT") for name, each in value.items() if each is not None}
    return value
