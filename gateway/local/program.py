"""A program that the supervisor starts: its command, its folder, and its checks of readiness."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["LOOPBACK", "Program", "free_ports", "port_is_free"]

LOOPBACK = "127.0.0.1"
"""All that the embedded servers listen on."""


@dataclass(frozen=True, slots=True)
class Program:
    """A role's command. Secrets go in its environment, never in its arguments, which anybody here can read."""

    role: str
    """``kafka``, ``redis``, ``gateway`` or ``evaluator``."""

    command: tuple[str, ...]

    folder: Path
    """Where it runs."""

    log: Path
    """Its output is appended here."""

    ready: Callable[[int], bool]
    """Whether the program can be used; takes the size of the log at the start. Never blocks for long."""

    prepare: Callable[[], None] = lambda: None
    """Called before each start: makes the contents of the program's folder, however much was lost."""

    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Added to the supervisor's own."""

    heard: Callable[[], bool] = lambda: True
    """Whether it has given a sign of life since the last call. Never blocks for long."""

    progress: Callable[[], str] = lambda: ""
    """How far the start is, in words to follow the role's name; empty if unknown. Never blocks for long."""

    status: Path | None = None
    """The file in which the role reports its state; an earlier process's report is removed before a start."""

    stop_seconds: float = 20.0
    """How long the program may take to stop in order, before it is killed."""


def port_is_free(port: int) -> bool:
    """Return whether a server could listen on that loopback port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the servers do
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True


def free_ports(count: int) -> list[int]:
    """Return different loopback ports without a listener."""
    with ExitStack() as held:  # held together: a released port may be given again at once
        probes = [held.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind((LOOPBACK, 0))
        return [int(probe.getsockname()[1]) for probe in probes]
