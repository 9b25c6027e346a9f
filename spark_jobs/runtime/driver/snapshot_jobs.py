"""Spark jobs that complete the snapshots of tables that do not change, because without changes there are no tasks."""

from __future__ import annotations

import logging
import pickle
import threading
import time
from collections.abc import Iterable, Iterator

import msgspec
import pyarrow as pa
from pyspark.sql import SparkSession

from grouping.model.catalog import Stream
from grouping.model.errors import OperationalError
from grouping.settings.assignment import Assignment
from grouping.settings.settings import Settings
from grouping.store.ownership import EvaluatorFences
from grouping.store.table_store import TableStore
from spark_jobs.runtime.kafka.sink import run_tasks
from spark_jobs.runtime.worker.worker import PROCESS, complete_snapshots

__all__ = ["SnapshotJobThread", "SnapshotTask"]

log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.3
_LONGEST_WAIT_SECONDS = 10.0
"""The longest wait after a failed job; the wait is doubled after each failure."""
_POOL = "digests"
"""The scheduler pool of these jobs. Streams are in other pools, so they keep their share of the cores."""


class SnapshotTask:
    """The function that `mapInArrow` runs: it completes the snapshots of one stream."""

    def __init__(self, stream: Stream, settings: Settings, fences: EvaluatorFences) -> None:
        """Pack the stream and the settings for the worker."""
        self._stream = msgspec.json.encode(stream)
        self._settings = pickle.dumps(settings)
        self._fences = fences

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the snapshots that are due, and return when Kafka has them; yields nothing.

        Raises:
            OperationalError: Kafka or Redis failed.
        """
        for _ in batches:
            pass  # the input only makes Spark run the task
        stream, settings = msgspec.json.decode(self._stream, type=Stream), pickle.loads(self._settings)
        complete_snapshots(stream, PROCESS.begin(stream, settings, self._fences), self._settings, self._fences)
        PROCESS.end()
        yield from ()


class SnapshotJobThread:
    """In a separate thread, looks for snapshots that queries must still get, and starts the jobs that complete them."""

    def __init__(self, spark: SparkSession, settings: Settings, fences: EvaluatorFences) -> None:
        """Prepare to look.

        Args:
            spark: The session.
            settings: The evaluator's settings.
            fences: The fences of the evaluator.
        """
        self._spark = spark
        self._settings = settings
        self._fences = fences
        self._assignment = Assignment.of(settings)
        self._store = TableStore(settings, fences)

    def start(self) -> None:
        """Start the thread."""
        threading.Thread(target=self._run, name="snapshot-jobs", daemon=True).start()

    def _run(self) -> None:
        self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", _POOL)
        wait = _LOOK_SECONDS
        while True:
            time.sleep(wait)
            try:
                for stream in self._streams():
                    tasks = len(stream.start_offsets)
                    run_tasks(self._spark, SnapshotTask(stream, self._settings, self._fences), tasks)
                wait = _LOOK_SECONDS
            except OperationalError:
                pass  # Redis does not answer: the thread that renews the lease decides whether the process ends
            except Exception as error:  # the exceptions of pyspark and py4j have no common base
                wait = min(2 * wait, _LONGEST_WAIT_SECONDS)
                reason = (str(error) or type(error).__name__).splitlines()[0]
                log.warning("snapshots not written, will be tried again", extra={"reason": reason})

    def _streams(self) -> list[Stream]:
        """Return this evaluator's streams with queries that must still get a snapshot."""
        stream_ids = {note.stream_id for note in self._store.snapshots.due().values()}
        if not stream_ids:
            return []
        mine = self._settings.evaluator.name
        streams = [stream for stream in self._store.streams() if stream.stream_id in stream_ids]
        return [stream for stream in streams if self._assignment.evaluator_of(stream.name) == mine]
