"""The Spark queries of single streams. Each query begins where the stream's evaluation ended before."""

from __future__ import annotations

import logging

import msgspec
from pyspark.sql import SparkSession

from grouping.model.errors import OperationalError
from grouping.settings.settings import Settings
from grouping.store.ownership import EvaluatorFences
from grouping.store.table_store import TableStore
from spark_jobs.runtime.application.session import core_count
from spark_jobs.runtime.kafka.broker import Broker, SourceForm
from spark_jobs.runtime.kafka.sink import write_stream
from spark_jobs.runtime.kafka.source import read_stream
from spark_jobs.runtime.streams.checkpoint import Checkpoint
from spark_jobs.runtime.streams.evaluated_stream import EvaluatedStream
from spark_jobs.runtime.streams.lane import Evaluate
from spark_jobs.runtime.streams.progress import Progress
from spark_jobs.runtime.streams.query_use import QueryUse
from spark_jobs.runtime.streams.resumption import resume

__all__ = ["StreamQueries"]

log = logging.getLogger(__name__)

_STEADY_SECONDS = 10.0
"""After a start, an earlier failure is still shown for this time, or until a micro-batch is committed."""
_TASKS_PER_CORE = 4
"""The largest number of a query's tasks in a micro-batch, for each core.

Each task takes some hundredths of a second in addition to the time for its source partitions. With fewer tasks, other
streams would wait longer for a core, and a core could be idle while another core still has a long task.
"""


class StreamQueries:
    """Starts the query of a stream that does not share the lane."""

    def __init__(
        self,
        spark: SparkSession,
        settings: Settings,
        fences: EvaluatorFences,
        store: TableStore,
        broker: Broker,
        evaluate: Evaluate,
        use: QueryUse,
    ) -> None:
        """Begin without a query.

        Args:
            spark: The session.
            settings: The evaluator's settings.
            fences: The fences under which tasks write.
            store: Redis, for the progress of streams.
            broker: Kafka, with the source topics.
            evaluate: Returns the function that a stream's tasks run.
            use: Tells which streams need headers.
        """
        self._spark = spark
        self._settings = settings
        self._fences = fences
        self._store = store
        self._broker = broker
        self._evaluate = evaluate
        self._use = use

    def start(
        self, running: EvaluatedStream, checkpoint: Checkpoint, form: SourceForm, now: float, *, cautious: bool
    ) -> None:
        """Start the query of a stream.

        Args:
            running: The stream.
            checkpoint: The stream's checkpoint.
            form: The partitions, offsets and id of the stream's topic.
            now: Monotonic seconds.
            cautious: Whether the tasks must find out which work unit kills workers.

        Raises:
            OperationalError: Redis, Kafka or the checkpoint's file system does not answer, or the query did not start.
        """
        stream = running.stream
        position = resume(stream, checkpoint, self._store, self._broker)
        progress = Progress(stream, position, self._store, self._broker)
        progress.tell()
        # Deleted records are reported here, because the query's first batch begins after them without any message.
        progress.report_deleted(form.earliest)
        try:
            going_on = msgspec.structs.replace(stream, start_offsets=stream.positions(position.offsets))
            begun = checkpoint.begun_elsewhere(stream.source_id)
            evaluate = self._evaluate(stream, cautious, checkpoint.earlier_ends(), begun)
            headers = self._use.has_headers(stream)
            tasks = _TASKS_PER_CORE * core_count(self._spark)
            source = read_stream(self._spark, going_on, form.partitions, self._settings, headers=headers)
            fence = self._fences.stream(stream.stream_id)
            running.query = write_stream(source.coalesce(tasks), evaluate, stream.source_id, self._settings, fence)
        except Exception as exc:  # exceptions of pyspark and py4j have no common base
            raise OperationalError("a query did not start", detail=str(exc).splitlines()[0]) from exc
        running.progress, running.batch_at_start = progress, progress.batch
        running.has_headers, running.tasks = headers, tasks
        running.committed_at = now
        running.steady_at = now + _STEADY_SECONDS
        log.info(
            "stream started", extra={"stream": stream.name, "stream_id": stream.stream_id, "batch": progress.batch}
        )

    def is_outdated(self, running: EvaluatedStream, cores: int) -> bool:
        """Tell whether a stream's own query must start again, to read headers or to use further cores.

        An evaluator starts queries before all executors of its cluster have registered.

        Args:
            running: The stream.
            cores: The number of tasks that can run at once.
        """
        return (not running.has_headers and self._use.has_headers(running.stream)) or (
            running.tasks < min(running.partitions, _TASKS_PER_CORE * cores)
        )
