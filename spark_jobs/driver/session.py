"""The Spark application: its session, and how it ends."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from grouping.model.errors import OperationalError
from grouping.settings import Settings
from spark_jobs.driver.properties_file import properties_file
from spark_jobs.driver.spark_options import hidden_options, spark_options

__all__ = ["executor_count", "jobs_started", "jvm_process", "kill_jvm", "open_session"]

_STOP_SECONDS = 5.0


def open_session(settings: Settings, extra: dict[str, str] | None = None) -> SparkSession:
    """Start Spark, with Kafka's connector and our own worker daemon.

    Args:
        settings: Of the evaluator.
        extra: Further Spark options, which win.

    Raises:
        OperationalError: The jars are not there, an option is the evaluator's own, or Java or Spark did not start.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    hidden = hidden_options(settings)
    options = {name: value for name, value in spark_options(settings).items() if name not in hidden} | (extra or {})
    if host := options.get("spark.driver.host"):
        os.environ["SPARK_LOCAL_IP"] = host
    builder = SparkSession.builder
    for name, value in options.items():
        builder = builder.config(name, value)
    try:
        with properties_file(hidden):
            return builder.getOrCreate()
    except Exception as exc:  # py4j, pyspark and the operating system each have their own
        raise OperationalError(
            "spark did not start",
            detail=" ".join(str(exc).splitlines()[:2])
            or type(exc).__name__,  # py4j tells Java's exception in the second
            hint="Spark 4.0 needs Java 17 or 21 (JAVA_HOME, or java on the PATH), and options that it knows.",
        ) from exc


def jobs_started(spark: SparkSession) -> int:
    """Return how many jobs Spark has run so far: none for what is not evaluated."""
    return int(spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())  # noqa: SLF001  # the tracker forgets old ones


def executor_count(spark: SparkSession) -> int:
    """Return how many executors there are; with a local master the driver does their work, and there are none."""
    return int(spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size()) - 1  # noqa: SLF001  # pyspark has no way


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
