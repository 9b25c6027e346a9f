"""Ask Spark about the WHERE clauses of `tests.alerts` and keep its verdicts for ``test_alert_clauses``.

Run as ``python -m tests.spark.record_alerts``. Clauses that have their verdict already are not asked again.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tests.alerts import EXPECTED, FAILS, STREAMS, TIME, clauses
from tests.spark.record_functions import spelt

__all__ = ["table", "verdicts"]


def table(spark: SparkSession, name: str) -> DataFrame:
    """Return a stream's rows as Spark reads them, with their places in order and the record's time."""
    texts = [json.dumps(row, ensure_ascii=False).replace("\\", "\\\\") for row in STREAMS[name]["rows"]]
    rows = ", ".join(
        f"({place}, '{quoted}')" for place, text in enumerate(texts) if (quoted := text.replace("'", "\\'"))
    )
    return spark.sql(
        f"SELECT place, TIMESTAMP '{TIME:%Y-%m-%d %H:%M:%S}' AS _time, "
        f"from_json(text, '{STREAMS[name]['columns']}', map('mode', 'FAILFAST')) AS row "
        f"FROM VALUES {rows} AS t(place, text)"
    ).selectExpr("place", "_time", "row.*")


def verdicts(rows: DataFrame, texts: Sequence[str]) -> list[list[Any]]:
    """Return the value of each clause in each row; all are asked at once, and apart where one of them fails."""
    try:
        found = rows.selectExpr("place", *[f"({spelt(text)}) AS v{n}" for n, text in enumerate(texts)]).toArrow()
        values = found.sort_by("place").to_pydict()
        return [values[f"v{n}"] for n in range(len(texts))]
    except (PySparkException, Py4JError):
        if len(texts) > 1:
            half = len(texts) // 2
            return verdicts(rows, texts[:half]) + verdicts(rows, texts[half:])
    return [[_of_row(rows, place, texts[0]) for place in range(rows.count())]]


def _of_row(rows: DataFrame, place: int, text: str) -> bool | str | None:
    try:
        value: bool | None = (
            rows.where(f"place = {place}").selectExpr(f"({spelt(text)}) AS v").toArrow()["v"][0].as_py()
        )
    except (PySparkException, Py4JError):
        return FAILS
    return value


def _accepts(rows: DataFrame, text: str) -> bool:
    try:
        rows.where(spelt(text)).schema  # noqa: B018  # the plan is made of it
    except PySparkException:
        return False
    return True


def _record() -> None:
    logging.disable(logging.CRITICAL)  # pyspark logs every clause that Spark refuses
    spark = SparkSession.builder.master("local[1]").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    lines = [json.loads(line) for line in EXPECTED.read_text("utf-8").splitlines()] if EXPECTED.exists() else []
    known = {(name, text) for name, text, _ in lines}
    for name in STREAMS:
        rows = table(spark, name)
        new = [text for of, text in clauses() if of == name and (of, text) not in known]
        accepted = [text for text in new if _accepts(rows, text)]
        values = dict(zip(accepted, verdicts(rows, accepted), strict=True)) if accepted else {}
        lines += [[name, text, values.get(text)] for text in new]
    kept = {(name, text): values for name, text, values in lines}
    EXPECTED.write_text(
        "\n".join(json.dumps([*clause, kept[clause]], ensure_ascii=False) for clause in clauses()) + "\n", "utf-8"
    )


if __name__ == "__main__":
    _record()
