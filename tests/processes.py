"""Ending processes, of which any may end by itself meanwhile."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import psutil

__all__ = ["kill_all"]


def kill_all(processes: Iterable[psutil.Process]) -> None:
    """Kill processes, and return when none is there any more: a child may go with its parent, before its own turn."""
    killed = list(processes)
    for process in killed:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    assert not psutil.wait_procs(killed, timeout=30)[1]
