"""The Spark application: its session, and how it ends."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from grouping.model.errors import OperationalError
from grouping.settings import Settings
from spark_jobs.worker.daemon import DRIVER_VARIABLE

__all__ = ["JAVA_OPTIONS", "archive_path", "jobs_started", "jvm_process", "kill_jvm", "open_session", "shared_classes"]

_LOCAL_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.FileSystemBasedCheckpointFileManager"
"""Spark's default forks some 42 processes per micro-batch on a local file system; it stays for object stores."""

_STOP_SECONDS = 5.0

JAVA_OPTIONS = "-XX:+UseParallelGC"
"""Of the driver. 15% less CPU an event than Java's default on two cores; the longer pauses are of a small heap."""

_OPTIONS = {
    "spark.driver.bindAddress": "127.0.0.1",
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
        "spark.driver.extraJavaOptions": f"{JAVA_OPTIONS} {shared_classes()}".rstrip(),
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


def shared_classes() -> str:
    """Return Java's options for this environment's archive of classes; none without one.

    An archive that does not fit is passed over, and nobody needs to hear of it.
    """
    archive = archive_path()
    if archive is None or not archive.is_file():
        return ""
    return f"-XX:SharedArchiveFile={archive} -Xlog:cds=off -Xlog:cds+dynamic=off"


def archive_path() -> Path | None:
    """Return where this environment's archive of Java classes is kept (`class_archive.py`), None without a Java."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin") if home else None)
    if java is None or any(map(str.isspace, sys.prefix)):
        return None
    program = Path(java).resolve()
    of = hashlib.sha256(f"{program}:{program.stat().st_mtime_ns}".encode()).hexdigest()[:12]
    return Path(sys.prefix) / "share" / "cq-gateway" / f"spark-{of}.jsa"


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
