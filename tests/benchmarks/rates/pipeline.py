"""Runs of a Spark application over the same topic, in sequence, each from its first event to its last."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import psutil
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from grouping.model.catalog import Stream
from grouping.settings.settings import Settings
from spark_jobs.runtime.kafka.sink import checkpoint_location, write_stream
from spark_jobs.runtime.kafka.source import read_stream

__all__ = ["Run", "Side", "Start", "cpu_seconds", "run", "through"]

_LOOK_SECONDS = 0.1
_PROGRAMS = (("kafka.Kafka", "kafka"), ("valkey.conf", "valkey"), ("-m", "workers"))
_LONGEST_SECONDS = 900.0

Side = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""The function run by `mapInArrow`."""
Start = Callable[[SparkSession, Settings], StreamingQuery]
"""Starts a query over the whole of a topic."""


@dataclass(frozen=True, slots=True)
class Run:
    """Spark's report on a run, without its first micro-batch (tables are loaded, queries started)."""

    events: int
    seconds: float
    cpu: dict[str, float]
    """Microseconds of CPU per event of the whole run, by program: CPU stolen by others does not count."""

    @property
    def rate(self) -> float:
        """Events per second."""
        return self.events / self.seconds


def through(stream: Stream, side: Side) -> Start:
    """Return a start of a query that takes a stream's topic through a function to Kafka, as the evaluator does."""

    def start(spark: SparkSession, settings: Settings) -> StreamingQuery:
        source = read_stream(spark, stream, range(len(stream.start_offsets)), settings)
        return write_stream(source, side, stream.stream_id, settings)

    return start


def run(spark: SparkSession, start: Start, events: int, settings: Settings) -> Run:
    """Run a query until it has read a number of events; no other query may run.

    The session must keep the progress of all batches (``spark.sql.streaming.numRecentProgressUpdates``).
    """
    shutil.rmtree(checkpoint_location("", settings), ignore_errors=True)
    before = cpu_seconds()
    query = start(spark, settings)
    deadline = time.monotonic() + _LONGEST_SECONDS
    try:
        found: list[Any] = []
        while sum(batch["numInputRows"] for batch in found) < events:
            if (error := query.exception()) is not None:
                raise RuntimeError(f"a run failed: {error}")
            if time.monotonic() > deadline:
                raise RuntimeError(f"a run took longer than {_LONGEST_SECONDS:.0f} s")
            time.sleep(_LOOK_SECONDS)
            found = [batch for batch in query.recentProgress if batch["numInputRows"]]
    finally:
        query.stop()
    measured = found[1:]
    seconds = sum(batch["durationMs"]["triggerExecution"] for batch in measured) / 1000
    cpu = {name: (spent - before.get(name, 0.0)) * 1e6 / events for name, spent in cpu_seconds().items()}
    return Run(sum(batch["numInputRows"] for batch in measured), seconds, cpu)


def cpu_seconds() -> dict[str, float]:
    """Return the CPU seconds of Spark, its Python workers and the servers so far.

    Seconds of a process that has ended, such as an idle worker, are those of its parent.
    """
    spent: Counter[str] = Counter()
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            times, line = process.cpu_times(), process.cmdline()
            name = next((name for mark, name in _PROGRAMS if mark in line), "spark")
            spent[name] += times.user + times.system + times.children_user + times.children_system
    return dict(spent)
