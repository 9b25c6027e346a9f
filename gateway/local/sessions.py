"""Sessions of processes: how a role, and all processes started by it, are ended.

A role leads a session of its own, shared by its JVM and Python workers, so none of them can be missed: a new evaluator
may only start when the last worker of the old evaluator is dead (it could still write results).
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
"""Environment variable of all that a supervisor starts: its data folder."""

PR_SET_PDEATHSIG = 1

_LOOK_SECONDS = 0.05


def die_with(parent: int) -> Callable[[], None]:
    """Return a function to run before a new process's program, so the kernel kills the process when its parent dies.

    On systems other than Linux, and for the new process's own children, the watchdog ends the processes.
    """
    if not sys.platform.startswith("linux"):
        return lambda: None
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def prepare() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # the parent died before `prctl`
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
            continue  # gone since, or another user's
    return found


def supervised(data: Path) -> list[psutil.Process]:
    """Return the processes started by a supervisor of a folder, whatever became of the supervisor."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == str(data) and process.pid != os.getpid():
                found.append(process)
        except psutil.Error:
            continue
    return found


def kill_sessions(sessions: Collection[int], timeout: float = 10.0) -> bool:
    """Kill every process of these sessions, including processes started meanwhile.

    Args:
        sessions: Their ids, equal to the pids of the roles that lead them.
        timeout: Seconds to go on.

    Returns:
        Whether none is left.
    """
    deadline = time.monotonic() + timeout
    while left := members(sessions):
        for process in left:
            try:
                process.kill()
            except psutil.Error:
                continue
        # Orphans that are not reaped yet are dead, and a wait for them would never end.
        psutil.wait_procs(left, timeout=_LOOK_SECONDS)
        if time.monotonic() > deadline:
            return False
    return True
