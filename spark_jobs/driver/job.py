"""The evaluator's process: ``python -m spark_jobs.driver.job``; settings come from the environment."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import sys
import threading
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from pydantic import ValidationError

from grouping.log_lines import log_to
from grouping.model.errors import OperationalError
from grouping.settings import Settings
from grouping.store.quarantine import QuarantineStore
from grouping.store.table_store import TableStore
from spark_jobs.driver.digest_jobs import DigestJobs
from spark_jobs.driver.leadership import Leadership
from spark_jobs.driver.predecessor import end_predecessor, held, note_jvm
from spark_jobs.driver.session import jobs_started, jvm_process, kill_jvm, open_session
from spark_jobs.driver.streams import Streams
from spark_jobs.driver.trials import Trials
from spark_jobs.driver.warm_up import warm_up
from spark_jobs.kafka.broker import Broker
from spark_jobs.worker.worker import Evaluation

__all__ = ["STATUS_VARIABLE", "main"]

log = logging.getLogger(__name__)

STATUS_VARIABLE = "CQ_STATUS_FILE"
"""Environment variable that names the file in which the evaluator tells its state."""

_ending = threading.Event()
"""Whether the process ends in order: what fails then, as the JVM goes, is none of its concern."""

_LOOK_SECONDS = 0.3
_STATUS_SECONDS = 1.0
_REDIS_SECONDS = 30.0


def main() -> NoReturn:
    """Run until a signal, or until the lease or the JVM is lost."""
    log_to(sys.stderr, logging.INFO)
    logging.getLogger("py4j").setLevel(logging.ERROR)
    try:
        settings = Settings()
    except ValidationError as exc:
        wrong = exc.errors()[0]
        _refuse(f'setting "{".".join(map(str, wrong["loc"]))}": {wrong["msg"]}')
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _ended)
    code = 1
    leadership = Leadership(settings, time.monotonic, partial(_end, "lease lost"))
    try:
        leadership.take(_REDIS_SECONDS)
    except OperationalError as error:
        _refuse(_line(error))
    try:
        with held(settings.data, settings.prefix):
            _run(
                settings,
                leadership.token,
                StatusFile(Path(os.environ.get(STATUS_VARIABLE) or settings.data / "run" / "evaluator.json")),
            )
    except SystemExit:
        code = 0
    except OperationalError as error:
        print(f"cq evaluator: {_line(error)}", file=sys.stderr)
    except Exception:
        log.exception("evaluator failed")
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    _ending.set()
    _silence()
    kill_jvm()
    leadership.release()
    os._exit(code)


def _run(settings: Settings, token: str, status: StatusFile) -> None:
    status.write("starting")
    end_predecessor(settings.data)
    spark = open_session(settings)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _ended)  # pyspark has put its own for SIGINT
    jvm = jvm_process()
    if jvm is not None:
        note_jvm(settings.data, jvm.pid)
    broker = Broker(settings)
    streams = Streams(
        spark,
        settings,
        TableStore(settings),
        broker,
        lambda stream, cautious, anew: Evaluation.of(stream, settings, cautious=cautious, anew=anew),
        Trials(QuarantineStore(settings), lambda: time.time_ns() // 1_000_000),
        time.monotonic,
    )
    DigestJobs(spark, settings, token, partial(_end, "digests not written")).start()
    try:
        for _ in streams.reconcile():  # what waits since an earlier evaluator's death goes on at once
            status.still()
    except OperationalError as error:
        log.info("no streams yet", extra={"reason": _line(error)})
    warm_up(spark, settings, broker)
    log.info("evaluator ready")
    state, written_at = "starting", 0.0
    while jvm is None or jvm.poll() is None:
        before = state
        try:
            for _ in streams.reconcile():
                status.still()
            state = "ready"
        except OperationalError as error:
            if state != "waiting":
                log.warning("streams stay as they are", extra={"reason": _line(error)})
            state = "waiting"
        if state != before or time.monotonic() - written_at >= _STATUS_SECONDS:
            written_at = time.monotonic()
            status.write(state, streams=streams.status(), jobs=jobs_started(spark))
        time.sleep(_LOOK_SECONDS)
    raise OperationalError("the JVM of Spark has ended")


class StatusFile:
    """Where the evaluator tells its state: JSON, replaced in one move."""

    def __init__(self, path: Path) -> None:
        """Write to that path."""
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)

    def write(self, state: str, **more: Any) -> None:
        """Replace what the file says."""
        told_at = datetime.now(UTC).isoformat(timespec="milliseconds")
        body = {"pid": os.getpid(), "state": state, "told_at": told_at, **more}
        aside = self._path.with_suffix(".new")
        try:
            aside.write_text(json.dumps(body))
            aside.replace(self._path)
        except OSError as error:  # a full disk, mostly
            log.warning("status not written", extra={"reason": str(error)})
            self.still()

    def still(self) -> None:
        """Show that the state told last still holds, without anything new to tell."""
        with contextlib.suppress(OSError):
            os.utime(self._path)


def _ended(*_: object) -> NoReturn:
    raise SystemExit(0)


def _end(reason: str) -> None:
    """End at once, and all that Spark writes with it: somebody else may have taken over."""
    if _ending.is_set():
        return
    log.error(reason)
    _silence()
    jvm = jvm_process()
    if jvm is not None:
        jvm.kill()
    os._exit(1)


def _silence() -> None:
    """Drop what is written to standard error: pyspark's threads print stack traces when the JVM goes."""
    sys.stderr.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def _line(error: OperationalError) -> str:
    return " ".join(part for part in (f"{error.message}.", error.detail, error.hint) if part)


def _refuse(line: str) -> NoReturn:
    print(f"cq evaluator: {line}", file=sys.stderr)
    raise SystemExit(1)


if __name__ == "__main__":
    main()
