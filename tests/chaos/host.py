"""The gateway under test: a data folder that can be filled up, and roles with a movable clock or a planted fault."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

import psutil

from gateway.local.run_folder import RunFolder
from gateway.local.sessions import supervised
from tests.kafka_client import wait_until
from tests.stack.server import Stack

__all__ = ["HANG_SECONDS", "RESULTS", "ROLES", "Deployment", "Host", "open_host"]

ROLES = ("redis", "gateway", "evaluator", "kafka")

HANG_SECONDS = 25.0
"""Time after which the supervisor restarts a hanging role: shorter than the longest SIGSTOP."""

RESULTS = {"CQ_RESULTS_DEDICATED_LIMIT": "100", "CQ_RESULTS_LINGER_SECONDS": "60"}
"""Few topics, so that CQs meet the limit; they linger for longer than Kafka is away, when nobody reads them."""

_DISK_MEGABYTES = 3000
_HOOKS = Path(__file__).parent / "hooks"


class Deployment(Protocol):
    """A running gateway and evaluator: the operations that a run needs, whatever the faults."""

    @property
    def bootstrap(self) -> str:
        """Kafka's address."""

    @property
    def data(self) -> Path:
        """The folder that all data folders are in, and shared checkpoints."""

    @property
    def redis_url(self) -> str:
        """The address of the working copy."""

    def await_ready(self) -> None:
        """Return when both roles work."""

    def strays(self) -> list[psutil.Process]:
        """Return remaining processes of ended roles."""


class Host:
    """The stack, and the ways to disturb it."""

    def __init__(self, stack: Stack, clock: Path | None, *, small_disk: bool) -> None:
        self.stack = stack
        self.clock = clock
        """Where the roles find how many seconds their clock is off, if it can be moved."""
        self.small_disk = small_disk
        """Whether the data folder is on a disk of its own."""

    @property
    def bootstrap(self) -> str:
        """Kafka's address."""
        return self.stack.bootstrap

    @property
    def data(self) -> Path:
        """The data folder."""
        return self.stack.data

    @property
    def redis_url(self) -> str:
        """The address of the working copy."""
        return self.stack.redis_url

    def pid(self, role: str) -> int | None:
        """Return a role's process by the supervisor's report, if it runs."""
        found = self.stack.endpoints()["pids"].get(role)
        return None if found is None else int(found)

    def family(self, what: str) -> list[psutil.Process]:
        """Return the processes of a role, or of the evaluator's ``jvm`` or ``workers``."""
        role = self.pid("evaluator" if what in ("jvm", "workers") else what)
        if role is None or not psutil.pid_exists(role):
            return []
        process = psutil.Process(role)
        if what not in ("jvm", "workers"):
            return [process]
        below = process.children(recursive=True)
        return [each for each in below if _is_jvm(each) == (what == "jvm")]

    def send(self, what: str, number: signal.Signals) -> list[psutil.Process]:
        """Send a signal to such processes, and return them."""
        found = self.family(what)
        for process in found:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)
        return found

    def await_ready(self, timeout: float = 400.0) -> None:
        """Return when all is ready, by a report of the supervisor after this call; start a missing supervisor."""
        run, begun = RunFolder(self.data), time.monotonic()
        self.revive()

        def ready() -> bool:
            time.sleep(0.1)
            report = run.read(run.state)
            return report.get("state") == "ready" and report["told_at"] > begun + 1.5

        wait_until(ready, f"readiness: {run.read(run.state)}", timeout)

    def revive(self) -> None:
        """Start everything anew if the supervisor is gone."""
        if RunFolder(self.data).holder() is None:
            self._up()

    def strays(self) -> list[psutil.Process]:
        """Return the processes that a supervisor started and no role leads any more."""
        roles = {self.pid(role) for role in ROLES}
        return [one for one in supervised(self.data) if one.is_running() and os.getsid(one.pid) not in roles]

    def _up(self) -> None:
        """Start everything anew, after a supervisor's death: its last processes may be on their way out."""
        deadline = time.monotonic() + 30
        while supervised(self.data) and time.monotonic() < deadline:
            time.sleep(0.1)
        self.stack.up()


@contextmanager
def open_host(*, small_disk: bool, planted: str = "") -> Iterator[Host]:
    """Start the stack in a fresh folder, which is removed afterwards; none of its processes may be left.

    Args:
        small_disk: Whether the data folder is to be on a small disk of its own; root alone may have it.
        planted: A module of `tests.chaos.planted`, by whose fault the roles are to suffer.
    """
    with tempfile.TemporaryDirectory(prefix="cq-chaos-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        clock, data = folder / "clock", folder / "disk" / "data"
        data.parent.mkdir()
        clock.write_text("0")
        path = [str(_HOOKS), str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
        stack = Stack(
            data,
            PYTHONPATH=os.pathsep.join(filter(None, path)),
            CQ_CHAOS_CLOCK=str(clock),
            CQ_CHAOS_PLANTED=planted,
            CQ_SUPERVISOR_HANG_SECONDS=str(HANG_SECONDS),
            **RESULTS,
        )
        with _disk(data.parent, small_disk):
            try:
                stack.up()
                yield Host(stack, clock, small_disk=small_disk)
            finally:
                if (data / "endpoints.json").exists():
                    stack.down()
                _end(data)


@contextmanager
def _disk(folder: Path, small: bool) -> Iterator[None]:
    if not small:
        yield
        return
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={_DISK_MEGABYTES}m", "chaos", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def _end(data: Path) -> None:
    """Kill remaining processes of a failed run."""
    for process in supervised(data):
        with suppress(psutil.NoSuchProcess):
            process.kill()


def _is_jvm(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.name() == "java"
    return False
