"""A program that the supervisor starts: its command, its folder, and functions that check its state."""

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
    """The program of a role. Secrets are in its environment, never in its arguments, which every user can read."""

    role: str
    """``kafka``, ``redis``, ``gateway`` or ``evaluator``."""

    command: tuple[str, ...]

    folder: Path
    """The program's working folder."""

    log: Path
    """The file to which the program's output is appended."""

    ready: Callable[[int], bool]
    """Tells whether the program can be used. The argument is the size that the log had when the program was started.
    The function must not block for long."""

    prepare: Callable[[], None] = lambda: None
    """Called before each start: writes the files that the program needs in its folder."""

    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables that are added to the supervisor's environment."""

    heard: Callable[[], bool] = lambda: True
    """Tells whether the program has given a sign of life since the last call. The function must not block for long."""

    progress: Callable[[], str] = lambda: ""
    """Returns the progress of the start, in words to be printed after the role's name; empty if it is unknown. The
    function must not block for long."""

    status: Path | None = None
    """The file in which the role reports its state. The supervisor removes it before each start, since the last process
    may have left it."""

    stop_seconds: float = 20.0
    """How long the program may take to stop before it is killed."""


def port_is_free(port: int) -> bool:
    """Return whether a server could listen on a port of the loopback address."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # the servers listen with this option too
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True


def free_ports(count: int) -> list[int]:
    """Return different free ports of the loopback address."""
    with ExitStack() as held:  # all sockets stay open meanwhile, since the system may give a released port again
        probes = [held.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind((LOOPBACK, 0))
        return [int(probe.getsockname()[1]) for probe in probes]
