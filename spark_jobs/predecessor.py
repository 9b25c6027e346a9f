"""Makes sure that the JVM of an earlier evaluator on the same checkpoints is dead, not merely silent (design §6)."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import psutil

__all__ = ["end_predecessor", "note_jvm"]

_FILE = "evaluator-jvm.json"
_WAIT_SECONDS = 10.0


def end_predecessor(data: Path) -> None:
    """Kill the JVM that the last evaluator noted under the data folder, if it still runs, and wait for its death.

    A process of the same id that began at another time, or on another machine, is somebody else's.
    """
    try:
        noted = json.loads((data / _FILE).read_text())
        process = psutil.Process(noted["pid"])
        if noted["host"] == socket.gethostname() and abs(process.create_time() - noted["created"]) < 1:
            process.kill()
            process.wait(_WAIT_SECONDS)
    except (FileNotFoundError, ValueError, KeyError, psutil.NoSuchProcess):
        return


def note_jvm(data: Path, pid: int) -> None:
    """Note the JVM of this evaluator for the next one."""
    data.mkdir(parents=True, exist_ok=True)
    noted = {"host": socket.gethostname(), "pid": pid, "created": psutil.Process(pid).create_time()}
    (data / _FILE).write_text(json.dumps(noted))
