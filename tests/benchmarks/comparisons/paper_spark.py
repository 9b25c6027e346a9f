"""A Spark query for each continuous query, as without a gateway, against a single query for all of them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

from confluent_kafka import Producer
from pyspark.sql import SparkSession, functions
from pyspark.sql.streaming.query import StreamingQuery

from grouping.settings.settings import Settings
from spark_jobs.runtime.kafka.sink import write_stream
from spark_jobs.runtime.kafka.source import read_stream
from spark_jobs.runtime.worker.worker import Evaluation
from tests.benchmarks.comparisons.paper_queries import CHANGED, Setting, delta_values, selections, stream
from tests.benchmarks.curves import Curve, Panel
from tests.benchmarks.material.tables import Contents, Tables
from tests.benchmarks.rates.contest import bench_session
from tests.benchmarks.rates.pipeline import cpu_seconds
from tests.benchmarks.rates.spark_sink import write_by_spark
from tests.benchmarks.report import Report
from tests.ground import open_ground

__all__ = ["measure"]

_TOPIC = "paper"
_DELTAS = 5
_LARGE = 10_000
_JSON = "symbol STRING, industry STRING, current_price DOUBLE, change_ratio DOUBLE"


def measure(report: Report, counts: Sequence[int]) -> Panel:
    """Measure both for some numbers of queries `symbol = ?`, all of which fire; a delta is 1,000 quotes."""
    alone: list[tuple[float, float]] = []
    grouped: list[tuple[float, float]] = []
    with open_ground() as ground:
        settings = ground.settings
        ground.make_topic(_TOPIC, 1)
        ground.make_topic(settings.topics.results, settings.results.partitions)
        tables = Tables(settings)
        with bench_session(settings) as spark:
            for count in counts:
                setting = selections(count)
                alone.append(_deltas(settings, [_by_itself(spark, setting, i, settings) for i in range(count)]))
                contents = Contents(stream(f"s_grouped_{count}", _TOPIC)).add_each(setting.texts())
                tables.put(contents)
                grouped.append(_deltas(settings, [_all_together(spark, contents, settings)]))
    for count, one, all_ in zip(counts, alone, grouped, strict=True):
        at = f"Spark, N = {count}"
        report.add(f"{at}: one query each, a delta", one[0], "ms")
        report.add(f"{at}: grouped, a delta", all_[0], "ms")
        report.add(f"{at}: grouped ÷ one query each", all_[0] / one[0])
        report.add(f"{at}: the same by CPU", all_[1] / one[1])
    if len(counts) > 1:
        each = (alone[-1][0] - alone[0][0]) / (counts[-1] - counts[0])
        report.add("Spark: each further query", each, "ms a delta")
        report.add(f"Spark: one query each ÷ grouped at N = {_LARGE:,}, extrapolated", each * _LARGE / grouped[-1][0])
    curves = [
        Curve("one Spark query each", counts, [wall for wall, _ in alone]),
        Curve("grouped", counts, [wall for wall, _ in grouped]),
    ]
    return Panel("symbol = ?, from Kafka to Kafka", "N", curves, "ms a delta")


def _by_itself(spark: SparkSession, setting: Setting, number: int, settings: Settings) -> Callable[[], StreamingQuery]:
    source = stream(f"s_{len(setting.constants)}_{number}", _TOPIC)
    quotes = read_stream(spark, source, [0], settings).select(
        functions.from_json(functions.col("value").cast("string"), _JSON).alias("quote")
    )
    (symbol,) = setting.constants[number]
    matching = quotes.select("quote.*").where(functions.col("symbol") == symbol)
    rows = matching.select(
        functions.lit(str(number)).cast("binary").alias("key"),
        functions.to_json(functions.struct("*")).cast("binary").alias("value"),
        functions.lit(settings.topics.results).alias("topic"),
    )
    return lambda: write_by_spark(rows, source.stream_id, settings)


def _all_together(spark: SparkSession, contents: Contents, settings: Settings) -> Callable[[], StreamingQuery]:
    rows = read_stream(spark, contents.stream, [0], settings)
    stream_id = contents.stream.stream_id
    return lambda: write_stream(rows, Evaluation.of(contents.stream, settings), stream_id, settings)


def _deltas(settings: Settings, starts: Sequence[Callable[[], StreamingQuery]]) -> tuple[float, float]:
    """Return ms until all queries have written a delta's results, and ms of CPU; medians, the first one left out."""
    queries = [start() for start in starts]
    made: list[tuple[float, float]] = []
    try:
        for _ in range(_DELTAS + 1):
            _publish(settings)
            began, before = time.monotonic(), sum(cpu_seconds().values())
            for query in queries:
                query.processAllAvailable()
            spent = sum(cpu_seconds().values()) - before
            made.append(((time.monotonic() - began) * 1000, spent * 1000))
    finally:
        for query in queries:
            query.stop()
    walls, cpus = zip(*made[1:], strict=True)
    return statistics.median(walls), statistics.median(cpus)


def _publish(settings: Settings) -> None:
    producer = Producer({"bootstrap.servers": settings.kafka.bootstrap})
    for value in delta_values(CHANGED):
        producer.produce(_TOPIC, value, partition=0)
    producer.flush()
