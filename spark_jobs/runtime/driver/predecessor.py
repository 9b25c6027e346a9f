"""Keeps other evaluators off the checkpoints: locks the data folder, and kills the JVM of an earlier evaluator."""

from __future__ import annotations

import fcntl
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from grouping.model.errors import OperationalError
from grouping.process.data_folder import claim

__all__ = ["end_predecessor", "held", "note_jvm"]

_FILE = "evaluator-jvm.json"
_LOCK = "evaluator.lock"
_WAIT_SECONDS = 10.0


@contextmanager
def held(data: Path, prefix: str) -> Iterator[None]:
    """Lock a data folder for the evaluator of a prefix; the kernel releases the lock when the process dies.

    Raises:
        OperationalError: Another evaluator runs on the folder, or the folder belongs to another prefix or a later
            version of the program.
    """
    data.mkdir(parents=True, exist_ok=True)
    claim(data)
    hint = "Give each prefix a data folder of its own: CQ_DATA."
    with (data / _LOCK).open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OperationalError(f'another evaluator runs on the data folder "{data}"', hint=hint) from None
        lock.seek(0)
        owner = lock.read()
        if owner not in ("", prefix):
            raise OperationalError(f'the data folder "{data}" is of the prefix "{owner}"', hint=hint)
        if not owner:
            lock.write(prefix)
            lock.flush()
        yield


def end_predecessor(data: Path) -> None:
    """Kill the JVM that the last evaluator noted in the data folder, if it still runs, and wait for its death.

    A process with the noted id that began at another time, or on another machine, is not that JVM and is left alone.
    """
    try:
        noted = json.loads((data / _FILE).read_text())
        process = psutil.Process(noted["pid"])
        if noted["host"] == socket.gethostname() and abs(process.create_time() - noted["created"]) < 1:
            process.kill()
            process.wait(_WAIT_SECONDS)
    except (FileNotFoundError, ValueError, KeyError, TypeError, psutil.NoSuchProcess):
        return


def note_jvm(data: Path, pid: int) -> None:
    """Note the JVM of this evaluator, so that the next evaluator can end it."""
    data.mkdir(parents=True, exist_ok=True)
    noted = {"host": socket.gethostname(), "pid": pid, "created": psutil.Process(pid).create_time()}
    (data / _FILE).write_text(json.dumps(noted))
