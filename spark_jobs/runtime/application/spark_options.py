"""The options of the Spark session: options that the evaluator needs, options from settings, and further options."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Collection, Mapping
from importlib.metadata import version
from pathlib import Path

from grouping.model.errors import OperationalError
from grouping.settings.kafka_options import token_url
from grouping.settings.settings import Settings
from spark_jobs.runtime.worker.daemon import DRIVER_VARIABLE

__all__ = ["JAVA_OPTIONS", "SHUFFLE_PARTITIONS", "archive_path", "hidden_options", "shared_classes", "spark_options"]

_LOOPBACK = "127.0.0.1"

_LOCAL_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
"""The class that manages checkpoint files in local folders. Spark's default forks some 42 processes per micro-batch.

For checkpoints at a URL, Spark's default is used.
"""

JAVA_OPTIONS = "-XX:+UseParallelGC"
"""Java options of the driver. This garbage collector takes 15% less CPU for each event than the default.

Its pauses are short, because the heap is small.
"""

SHUFFLE_PARTITIONS = {"spark.sql.shuffle.partitions": "2"}
"""An option that Spark's offset log must name, although no query shuffles; the lane writes the same log."""

_JSON_LINES = "-Dlog4j2.configurationFile=org/apache/spark/log4j2-json-layout.properties"
"""The Java option by which the driver writes its log as JSON lines, in the layout of Spark.

Under pyspark, `spark.log.structuredLogging.enabled` does not change the driver's log.
"""

