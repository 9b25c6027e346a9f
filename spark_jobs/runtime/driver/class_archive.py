"""Makes an archive of the Java classes that an evaluator loads. A JVM with an archive does not parse the jars.

Application class-data sharing (JEP 350) nearly halves the CPU time of Spark's start, which matters most when another
evaluator must take over after a death. The command ``python -m spark_jobs.runtime.driver.class_archive`` makes the
archive, once for each Python environment and Java version. Without an archive, or with an archive of other jars, the
JVM starts as usual.
"""

from __future__ import annotations

import logging
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from grouping.model.errors import OperationalError
from grouping.settings.settings import Settings
from spark_jobs.runtime.application.jvm import started_jvm
from spark_jobs.runtime.application.session import open_session
from spark_jobs.runtime.application.spark_options import JAVA_OPTIONS, archive_path

__all__ = ["main", "make_archive"]

_DUMP_SECONDS = 300.0


def make_archive(settings: Settings) -> Path | None:
    """Run a small stream in a JVM that writes an archive of its classes when it ends.

    If there is an archive already, nothing is run.

    Args:
        settings: `evaluator.jars` is the folder with the jars of the Kafka connector.

    Returns:
        The path of the archive; None if there is no archive.

    Raises:
        OperationalError: Spark does not start.
    """
    path = archive_path()
    if path is None or path.is_file():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        made = Path(folder) / path.name
        options = f"{JAVA_OPTIONS} -XX:ArchiveClassesAtExit={made} -Xlog:cds=off -Xlog:cds+dynamic=off"
        spark = open_session(settings, {"spark.driver.extraJavaOptions": options})
        process = started_jvm()
        _run_a_stream(spark, Path(folder))
        spark.stop()
        if process is not None and process.stdin is not None:
            process.stdin.close()  # then pyspark's JVM exits normally, and writes the archive
            process.wait(_DUMP_SECONDS)
        if made.is_file():
            made.replace(path)
    return path if path.is_file() else None


def _run_a_stream(spark: SparkSession, folder: Path) -> None:
    """Run a micro-batch of a stream, so that the JVM also loads the classes that start Python workers."""
    rows = spark.readStream.format("rate").option("rowsPerSecond", 100).load().selectExpr("value")
    writing = rows.mapInArrow(_nothing, "nothing boolean").writeStream.format("noop")
    query = writing.option("checkpointLocation", str(folder / "checkpoint")).start()
    try:
        query.processAllAvailable()
        query.awaitTermination(1)
    finally:
        query.stop()


def _nothing(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        yield from ()


def main() -> None:
    """Make the archive. Evaluators start without an archive too, so a failure is only printed."""
    logging.getLogger("py4j").setLevel(logging.ERROR)
    try:
        path = make_archive(Settings())
    except OperationalError as error:
        print(f"no archive of Java classes: {error.message}", file=sys.stderr)
        return
    print(path or "no archive of Java classes")


if __name__ == "__main__":
    main()
