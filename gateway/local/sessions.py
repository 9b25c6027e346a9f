"""Sessions of processes: end a role with all processes that it started.

A role leads a session of its own, with its JVM and Python workers, so that no process is missed: a new evaluator may
start only when the last worker of the old evaluator, which could still write results, is dead.
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
    """Return a function for the start of a new process: the kernel then kills the process when its parent dies.

    On systems other than Linux, and for the new process's own children, the watchdog ends the processes.
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
            continue  # the process is gone, or is another user's
    return found


def supervised(data: Path) -> list[psutil.Process]:
    """Return the processes that a supervisor of the folder started, even after its death."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == str(data) and process.pid != os.getpid():
                found.append(process)
        except psutil.Error:
            continue
    return found


def kill_sessions(sessions: Collection[int], timeout: float = 10.0) -> bool:
    """Kill every process of these sessions, including processes that start in the meantime.

    Args:
        sessions: The ids of the sessions, equal to the pids of the roles that lead them.
        timeout: Seconds after which to give up.

    Returns:
        Whether no process is left.
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