_OPTIONS = {
    # A task must never run twice at the same time, or readers might not see each result exactly once
    # (docs/design/015-tasks-write-to-kafka.md).
    "spark.speculation": "false",
    # Digest jobs have a pool (`digest_jobs.py`), and the lane has a pool (`lane_query.py`). All other streams share the
    # default pool, which serves the oldest job first. If each stream had its own pool, some streams would get no core,
    # because Spark orders pools with equally many running tasks by their names.
    "spark.scheduler.mode": "FAIR",
    # There is a worker for each core, so more threads in a worker would only wait for each other, and use 20% more CPU.
    "spark.executorEnv.POLARS_MAX_THREADS": "1",
    "spark.locality.wait": "0s",
    "spark.python.daemon.module": "spark_jobs.runtime.worker.daemon",
    "spark.python.worker.reuse": "true",
    # All micro-batches have the same plan and little work, so adaptive planning would only take more time.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    **SHUFFLE_PARTITIONS,
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

_SETTINGS = {
    "spark.app.name": "CQ_PREFIX",
    "spark.driver.bindAddress": "CQ_EVALUATOR_BIND_ADDRESS",
    "spark.driver.host": "CQ_EVALUATOR_DRIVER_HOST",
    "spark.driver.memory": "CQ_EVALUATOR_DRIVER_MEMORY",
    "spark.jars": "CQ_EVALUATOR_JARS",
    "spark.master": "CQ_EVALUATOR_MASTER",
    "spark.sql.streaming.pollingDelay": "CQ_EVALUATOR_POLL_MS",
}
"""Spark options that must be given by a setting of the evaluator, each with the setting's environment variable."""


def hidden_options(settings: Settings) -> dict[str, str]:
    """Return the session's options that may be secrets, and therefore must not be arguments of a process."""
    secret = settings.evaluator.spark_secret.get_secret_value()
    return (_guarded(secret) if secret else {}) | settings.evaluator.spark


def _guarded(secret: str) -> dict[str, str]:
    return {
        "spark.authenticate": "true",
        "spark.authenticate.secret": secret,
        "spark.network.crypto.enabled": "true",
    }


def spark_options(settings: Settings) -> dict[str, str]:
    """Return the options of the session: the evaluator's own options, and the further options of the settings.

    Raises:
        OperationalError: The jars are missing, or the master is not local although no secret is set. This error is also
            raised for a further option that the evaluator sets itself, and for a name that is no option of Spark.
    """
    evaluator = settings.evaluator
    allowed = _allowed_urls(settings)
    local = evaluator.master.startswith("local")
    _refuse_open_cluster(settings, local)
    json_lines = _JSON_LINES if settings.logs.form == "json" else ""
    options = {
        **_OPTIONS,
        "spark.driver.extraJavaOptions": " ".join(filter(None, (JAVA_OPTIONS, shared_classes(), allowed, json_lines))),
        "spark.master": evaluator.master,
        "spark.app.name": "-".join(filter(None, (settings.clients.evaluator, evaluator.name))),
        "spark.driver.memory": evaluator.driver_memory,
        "spark.jars": ",".join(_jars(evaluator.jars)),
        "spark.sql.streaming.pollingDelay": f"{evaluator.poll_ms}ms",
    }
    if allowed:
        options["spark.executor.extraJavaOptions"] = allowed
    if host := evaluator.driver_host or (_LOOPBACK if local else ""):
        options["spark.driver.host"] = host
    if address := evaluator.bind_address or (_LOOPBACK if local else ""):
        options["spark.driver.bindAddress"] = address
    if settings.logs.form == "json":
        options["spark.log.structuredLogging.enabled"] = "true"
    if "://" not in evaluator.checkpoints:
        options["spark.sql.streaming.checkpointFileManagerClass"] = _LOCAL_CHECKPOINTS
    if local:
        options[f"spark.executorEnv.{DRIVER_VARIABLE}"] = str(os.getpid())
    _refuse_own(evaluator.spark, {*options, *_SETTINGS})
    return options | hidden_options(settings)


def _refuse_open_cluster(settings: Settings, local: bool) -> None:
    """Raise an error if tasks, which hold secrets, would go to a cluster without authentication."""
    secret, given = settings.evaluator.spark_secret.get_secret_value(), settings.evaluator.spark
    if not local and not secret and "spark.authenticate" not in given:
        raise OperationalError(
            f'the Spark master "{settings.evaluator.master}" is not local, and there is no secret',
            detail="Whoever reaches driver and workers could read the settings, or run code.",
            hint='Set CQ_EVALUATOR_SPARK_SECRET_FILE, or spark.authenticate in CQ_EVALUATOR_SPARK: "true" on YARN, '
            'which makes a secret itself, "false" in a network of trusted machines.',
        )


def _refuse_own(given: Mapping[str, str], own: Collection[str]) -> None:
    """Raise an error if further options would change options that the evaluator sets, or are no options of Spark."""
    for name in given:
        if name in own:
            setting = _SETTINGS.get(name)
            raise OperationalError(
                f'the Spark option "{name}" is the evaluator\'s own',
                detail="The option is in the setting evaluator.spark (CQ_EVALUATOR_SPARK).",
                hint=f"Set {setting} instead." if setting else "Leave it out.",
            )
        if not name.startswith("spark."):
            raise OperationalError(
                f'"{name}" is no option of Spark',
                detail="The option is in the setting evaluator.spark (CQ_EVALUATOR_SPARK).",
                hint='Names begin with "spark.".',
            )


def _allowed_urls(settings: Settings) -> str:
    """Return the Java option that allows Kafka's client to request tokens; an empty text without OAUTHBEARER."""
    url = token_url(settings.kafka)
    return f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={url}" if url else ""


def shared_classes() -> str:
    """Return the Java options for this environment's archive of classes; an empty text if there is no archive.

    With these options, Java ignores an archive that does not fit, and writes no message.
    """
    archive = archive_path()
    if archive is None or not archive.is_file():
        return ""
    return f"-XX:SharedArchiveFile={archive} -Xlog:cds=off -Xlog:cds+dynamic=off"


def archive_path() -> Path | None:
    """Return the path of this environment's archive of Java classes (`class_archive.py`).

    The path is None if there is no Java, or if the environment's path contains a blank. Each Java and each version of
    pyspark has its own archive, because Java ignores an archive of other jars.
    """
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin") if home else None)
    if java is None or any(map(str.isspace, sys.prefix)):
        return None
    program = Path(java).resolve()
    of = hashlib.sha256(f"{program}:{program.stat().st_mtime_ns}".encode()).hexdigest()[:12]
    return Path(sys.prefix) / "share" / "cq-gateway" / f"spark-{version('pyspark')}-{of}.jsa"


def _jars(folder: str) -> list[str]:
    found = sorted(str(path) for path in Path(folder).glob("*.jar")) if folder else []
    if not any("spark-sql-kafka" in path for path in found):
        raise OperationalError(
            f'no Spark connector for Kafka in "{folder}"',
            detail="The setting evaluator.jars (CQ_EVALUATOR_JARS) names the folder of its jars.",
            hint="`make setup` fetches them.",
        )
    return found
