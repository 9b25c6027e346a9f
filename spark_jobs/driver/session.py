"""The Spark application: its session, and how it ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from grouping.model.errors import OperationalError
from grouping.settings import Settings
from spark_jobs.worker.daemon import DRIVER_VARIABLE

__all__ = ["jobs_started", "jvm_process", "kill_jvm", "open_session"]

_LOCAL_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.FileSystemBasedCheckpointFileManager"
"""Spark's default forks some 42 processes per micro-batch on a local file system; it stays for object stores."""

_STOP_SECONDS = 5.0

_OPTIONS = {
    "spark.driver.bindAddress": "127.0.0.1",
    # 15% less CPU an event than Java's default on two cores; its longer pauses are of a small heap.
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
    "spark.driver.host": "127.0.0.1",
    # A task that runs twice at once could write a result after the mark that a reader keeps (design §6).
    "spark.speculation": "false",
    # Each stream's batches get their share: one that catches up doesn't hold up the others.
    "spark.scheduler.mode": "FAIR",
    # There is a worker for each core: more threads in each only wait for each other, at a fifth more CPU.
    "spark.executorEnv.POLARS_MAX_THREADS": "1",
    "spark.locality.wait": "0s",
    "spark.python.daemon.module": "spark_jobs.worker.daemon",
    "spark.python.worker.reuse": "true",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    # What a batch runs is small, and the same each time: planning and starting it is what counts.
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.streaming.numRecentProgressUpdates": "2",
    "spark.sql.ui.retainedExecutions": "1",
    "spark.ui.enabled": "false",
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "100",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}


def open_session(settings: Settings, extra: dict[str, str] | None = None) -> SparkSession:
    """Start Spark, with Kafka's connector and our own worker daemon.

    Args:
        settings: Of the evaluator.
        extra: Further Spark options, which win.

    Raises:
        OperationalError: The jars are not there, or Java or Spark did not start.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    options = {
        **_OPTIONS,
        "spark.master": settings.evaluator.master,
        "spark.app.name": settings.clients.evaluator,
        "spark.driver.memory": settings.evaluator.driver_memory,
        "spark.jars": ",".join(_jars(settings.evaluator.jars)),
        "spark.sql.streaming.pollingDelay": f"{settings.evaluator.poll_ms}ms",
    }
    if "://" not in str(settings.data):
        options["spark.sql.streaming.checkpointFileManagerClass"] = _LOCAL_CHECKPOINTS
    if settings.evaluator.master.startswith("local"):
        options[f"spark.executorEnv.{DRIVER_VARIABLE}"] = str(os.getpid())
    builder = SparkSession.builder
    for name, value in (options | (extra or {})).items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except Exception as exc:  # py4j, pyspark and the operating system each have their own
        raise OperationalError(
            "spark did not start",
            detail=str(exc).splitlines()[0] if str(exc) else type(exc).__name__,
            hint="Spark 4.0 needs Java 17 or 21 (JAVA_HOME, or java on the PATH).",
        ) from exc


def _jars(folder: str) -> list[str]:
    found = sorted(str(path) for path in Path(folder).glob("*.jar")) if folder else []
    if not any("spark-sql-kafka" in path for path in found):
        raise OperationalError(
            f'no Spark connector for Kafka in "{folder}"',
            detail="The setting evaluator.jars (CQ_EVALUATOR_JARS) names the folder of its jars.",
            hint="`make setup` fetches them.",
        )
    return found


def jobs_started(spark: SparkSession) -> int:
    """Return how many jobs Spark has run so far: none for what is not evaluated."""
    return int(spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())  # noqa: SLF001  # the tracker forgets old ones


def jvm_process() -> subprocess.Popen[bytes] | None:
    """Return the JVM that this process started, None when there is none."""
    gateway: Any = SparkContext._gateway  # noqa: SLF001  # pyspark has no public way to its process
    return getattr(gateway, "proc", None)


def kill_jvm() -> None:
    """End the JVM and its workers for certain: asked first, killed when it takes its time.

    Queries are not stopped one by one: what a batch had not committed is replayed from the checkpoint in any case.
    """
    process = jvm_process()
    if process is None or process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
