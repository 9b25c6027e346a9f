"""Sessions of processes: ends a role with all processes that it has started.

A role has a session of its own, in which its JVM and its Python workers run too, so that all of them can be found. A
new evaluator may start only when the last worker of the old evaluator is dead, since this worker could still write
results.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Collection
from pathlib import Path

import psutil

__all__ = ["MARK", "die_with", "kill_sessions", "members", "supervised"]

MARK = "CQ_SUPERVISED"
"""The environment variable of all processes that a supervisor starts; its value is the data folder."""

PR_SET_PDEATHSIG = 1

_LOOK_SECONDS = 0.05


def die_with(parent: int) -> Callable[[], None]:
    """Return a function that a new process must call at its start, so that the kernel kills it when its parent dies.

    The function works only on Linux, and only for the new process itself. On other systems, and for the children of the
    new process, the watchdog ends the processes.
    """
    if not sys.platform.startswith("linux"):
        return lambda: None
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def prepare() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # the parent died before `prctl` was called
            os._exit(1)

    return prepare


def members(sessions: Collection[int]) -> list[psutil.Process]:
    """Return the live processes of some sessions."""
    found = []
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) in sessions and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (ProcessLookupError, PermissionError, psutil.Error):
            continue  # the process has ended, or belongs to another user
    return found


def supervised(data: Path) -> list[psutil.Process]:
    """Return the processes that a supervisor of this data folder has started, even if the supervisor is dead."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == str(data) and process.pid != os.getpid():
                found.append(process)
        except psutil.Error:
            continue
    return found


def kill_sessions(sessions: Collection[int], timeout: float = 10.0) -> bool:
    """Kill all processes of some sessions, including processes that start in the meantime.

    Args:
        sessions: The ids of the sessions. The id of a session is the process id of its role.
        timeout: For how many seconds the function tries.

    Returns:
        Whether all processes are dead.
    """
    deadline = time.monotonic() + timeout
    while left := members(sessions):
        for process in left:
            try:
                process.kill()
            except psutil.Error:
                continue
        # The wait has a limit, since the parent of a dead process may never reap the process.
        psutil.wait_procs(left, timeout=_LOOK_SECONDS)
        if time.monotonic() > deadline:
            return False
    return True
