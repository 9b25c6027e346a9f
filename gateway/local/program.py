"""A program that the supervisor starts: its command, its folder, and its checks of readiness."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["LOOPBACK", "Program", "free_ports", "port_is_free"]

LOOPBACK = "127.0.0.1"
"""The only address on which the embedded servers listen."""


@dataclass(frozen=True, slots=True)
class Program:
    """A role's command. Secrets go into its environment, never into its arguments, which every user can read."""

    role: str
    """``kafka``, ``redis``, ``gateway`` or ``evaluator``."""

    command: tuple[str, ...]

    folder: Path
    """The program's working folder."""

    log: Path
    """The file to which the program's output is appended."""

    ready: Callable[[int], bool]
    """Tells whether the program can be used; the argument is the size of the log at the start. Never blocks for
    long."""

    prepare: Callable[[], None] = lambda: None
    """Called before each start: makes the contents of the program's folder, whatever is missing there."""

    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables that are added to the supervisor's environment."""

    heard: Callable[[], bool] = lambda: True
    """Tells whether the program has given a sign of life since the last call. Never blocks for long."""

    progress: Callable[[], str] = lambda: ""
    """Returns the progress of the start, in words that follow the role's name; empty if unknown. Never blocks for
    long."""

    status: Path | None = None
    """The file in which the role reports its state; an earlier process's report is removed before a start."""

    stop_seconds: float = 20.0
    """How long the program may take to stop before it is killed."""


def port_is_free(port: int) -> bool:
    """Return whether a server could listen on that loopback port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # the servers listen with this option too
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True


def free_ports(count: int) -> list[int]:
    """Return different loopback ports without a listener."""
    with ExitStack() as held:  # the sockets are held together, since a released port may be given again
        probes = [held.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind((LOOPBACK, 0))
        return [int(probe.getsockname()[1]) for probe in probes]
