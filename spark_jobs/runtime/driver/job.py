"""The evaluator's process: ``python -m spark_jobs.runtime.driver.job``; settings come from the environment."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NoReturn

from pyspark.sql import SparkSession

from grouping.model.errors import OperationalError
from grouping.process.json_output import drain_output, log_to_standard_error
from grouping.process.log_lines import change_level_by_signals
from grouping.process.metrics_server import MetricsServer
from grouping.settings.given_settings import given_settings
from grouping.settings.settings import Settings
from spark_jobs.runtime.application.jvm import end_jvm, jvm_process
from spark_jobs.runtime.application.session import open_session, silence_jvm
from spark_jobs.runtime.driver.leadership import Leadership
from spark_jobs.runtime.driver.predecessor import end_predecessor, held, note_jvm
from spark_jobs.runtime.driver.status_file import EvaluatorStatusFile

__all__ = ["STATUS_VARIABLE", "main"]

log = logging.getLogger(__name__)

STATUS_VARIABLE = "CQ_STATUS_FILE"
"""Environment variable with the path of the file for the evaluator's state."""

_ending = threading.Event()
"""Whether the process is ending normally. Failures that the end of the JVM causes are then ignored."""


def main() -> NoReturn:
    """Run until a signal, or until the lease or the JVM is lost."""
    logging.getLogger("py4j").setLevel(logging.ERROR)
    try:
        settings = given_settings()
    except OperationalError as error:
        _refuse(error.line)
    log_to_standard_error(settings.logs.level, settings.logs.form)
    change_level_by_signals(settings.logs.level)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _ended)
    code = 1
    leadership = Leadership(settings, time.monotonic, partial(_end, "lease lost"))
    try:
        with held(settings.data, settings.prefix):
            _run(
                settings,
                leadership,
                EvaluatorStatusFile(Path(os.environ.get(STATUS_VARIABLE) or settings.data / "run" / "evaluator.json")),
            )
    except SystemExit:
        code = 0
    except OperationalError as error:
        print(f"cq evaluator: {error.line}", file=sys.stderr)
    except Exception:
        log.exception("evaluator failed")
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    _ending.set()
    _silence()
    silence_jvm()
    end_jvm()
    leadership.release()
    os._exit(code)


def _run(settings: Settings, leadership: Leadership, status: EvaluatorStatusFile) -> None:
    port = settings.metrics.evaluator_port
    metrics = MetricsServer(settings.metrics.address, port, status.role_state, role="evaluator")
    status.write("starting", metrics_url=metrics.url)
    end_predecessor(settings.data)
    with ThreadPoolExecutor(1) as starter:
        opening: Future[tuple[SparkSession, bool]] | None = None
        # On a cluster, the Spark application of a standby evaluator would take executors from the active evaluator.
        if not settings.standby or settings.evaluator.master.startswith("local"):
            opening = starter.submit(_opened, settings, leadership)
        # Importing the modules of the evaluation takes a second, during which Java starts.
        from spark_jobs.runtime.driver.serving import serve

        def waiting() -> None:
            started = opening is None or opening.done()
            if opening is not None and started:
                opening.result()  # raises if Spark did not start; then this process ends, and another one can stand by
            if settings.standby and started and status.role_state.state != "standby":
                status.write("standby", metrics_url=metrics.url)
            status.still()

        leadership.take(standby=settings.standby, waiting=waiting)
        status.write("starting", metrics_url=metrics.url)
        opening = opening or starter.submit(_opened, settings, leadership)
        spark, warm = opening.result()
    serve(spark, settings, leadership.fences, status, metrics.url, partial(_end, "digests not written"), warm=warm)


def _opened(settings: Settings, leadership: Leadership) -> tuple[SparkSession, bool]:
    """Start Spark. In a standby evaluator, also run some batches as a warm-up.

    Returns:
        The session, and whether batches were run.
    """
    spark = open_session(settings)
    jvm = jvm_process()
    if jvm is not None:
        note_jvm(settings.data, jvm.pid)
    standing_by = settings.standby and not leadership.taken.is_set()
    if standing_by:
        from spark_jobs.runtime.driver.warm_up import warm_up
        from spark_jobs.runtime.kafka.broker import Broker

        warm_up(spark, settings, Broker(settings))
    return spark, standing_by


def _ended(*_: object) -> NoReturn:
    raise SystemExit(0)


def _end(reason: str) -> None:
    """End the process and all writing of Spark at once: another evaluator may have taken over."""
    if _ending.is_set():
        return
    log.error(reason)
    _silence()
    jvm = jvm_process()
    if jvm is not None:
        jvm.kill()
    os._exit(1)


def _silence() -> None:
    """Drop output to standard error, because pyspark's threads print stack traces when the JVM ends."""
    drain_output()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def _refuse(line: str) -> NoReturn:
    print(f"cq evaluator: {line}", file=sys.stderr)
    raise SystemExit(1)


if __name__ == "__main__":
    main()
