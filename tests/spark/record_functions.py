"""Ask Spark for the types and values of `calls` and keep them for ``test_function_corpus``.

Run as ``python -m tests.spark.record_functions``; this takes minutes, since each failing expression needs its own
query. Expressions that the corpus has already are not asked again.
"""

from __future__ import annotations

import json
import logging
import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.spark.calls.functions import calls

__all__ = ["EXPECTED", "read", "shown", "spelt"]

EXPECTED = Path(__file__).parents[1] / "cases" / "functions" / "expected.jsonl"
_RANGE = {"DATE": (-719_162, 2_932_896), "TIMESTAMP": (-62_135_596_800_000_000, 253_402_300_799_999_999)}
"""The years 1 to 9999, in days and microseconds since 1970: values beyond are NULL here."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_COUNTED = {"DATE": "unix_date", "TIMESTAMP": "unix_micros"}


def read(text: str, kind: str) -> str:
    """Return an expression that Spark gives to Python as it is: years beyond 9999 have no date there."""
    return f"{_COUNTED[kind]}({spelt(text)})" if kind in _COUNTED else spelt(text)


def spelt(text: str) -> str:
    """Return our text in Spark's SQL, where a backslash in a literal is doubled."""
    return text.replace("\\", "\\\\")


def _asked(spark: SparkSession, text: str) -> tuple[str | None, Any]:
    """Return the type of an expression, None where Spark refuses it, and its value as JSON: None where it fails."""
    try:
        kind = spark.sql(f"SELECT {spelt(text)} AS v").schema.fields[0].dataType.simpleString().upper()
    except PySparkException:
        return None, None
    try:
        value = spark.sql(f"SELECT {read(text, kind)} AS v FROM VALUES (1) AS t(one)").toArrow()["v"][0].as_py()
    except (PySparkException, Py4JError):  # a constant that fails is no error of pyspark's
        return kind, None
    if kind in _RANGE and value is not None and not _RANGE[kind][0] <= value <= _RANGE[kind][1]:
        return kind, None
    return kind, shown(value)


def shown(value: object) -> object:
    """Return a value as the corpus has it; dates and times within arrays as counts since 1970."""
    match value:
        case float():
            return "nan" if math.isnan(value) else repr(value + 0.0)
        case Decimal():
            return format(value, "f")
        case bytes():
            return value.hex()
        case timedelta():
            return str(value)
        case datetime():
            return (value - _EPOCH) // timedelta(microseconds=1)
        case date():
            return value.toordinal() - _EPOCH.toordinal()
        case list():
            return [shown(each) for each in value]
    return value


def _record() -> None:
    logging.disable(logging.CRITICAL)  # pyspark logs every expression that Spark refuses
    spark = SparkSession.builder.master("local[1]").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    lines = EXPECTED.read_text("utf-8").splitlines()
    known = {json.loads(line)[0] for line in lines}
    for text in calls():
        if text not in known:
            kind, value = _asked(spark, text)
            if kind != "VOID":
                line = json.dumps([text, kind, value], ensure_ascii=False)
                lines.append(line.replace("\u2028", "\\u2028").replace("\x85", "\\u0085"))  # they would end the line
    EXPECTED.write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    _record()
