"""Starts the Spark application, reads its figures, and limits what the JVM logs."""

from __future__ import annotations

import logging
import os
import sys
import threading
from contextlib import suppress
from socketserver import BaseServer
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from grouping.model.errors import OperationalError
from grouping.settings.settings import Settings
from spark_jobs.runtime.application.jvm import SUBMITTED
from spark_jobs.runtime.application.properties_file import properties_file
from spark_jobs.runtime.application.spark_options import hidden_options, spark_options
from spark_jobs.runtime.application.submission import options_left

__all__ = ["core_count", "executor_count", "jobs_started", "open_session", "say_lost_connections_once", "silence_jvm"]

log = logging.getLogger(__name__)

_SILENCE_SECONDS = 1.0


def open_session(settings: Settings, extra: dict[str, str] | None = None) -> SparkSession:
    """Start Spark, with Kafka's connector and our own worker daemon.

    Args:
        settings: The evaluator's settings.
        extra: Further Spark options, which take precedence.

    Raises:
        OperationalError: The jars are missing, an option is reserved for the evaluator or contradicts `spark-submit`,
            or Java or Spark did not start.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    own, hidden = spark_options(settings), hidden_options(settings)
    if SUBMITTED in os.environ:
        SparkContext._ensure_initialized()  # noqa: SLF001  # pyspark has no public way to spark-submit's options
        options, hidden = options_left(own | (extra or {}), dict(SparkConf().getAll())), {}
    else:
        options = {name: value for name, value in own.items() if name not in hidden} | (extra or {})
    if host := options.get("spark.driver.host"):
        os.environ["SPARK_LOCAL_IP"] = host
    builder = SparkSession.builder
    for name, value in options.items():
        builder = builder.config(name, value)
    try:
        with properties_file(hidden):
            spark = builder.getOrCreate()
        _say_failures_once(spark)
        say_lost_connections_once(spark.sparkContext._accumulatorServer)  # noqa: SLF001  # pyspark has no other way
        return spark
    except Exception as exc:  # py4j, pyspark and the operating system each raise exceptions of their own
        raise OperationalError(
            "spark did not start",
            detail=" ".join(str(exc).splitlines()[:2])
            or type(exc).__name__,  # py4j has Java's exception in the second line
            hint="Spark 4.2 needs Java 17 or 21 (JAVA_HOME, or java on the PATH), and options that it knows.",
        ) from exc


_REPEATING = (
    "org.apache.spark.executor.Executor",
    "org.apache.spark.scheduler.TaskSetManager",
    "org.apache.spark.sql.execution.datasources.v2.DataWritingSparkTask",
    "org.apache.spark.sql.execution.datasources.v2.WriteToDataSourceV2Exec",
    "org.apache.spark.util.Utils",
)
"""Loggers that write the stack trace of a failed task, even if the task was killed because its stream was dropped.

These loggers are turned off: `MicroBatchExecution` logs the same stack trace when the task's query fails.
"""


def _say_failures_once(spark: SparkSession) -> None:
    """Make the JVM log a query's failure with one stack trace instead of five, and a stream's end with none."""
    log4j = spark._jvm.org.apache.logging.log4j  # type: ignore[union-attr]  # noqa: SLF001  # pyspark has no other way
    for name in _REPEATING:
        log4j.core.config.Configurator.setLevel(name, log4j.Level.OFF)


def say_lost_connections_once(server: BaseServer) -> None:
    """Make the server of Spark's accumulators write a single log line when the JVM's death cuts a connection."""

    def handle_error(request: object, client_address: object) -> None:  # noqa: ARG001  # socketserver calls it by place
        log.warning("the JVM has left a connection", extra={"cause": type(sys.exception()).__name__})

    server.handle_error = handle_error  # type: ignore[method-assign]


def silence_jvm() -> None:
    """Stop the JVM's logging before the JVM ends, because each micro-batch under way would log a stack trace.

    A JVM that does not answer within a second goes on logging.
    """
    jvm: Any = SparkContext._jvm  # noqa: SLF001  # pyspark has no other way

    def silence() -> None:
        with suppress(Exception):  # py4j raises one if the JVM has ended
            log4j = jvm.org.apache.logging.log4j
            log4j.core.config.Configurator.setAllLevels("", log4j.Level.OFF)

    if jvm is not None:
        asking = threading.Thread(target=silence, name="silence", daemon=True)
        asking.start()
        asking.join(_SILENCE_SECONDS)


def jobs_started(spark: SparkSession) -> int:
    """Return the number of jobs that Spark has started so far."""
    return int(spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())  # noqa: SLF001  # the tracker forgets old ones


def core_count(spark: SparkSession) -> int:
    """Return the number of tasks that can run at once; on a standalone cluster, the number of its executors' cores."""
    return spark.sparkContext.defaultParallelism


def executor_count(spark: SparkSession) -> int:
    """Return the number of executors; 0 with a local master, where the driver runs the tasks."""
    return int(spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size()) - 1  # noqa: SLF001  # pyspark has no way
