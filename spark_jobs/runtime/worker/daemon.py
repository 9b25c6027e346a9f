"""The daemon that forks Spark's Python workers, with five changes; Spark starts it as ``spark.python.daemon.module``.

- At each task, pyspark's worker reads the directories of all archives on its path again, which takes 120 ms of CPU for
  Spark's own archives (``pyspark.zip``, ``py4j-….zip``, a ``.jar``). The daemon removes these archives from the path,
  since pyspark can be imported without them. The ``.zip`` with our own code, from `spark-submit --py-files`, stays.
- Before it forks, the daemon imports the modules that every worker needs. The daemon prevents the import of pandas,
  which pyarrow would otherwise import.
- pyspark's worker collects garbage after each task. A collection that visits all modules takes 50 ms of CPU and delays
  the next task. Here collections skip the objects that were loaded before the fork or by the worker (`garbage`).
- The daemon and its workers end when their parent process is gone, and the daemon kills the JVM when the driver is
  gone: two evaluators on one checkpoint would break exactly-once.
- A worker ends without a stack trace in the log when Spark has cancelled its task and closed the connection.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
import threading
import time
import zipimport
from collections.abc import Callable
from socket import socket

import psutil

from grouping.process.log_lines import log_to
from grouping.process.without_pandas import spare_pandas
from grouping.settings.settings import Settings
from spark_jobs.runtime.worker.garbage import settle

__all__ = ["DRIVER_VARIABLE", "drop_archives", "main"]

DRIVER_VARIABLE = "CQ_DRIVER_PID"
"""Environment variable with the process id of the driver, if the driver runs on the same machine."""

_LOOK_EVERY_SECONDS = 0.5

_SPARKS_OWN = re.compile(r"((^|/)(pyspark|py4j-[^/]*)\.zip|\.jar)(/|$)")
"""Matches the archives that Spark puts on the path, and folders in them, such as the folder ``org`` in a jar."""


def drop_archives() -> None:
    """Remove Spark's own archives from the path."""
    sys.path[:] = [entry for entry in sys.path if not _SPARKS_OWN.search(entry)]
    cache = sys.path_importer_cache
    for entry, finder in list(cache.items()):
        if isinstance(finder, zipimport.zipimporter) and _SPARKS_OWN.search(entry):
            del cache[entry]


def _end_with_parent() -> None:
    """End this process soon after its parent has ended.

    The parent is polled, because the kernel's death signal would come when the JVM's thread that started this process
    ends, not when the JVM ends.
    """
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_EVERY_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()


def _end_with_driver() -> None:
    """Kill the JVM when the driver is gone; this daemon and its workers then end, too."""
    driver = os.environ.get(DRIVER_VARIABLE)
    if driver is None:
        return
    jvm = os.getppid()

    def watch() -> None:
        while psutil.pid_exists(int(driver)):
            time.sleep(_LOOK_EVERY_SECONDS)
        os.kill(jvm, signal.SIGKILL)

    threading.Thread(target=watch, name="driver-watch", daemon=True).start()


def _ends_with_connection(worker: Callable[[socket, bool], int]) -> Callable[[socket, bool], int]:
    """Return pyspark's function for a task, with an exit code in place of an error when Spark closes the connection."""

    def run(connection: socket, authenticated: bool) -> int:
        try:
            return worker(connection, authenticated)
        except EOFError:
            return 1

    return run


def main() -> None:
    """Run the daemon until Spark closes its standard input."""
    drop_archives()
    spare_pandas()
    import numpy.ma  # noqa: F401  # for the workers, like the last two imports: pyarrow's first array needs this module
    import pyspark.daemon

    import spark_jobs.runtime.kafka.sink  # noqa: F401
    import spark_jobs.runtime.worker.worker  # noqa: F401

    log_to(sys.stderr, logging.WARNING, Settings().logs.form)
    settle()
    os.register_at_fork(after_in_child=_end_with_parent)
    _end_with_parent()
    _end_with_driver()
    pyspark.daemon.worker = _ends_with_connection(pyspark.daemon.worker)  # type: ignore[assignment]  # its names
    pyspark.daemon.manager()


if __name__ == "__main__":
    main()
