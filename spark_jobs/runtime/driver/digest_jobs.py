"""Spark jobs that write the digests of a tick with very many destinations, at the gateway's request."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable

from pyspark.sql import SparkSession

from grouping.digests.jobs import DigestJobs as Requests
from grouping.digests.jobs import Job
from grouping.digests.orders import ORDERS
from grouping.model.errors import OperationalError
from grouping.settings.kafka_options import java_options
from grouping.settings.settings import Settings
from grouping.store.ownership import EvaluatorFences
from spark_jobs.runtime.kafka.sink import write_all
from spark_jobs.runtime.kafka.source import FETCHES
from spark_jobs.runtime.streams.worker_deaths import failure_reason
from spark_jobs.runtime.worker.digest_task import DigestTask
from spark_jobs.runtime.worker.row_digest_task import RowDigestTask

__all__ = ["DigestJobThread", "write_digests"]

log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.3
_AGAIN_SECONDS = 2.0
"""The pause after a failed job with digests of a table's rows, before the job is carried out again."""
_POOL = "digests"
_OFFSETS_A_TASK = 4
"""The number of offsets of `cq.orders` for a task: two orders, each followed by the marker of its transaction.

A task with two orders takes a fraction of a second. This is short enough for micro-batches that wait for the core.
"""


class DigestJobThread:
    """Looks for requested digest jobs in a separate thread, and carries them out one after the other."""

    def __init__(
        self, spark: SparkSession, settings: Settings, fences: EvaluatorFences, failed: Callable[[], None]
    ) -> None:
        """Prepare to look.

        Args:
            spark: The session.
            settings: The evaluator's settings.
            fences: The fences of the evaluator. A request names the token of the evaluator's lease, and only the holder
                of this lease may carry it out.
            failed: Is called in this thread when a job of several tasks has failed. The function must end the JVM and
                the process, because other tasks of the job may go on writing for a while.
        """
        self._spark = spark
        self._settings = settings
        self._fences = fences
        self._failed = failed
        self._requests = Requests(settings)

    def start(self) -> None:
        """Start the thread."""
        threading.Thread(target=self._run, name="digest-jobs", daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                job = self._taken()
            except OperationalError:
                job = None  # Redis is away: the thread that renews the lease decides what follows
            if job is None:
                time.sleep(_LOOK_SECONDS)
                continue
            try:
                write_digests(self._spark, self._settings, job, self._fences)
            except Exception as error:  # the exceptions of pyspark and py4j have no common base
                if job.of_rows:
                    # The job's only task and its process have ended, so nothing goes on writing. The task counts how
                    # often each order was begun, and leaves the order's digests out after too many tries.
                    reason = failure_reason(str(error) or type(error).__name__)
                    log.warning("digests of rows not written, will be tried again", extra={"reason": reason})
                    time.sleep(_AGAIN_SECONDS)
                    continue
                log.exception("a digest job failed")
                self._failed()
                return
            self._tell(job)

    def _taken(self) -> Job | None:
        job = self._requests.look()
        if job is None or job.evaluator != self._fences.lease.token or job.state == "done":
            return None
        # The job is already taken if the reply to an earlier call was lost. A repeated job writes the same records.
        return self._requests.change(job, "taken")

    def _tell(self, job: Job) -> None:
        """Report that a job is done. A gateway that finds no such report in Redis requests the job again."""
        while True:
            try:
                self._requests.change(job, "done")
                return
            except OperationalError:
                time.sleep(_LOOK_SECONDS)


def write_digests(spark: SparkSession, settings: Settings, job: Job, fences: EvaluatorFences) -> None:
    """Write the digests for a range of orders, and the answers to the orders, by a Spark job."""
    begun = time.monotonic()
    # The job has a pool of its own, so that streams keep their share of the cores.
    spark.sparkContext.setLocalProperty("spark.scheduler.pool", _POOL)
    topic, tasks = settings.topics.orders, 1 if job.of_rows else -(-(job.end - job.first) // _OFFSETS_A_TASK)
    source = (
        java_options(settings.kafka)
        | FETCHES
        | {
            "assign": json.dumps({topic: [ORDERS]}),
            "startingOffsets": json.dumps({topic: {str(ORDERS): job.first}}),
            "endingOffsets": json.dumps({topic: {str(ORDERS): job.end}}),
            "minPartitions": str(tasks),
            "kafka.isolation.level": "read_committed",
            # Orders are deleted only after they are closed, so a job does not need deleted orders.
            "failOnDataLoss": "false",
        }
    )
    orders = spark.read.format("kafka").options(**source).load().select("offset", "value")
    task = RowDigestTask.of(settings, fences) if job.of_rows else DigestTask.of(settings)
    write_all(orders, task, settings, fences.lease)
    log.info("digests written", extra={"orders": job.end - job.first, "seconds": round(time.monotonic() - begun, 2)})
