"""Many CQs `user = ? QUALIFY n > ?`, n counted over ten minutes; beside a plain copy and one window of Spark.

All sides run in one Spark application over the same topic, in turns. The times of the records are spread over half an
hour that ends now. The constants are such that an event matches about one CQ. Spark's own query has no CQs and does
less: it counts by user in whole ten minutes, and writes the few counts above a constant.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from grouping.model.catalog import Stream, StreamColumn
from grouping.settings.settings import Settings
from spark_jobs.runtime.kafka.sink import checkpoint_location
from spark_jobs.runtime.worker.worker import Evaluation
from tests.benchmarks.material import quotes
from tests.benchmarks.material.tables import Contents, Tables
from tests.benchmarks.rates.contest import bench_session, in_turns, make_outputs, report_ratio, report_sides
from tests.benchmarks.rates.copies import plain_copy
from tests.benchmarks.rates.pipeline import Run, through
from tests.benchmarks.report import Report
from tests.ground import Ground, open_ground

__all__ = ["add_options", "main"]

_TOPIC = "logins"
_PLAIN, _NATIVE = "plain copy", "a window by Spark"
_QUERY = (
    "SELECT user, ip, count(*) OVER w AS n FROM logins WHERE user = 'U' QUALIFY n > 5 WINDOW w AS (PARTITION BY user "
    "ORDER BY _time RANGE BETWEEN INTERVAL '10' MINUTE PRECEDING AND CURRENT ROW)"
)
_SPAN_MS, _FRAME_MS = 1_800_000, 600_000
_SELDOM = 50
"""Few counts of Spark's window exceed this constant, so Spark writes little."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the sizes."""
    parser.add_argument("--frame-cqs", type=int, default=100_000, help="CQs, each of a user with a threshold")
    parser.add_argument("--frame-keys", type=int, default=10_000, help="users")
    parser.add_argument("--frame-events", type=int, default=1_000_000, help="events of one run")
    parser.add_argument("--frame-rounds", type=int, default=3, help="rounds that count")


def main(options: argparse.Namespace, folder: Path) -> None:
    """Measure and report."""
    with open_ground() as ground:
        runs = _measure(ground, options.frame_cqs, options.frame_keys, options.frame_events, options.frame_rounds)
    report, many = Report(options.command), f"{options.frame_cqs:,} CQs"
    report_sides(report, runs)
    report_ratio(report, runs, many, _PLAIN, ">= 0.4")
    report_ratio(report, runs, many, _NATIVE)
    report.write(folder)
    report.bars(folder, "events/s")


def _measure(ground: Ground, cqs: int, keys: int, events: int, rounds: int) -> dict[str, list[Run]]:
    settings = ground.settings
    ground.make_topic(_TOPIC, quotes.PARTITIONS)
    make_outputs(ground, "copy", "counts")
    times = quotes.times_until_now(events, _SPAN_MS)
    quotes.send(settings.kafka.bootstrap, _TOPIC, _logins(events, keys), times.astype(np.int64).tolist())
    stream = _stream()
    Tables(settings).put(Contents(stream).add(_QUERY, _constants(cqs, keys, events)))
    sides = {
        _PLAIN: plain_copy(_TOPIC, "copy"),
        f"{cqs:,} CQs": through(stream, Evaluation.of(stream, settings)),
        _NATIVE: _native,
    }
    with bench_session(settings) as spark:
        return dict(in_turns(spark, sides, events, rounds, settings))


def _stream() -> Stream:
    columns = (StreamColumn("user", "STRING"), StreamColumn("ip", "STRING"))
    offsets = {str(partition): 0 for partition in range(quotes.PARTITIONS)}
    created = "2026-01-01T00:00:00Z"
    return Stream("s_frames", "logins", columns, _TOPIC, "json", offsets, created, partition_key=("user",))


def _constants(cqs: int, keys: int, events: int) -> dict[str, pa.Array]:
    """Return the user and the threshold of each CQ; all users have equally many CQs."""
    rows = 1 + events * (_FRAME_MS / _SPAN_MS) / keys  # of a frame, on the average
    above = max(cqs / keys, 1) * rows
    limits = np.random.default_rng(3).uniform(0, above, cqs).astype(np.int64)
    users = pa.array([_user(number) for number in range(keys)])
    return {"c0": users.take(pa.array(np.arange(cqs) % keys)), "c1": pa.array(limits)}


def _user(number: int) -> str:
    return f"U{number:06d}"


def _logins(count: int, keys: int) -> Iterator[tuple[str, str]]:
    """Yield keys and events; a user keeps its partition."""
    numbers = quotes.keys_in_turns(np.random.default_rng(1), keys, count)
    for row, number in enumerate(numbers.tolist()):
        user = _user(number)
        yield user, f'{{"user": "{user}", "ip": "10.0.{row % 251}.{row % 241}", "ok": false, "session": {row}}}'


def _native(spark: SparkSession, settings: Settings) -> StreamingQuery:
    kafka = {"kafka.bootstrap.servers": settings.kafka.bootstrap}
    batch = {"maxOffsetsPerTrigger": str(settings.evaluator.events_per_batch), "startingOffsets": "earliest"}
    read = spark.readStream.format("kafka").options(subscribe=_TOPIC, **kafka, **batch).load()
    row = f.from_json(f.col("value").cast("string"), "user STRING").alias("row")
    events = read.select("timestamp", row).select("timestamp", "row.user").withWatermark("timestamp", "2 seconds")
    counts = events.groupBy(f.window("timestamp", "10 minutes"), "user").agg(f.count("*").alias("n"))
    above = counts.where(f.col("n") > _SELDOM)
    written = above.select(f.col("user").alias("key"), f.to_json(f.struct("user", "window.end", "n")).alias("value"))
    write = written.writeStream.format("kafka").outputMode("update").options(topic="counts", **kafka)
    return write.option("checkpointLocation", checkpoint_location("s_native", settings)).start()
