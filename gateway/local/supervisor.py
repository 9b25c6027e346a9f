"""The supervisor: starts the roles in order, keeps them running, reports their states, and stops them.

The supervisor is a process with a single thread. If the supervisor dies for any reason, the kernel and the watchdog end
the processes that it has started.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gateway.local.log_file import renew
from gateway.local.program import Program
from gateway.local.role import SILENT_SECONDS, START_SECONDS, Role
from gateway.local.run_folder import RunFolder, write_json
from gateway.local.sessions import MARK, supervised
from gateway.local.signals import Signals
from gateway.local.watchdog import SupervisorWatchdog
from grouping.model.errors import OperationalError
from grouping.settings.settings import Settings

__all__ = ["Supervisor", "supervised_state"]

log = logging.getLogger(__name__)

PROGRESS_SECONDS = 10.0
"""The time between two lines about the progress of a start."""
TELL_SECONDS = 2.0
"""The longest time between two reports of the state. An unchanged state is reported too, since readers take an old
report as a sign that the supervisor hangs."""


class Supervisor:
    """Runs programs in stages. A stage starts when all programs of the previous stage are ready."""

    def __init__(
        self,
        run: RunFolder,
        stages: Sequence[Sequence[Program]],
        addresses: Mapping[str, str],
        tell: Callable[[str], None],
        settings: Settings,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare to run.

        Args:
            run: The data folder. The caller must hold its lock.
            stages: The programs to start, by stage.
            addresses: ``bootstrap`` and ``redis_url``, for ``endpoints.json``.
            tell: Called with each line for a person. The line when all roles are ready begins with ``ready`` and has
                the addresses.
            settings: The settings, with the longest silence of a ready role and the largest size of a log.
            clock: Returns monotonic seconds. All processes of the machine must have the same clock, since readers of
                the reports compare its times with the present.
        """
        environment = {**os.environ, MARK: str(run.data), "PYTHONUNBUFFERED": "1"}
        self._run = run
        patience = settings.supervisor.hang_seconds
        self._stages = [[Role(program, environment, clock, patience) for program in stage] for stage in stages]
        self._log_bytes = settings.logs.bytes
        self._roles = [role for stage in self._stages for role in stage]
        self._addresses = dict(addresses)
        self._tell = tell
        self._clock = clock
        self._announced = False
        self._published_at = 0.0
        self._endpoints: dict[str, Any] = {}

    def run(self) -> None:
        """Run until a signal to stop comes. At the end all roles are stopped, even after an error.

        Raises:
            OperationalError: A role does not start.
        """
        self._run.endpoints.unlink(missing_ok=True)
        self._kill_strays()
        self._watchdog = SupervisorWatchdog()
        with Signals() as signals:
            try:
                for stage in self._stages:
                    self._start(stage, signals)
                if not signals.stop:
                    self._announce()
                while not signals.stop:
                    signals.wait(0.2 if self._unready() else 1.0)
                    self.step()
            finally:
                self._stop()

    def _start(self, stage: list[Role], signals: Signals) -> None:
        """Start a stage, and return when all its roles are ready, or when a signal to stop comes.

        Raises:
            OperationalError: The roles of the stage have made no progress for `START_SECONDS`.
        """
        begun_at = moved_at = shown_at = self._clock()
        reached: list[str] = []
        if not signals.stop:
            for role in stage:
                role.start()
            self._publish()
        while not signals.stop and any(role.state != "ready" for role in stage):
            before = {role.name for role in stage if role.state == "ready"}
            self.step()
            for role in stage:
                if role.state == "ready" and role.name not in before:
                    self._tell(f"{role.name} is up after {self._clock() - begun_at:.1f} s")
            now = self._clock()
            if (progress := [f"{role.name} {line}" for role in stage if (line := role.program.progress())]) != reached:
                reached, moved_at = progress, now
            if reached and now - shown_at >= PROGRESS_SECONDS:
                shown_at = now
                self._tell("; ".join(reached))
            if now - moved_at > START_SECONDS:
                late = next(role for role in stage if role.state != "ready")
                raise OperationalError(
                    f"the {late.name} is not ready after {now - begun_at:.0f} s", hint=f"Its log is {late.program.log}."
                )
            signals.wait(0.05)

    def step(self) -> None:
        """Check all roles that were started, and report the states: after each change, and every `TELL_SECONDS`."""
        started = [role for role in self._roles if role.state != "stopped"]
        changed = any([role.step() for role in started])
        if changed or self._clock() - self._published_at >= TELL_SECONDS:
            self._renew_logs()
            self._publish()

    def _renew_logs(self) -> None:
        try:
            renew(self._run.log("supervisor"), self._log_bytes)
            for role in self._roles:
                role.renew_log(self._log_bytes)
        except OSError as error:  # a full disk must not end running roles
            log.warning("log not rotated", extra={"reason": str(error)})

    def _announce(self) -> None:
        self._announced = True
        self._publish()
        shown = ("bootstrap", "redis_url", "metrics_url", "evaluator_metrics_url")
        lines = [f"{name} {self._endpoints[name]}" for name in shown if self._endpoints.get(name)]
        self._tell("ready " + " ".join(lines))

    def _unready(self) -> list[Role]:
        return [role for role in self._roles if role.state != "ready"]

    def _publish(self) -> None:
        """Send the sessions of the roles to the watchdog, and report the states in the data folder."""
        self._watchdog.tell([role.pid for role in self._roles if role.pid])
        self._published_at = self._clock()
        state = "starting" if not self._announced else "degraded" if self._unready() else "ready"
        roles = {role.name: {"state": role.state, "pid": role.pid, "restarts": role.restarts} for role in self._roles}
        try:
            write_json(self._run.state, {"state": state, "told_at": self._published_at, "roles": roles})
            if self._announced:
                self._publish_endpoints()
        except OSError as error:  # a full disk must not end running roles
            log.warning("state not told", extra={"reason": str(error)})

    def _publish_endpoints(self) -> None:
        pids = {"supervisor": os.getpid(), **{role.name: role.pid for role in self._roles}}
        urls = {"gateway": "metrics_url", "evaluator": "evaluator_metrics_url"}
        metrics = {name: self._run.read(self._run.status(role)).get("metrics_url") for role, name in urls.items()}
        endpoints = {**self._addresses, **metrics, "pids": pids}
        if endpoints != self._endpoints:
            write_json(self._run.endpoints, endpoints)
            self._endpoints = endpoints

    def _kill_strays(self) -> None:
        """Kill processes of an earlier supervisor of this folder, and processes that have left their role's session."""
        for process in supervised(self._run.data):
            log.warning("stray process killed", extra={"pid": process.pid})
            process.kill()
            process.wait(10)

    def _stop(self) -> None:
        """Stop the roles, the last stage first. The roles of a stage stop at the same time."""
        for stage in reversed(self._stages):
            for role in stage:
                role.terminate()
            for role in stage:
                role.end()
        self._kill_strays()
        self._watchdog.tell([])
        self._watchdog.close()
        self._run.endpoints.unlink(missing_ok=True)
        roles = {role.name: {"state": "stopped", "pid": None, "restarts": role.restarts} for role in self._roles}
        with contextlib.suppress(OSError):  # readers also see by the free lock that no supervisor runs
            write_json(self._run.state, {"state": "stopped", "roles": roles})


def supervised_state(report: dict[str, Any], supervisor: int, now: float) -> dict[str, Any]:
    """Return two things from a supervisor's report: one state for all roles together, and the entry of each role.

    If the report is old, the supervisor hangs. The state is then ``degraded``, and the roles include the supervisor
    itself as ``silent``.

    Args:
        report: The supervisor's report.
        supervisor: The supervisor's process id.
        now: The present, in seconds of the monotonic clock that the supervisor uses too.
    """
    roles: dict[str, dict[str, Any]] = report.get("roles", {})
    state = report.get("state", "starting")
    if now - report.get("told_at", now) < SILENT_SECONDS:
        return {"state": state, "roles": roles}
    itself = {"state": "silent", "pid": supervisor, "restarts": 0}
    return {"state": "degraded", "roles": {**roles, "supervisor": itself}}
