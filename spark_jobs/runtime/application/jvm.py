"""The JVM of this evaluator's driver: Python starts the JVM, or, with `spark-submit`, the JVM starts Python."""

from __future__ import annotations

import os
import subprocess
from typing import Any

import psutil
from pyspark import SparkContext

__all__ = ["SUBMITTED", "end_jvm", "is_alive", "jvm_process", "started_jvm"]

SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""The environment variable that `spark-submit` sets for the Python program."""

_STOP_SECONDS = 5.0


def _submitter() -> psutil.Process | None:
    """Return the JVM that started this process; looked up once, because an orphan gets another parent."""
    if SUBMITTED not in os.environ:
        return None  # the first process of a container has no parent to look at
    parent = psutil.Process(os.getppid())
    return parent if parent.name() == "java" else None


_SUBMITTER = _submitter()


def started_jvm() -> subprocess.Popen[bytes] | None:
    """Return the JVM that this process started; None if there is none."""
    gateway: Any = SparkContext._gateway  # noqa: SLF001  # pyspark has no public way to its process
    return getattr(gateway, "proc", None)


def jvm_process() -> psutil.Process | None:
    """Return the JVM; None if there is none yet. Under `spark-submit` the JVM is the parent of this process."""
    if _SUBMITTER is not None:
        return _SUBMITTER
    started = started_jvm()
    try:
        return None if started is None else psutil.Process(started.pid)
    except psutil.NoSuchProcess:
        return None


def is_alive(process: psutil.Process) -> bool:
    """Tell whether a process runs. An ended process still exists, as a zombie, until its parent waits for it."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def end_jvm() -> None:
    """End the JVM and its workers. A JVM that does not end in time after the request is killed.

    Queries need not be stopped first, since an uncommitted micro-batch is replayed from the checkpoint in any case.
    """
    process = jvm_process()
    if process is None or not is_alive(process):
        return
    try:
        process.terminate()
        process.wait(_STOP_SECONDS)
    except psutil.TimeoutExpired:
        process.kill()
        process.wait()
    except psutil.NoSuchProcess:
        return
