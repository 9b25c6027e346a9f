"""The sink: tasks write their records to Kafka themselves, and Spark only learns that the tasks have ended."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from grouping.settings.settings import Settings
from grouping.store.fence import Fence, FenceWatch
from spark_jobs.runtime.kafka.partition_runs import EachPartition
from spark_jobs.runtime.kafka.record_writer import record_writer

__all__ = [
    "Produce",
    "RecordWriting",
    "checkpoint_location",
    "fence_watch",
    "rows_location",
    "run_tasks",
    "write_all",
    "write_stream",
]

Produce = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""Makes rows of `spark_jobs.engine.rows.output.OUTPUT` from a task's input."""

_NOTHING = "nothing boolean"


@dataclass(frozen=True, slots=True)
class RecordWriting:
    """The function that `mapInArrow` runs: it yields no row, and ends when Kafka has all records."""

    produce: Produce
    settings: bytes
    """The `Settings`, pickled, since JSON would mask its secrets."""
    fence: Fence | None
    """The fence under which the task may write; None for writes that need no fence."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the records that `produce` makes from a task's input; yield nothing."""
        self._check()
        writer = record_writer(self.settings)
        for rows in self.produce(batches):
            writer.write(rows, self._check)
        writer.flush()
        yield from ()

    def _check(self) -> None:
        """Raise an error if another evaluator has taken the place of the task's evaluator."""
        if self.fence is not None:
            fence_watch(self.settings).check(self.fence)


@lru_cache(maxsize=4)
def fence_watch(settings: bytes) -> FenceWatch:
    """Return the worker's watch of fences, which lasts as long as the process."""
    return FenceWatch(pickle.loads(settings))


def checkpoint_location(source_id: str, settings: Settings) -> str:
    """Return the location of the checkpoint of a stream's query, named by the id of the source, not by its name."""
    base = settings.evaluator.checkpoints
    if not base:
        return f"{settings.data.absolute()}/checkpoints/{source_id}"
    # Other prefixes may have checkpoints in the same folder, and each prefix removes the checkpoints of its dropped
    # streams. So each prefix has a folder of its own.
    return f"{(base if '://' in base else str(Path(base).absolute())).rstrip('/')}/{settings.prefix}/{source_id}"


def rows_location(settings: Settings) -> str:
    """Return the folder, next to the checkpoints, in which workers store states of operators by the source's id."""
    base = settings.evaluator.checkpoints
    if not base:
        return f"{settings.data.absolute()}/last-rows"
    return f"{checkpoint_location('', settings).rstrip('/')}.last-rows"


def write_stream(
    events: DataFrame, produce: Produce, source_id: str, settings: Settings, fence: Fence | None = None
) -> StreamingQuery:
    """Start the query that writes the output for a stream's events; tasks write only while the fence is valid.

    A task calls `produce` for each of its source partitions.
    """
    return (
        events.mapInArrow(RecordWriting(EachPartition(produce), pickle.dumps(settings), fence), _NOTHING)
        .writeStream.format("noop")
        .queryName(source_id)
        .option("checkpointLocation", checkpoint_location(source_id, settings))
        .start()
    )


def run_tasks(
    spark: SparkSession, task: Produce, tasks: int, report_schema: str = _NOTHING, *, collect: bool = False
) -> list[str]:
    """Run a job of tasks that read and write Kafka themselves, and return the rows that the tasks yield.

    Args:
        spark: The session.
        task: The function of each task. Its input is a single row; it yields rows with a single text.
        tasks: The number of tasks.
        report_schema: The schema of the rows that the tasks yield; tasks without a report yield no rows.
        collect: Whether to return the rows, which takes some milliseconds; otherwise an empty list is returned.
    """
    rows = spark.range(0, tasks, 1, tasks).mapInArrow(task, report_schema)
    if collect:
        return [row[0] for row in rows.collect()]
    rows.write.format("noop").mode("append").save()
    return []


def write_all(rows: DataFrame, produce: Produce, settings: Settings, fence: Fence) -> None:
    """Write the digests that are made from some rows, by a single job; tasks write only while the fence is valid.

    Digests are compressed by gzip, as in the gateway.
    """
    results = settings.results.model_copy(update={"compression": "gzip"})
    settings = settings.model_copy(update={"results": results})
    written = rows.mapInArrow(RecordWriting(produce, pickle.dumps(settings), fence), _NOTHING)
    written.write.format("noop").mode("append").save()
