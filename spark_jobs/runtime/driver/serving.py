"""The evaluator's work once Spark runs: keep its queries in line with the streams in Redis, and report its state."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from prometheus_client import REGISTRY
from pyspark.sql import SparkSession

from grouping.model.errors import OperationalError
from grouping.settings.settings import Settings
from grouping.store.ownership import EvaluatorFences, Ownership
from grouping.store.quarantine import QuarantineStore
from grouping.store.role_notes import RoleNotes
from grouping.store.table_store import TableStore
from spark_jobs.runtime.application.executor_resources import executors_note
from spark_jobs.runtime.application.jvm import is_alive, jvm_process
from spark_jobs.runtime.application.session import core_count, executor_count, jobs_started
from spark_jobs.runtime.driver.digest_jobs import DigestJobThread
from spark_jobs.runtime.driver.executors import Executors
from spark_jobs.runtime.driver.metrics import StreamMetrics
from spark_jobs.runtime.driver.snapshot_jobs import SnapshotJobThread
from spark_jobs.runtime.driver.status_file import EvaluatorStatusFile
from spark_jobs.runtime.driver.warm_up import warm_up
from spark_jobs.runtime.kafka.broker import Broker
from spark_jobs.runtime.streams.streams import Streams
from spark_jobs.runtime.streams.worker_deaths import WorkerDeaths
from spark_jobs.runtime.worker.worker import Evaluation

__all__ = ["serve"]

log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.3
_STATUS_SECONDS = 1.0


def serve(
    spark: SparkSession,
    settings: Settings,
    fences: EvaluatorFences,
    status: EvaluatorStatusFile,
    metrics_url: str,
    digests_failed: Callable[[], None],
    *,
    warm: bool,
) -> None:
    """Evaluate every stream until the JVM ends.

    Args:
        spark: The session.
        settings: The evaluator's settings.
        fences: The fences for its writes.
        status: The file with the evaluator's state.
        metrics_url: The URL of the evaluator's metrics.
        digests_failed: Is called when a digest job has failed; must end the process (`DigestJobThread`).
        warm: Whether batches were already run as a warm-up.

    Raises:
        OperationalError: The JVM has ended, or the cluster no longer gives the evaluator any executors.
    """
    jvm = jvm_process()
    executors = Executors(partial(executor_count, spark), time.monotonic)
    broker, notes, store = Broker(settings), RoleNotes(settings), TableStore(settings, fences)
    options = dict(spark.sparkContext.getConf().getAll())
    streams = Streams(
        spark,
        settings,
        Ownership(settings, fences),
        store,
        broker,
        lambda stream, cautious, single_ends, begun: Evaluation.of(
            stream, settings, cautious=cautious, ends=single_ends, fences=fences, begun=begun
        ),
        WorkerDeaths(QuarantineStore(settings, fences), lambda: time.time_ns() // 1_000_000),
        time.monotonic,
    )
    DigestJobThread(spark, settings, fences, digests_failed).start()
    SnapshotJobThread(spark, settings, fences).start()
    try:
        for _ in streams.reconcile():  # before the warm-up, as events may wait since an earlier evaluator's death
            status.still()
    except OperationalError as error:
        log.info("no streams yet", extra={"reason": error.line})
    # If events wait, their first batch has the effect of a warm-up.
    if not (warm or any(each["behind"] for each in streams.status().values())):
        warm_up(spark, settings, broker)
    known = streams.status()
    REGISTRY.register(StreamMetrics(lambda: known))
    log.info("evaluator ready")
    state, written_at = "starting", 0.0
    while jvm is None or is_alive(jvm):
        before = state
        try:
            for _ in streams.reconcile():
                status.still()
            state = "ready"
        except OperationalError as error:
            if state != "waiting":
                log.warning("streams stay as they are", extra={"reason": error.line})
            state = "waiting"
        if state != before or time.monotonic() - written_at >= _STATUS_SECONDS:
            written_at = time.monotonic()
            known = streams.status()
            count = executors.check(awaited=any(each["behind"] for each in known.values()))
            report: dict[str, Any] = {"streams": known, "metrics_url": metrics_url}
            status.write(state, jobs=jobs_started(spark), **report)
            if state == "ready":  # otherwise Redis does not answer, or is being filled by the gateway
                with suppress(OperationalError):
                    notes.tell("evaluator", state, report, settings.evaluator.name)
                    store.tell_executors(executors_note(options, core_count(spark), count))
        time.sleep(_LOOK_SECONDS)
    raise OperationalError("the JVM of Spark has ended")
