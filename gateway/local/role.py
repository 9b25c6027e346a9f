"""A role under the supervisor: its process, its state, and its restarts."""

from __future__ import annotations

import logging
import os
import re
import subprocess
from collections.abc import Callable, Mapping
from typing import Literal

from gateway.local.log_file import renew
from gateway.local.program import Program
from gateway.local.sessions import die_with, kill_sessions
from grouping.model.errors import OperationalError

__all__ = ["Role", "RoleStatus"]

log = logging.getLogger(__name__)

RoleStatus = Literal["stopped", "starting", "ready", "waiting", "silent", "restarting"]
"""The state ``waiting`` means that the role was ready, and reports that a server does not answer now. ``silent`` means
that the role no longer gives signs of life."""

DELAYS = (0.0, 1.0, 2.0, 5.0, 10.0, 30.0)
"""The pauses before restarts in a row, in seconds: before the first restart, the second restart, and so on."""

STEADY = 20.0
"""If a role dies after it was ready for more than this number of seconds, the restart counts as the first in a row.

A start takes about five seconds. So a role that always dies just after this time is away for a fifth of the time.
"""

SILENT_SECONDS = 10.0
"""After this time without a sign of life, a ready role is ``silent``. The time is several times the interval between
two signs of life on a loaded machine."""

START_SECONDS = 180.0
"""The longest time for which a starting role may give no sign of life, and for which the roles of a starting stage may
make no progress."""

LOOK_SECONDS = 2.0
"""The longest time, in seconds, that one check adds to a role's silence. If the supervisor itself was stopped between
two checks, the supervisor could not notice signs of life."""

OURS = re.compile(r"cq( \w+)?: ")
"""The beginning of the line in which a role tells why it does not start."""

TRIES = 3
"""If a role has been started this many times and was never ready, the supervisor gives up the start of all roles."""


class Role:
    """A role. Calls of `step` watch and restart its process."""

    def __init__(
        self, program: Program, environment: Mapping[str, str], clock: Callable[[], float], hang_seconds: float
    ) -> None:
        """Prepare to run.

        Args:
            program: The program to run.
            environment: The supervisor's environment, to which the program's environment is added.
            clock: Returns monotonic seconds.
            hang_seconds: How long a role that was ready may give no sign of life before it is killed.
        """
        self.program = program
        self.state: RoleStatus = "stopped"
        self.restarts = 0
        self._environment = environment
        self._clock = clock
        self._process: subprocess.Popen[bytes] | None = None
        self._since = 0
        self._hang_seconds = hang_seconds
        self._was_ready = False
        self._up = False
        """Whether the present process was ready at some time."""
        self._ready_at = 0.0
        self._looked_at = 0.0
        self._quiet = 0.0
        """Seconds without a sign of life."""
        self._row = 0
        self._due_at = 0.0

    @property
    def name(self) -> str:
        """The role's name."""
        return self.program.role

    @property
    def pid(self) -> int | None:
        """The id of the process, which is also the id of its session; None while no process runs."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start the process in a session of its own. When the supervisor dies, the process dies too.

        Raises:
            OperationalError: The program cannot be prepared.
            OSError: Files of the program cannot be written.
        """
        self.program.prepare()
        if self.program.status:
            self.program.status.unlink(missing_ok=True)
        self._up, self._quiet, self._looked_at = False, 0.0, self._clock()
        with self.program.log.open("ab") as output:
            self._since = output.tell()
            self._process = subprocess.Popen(
                self.program.command,
                cwd=self.program.folder,
                env={**self._environment, **self.program.environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=die_with(os.getpid()),  # noqa: PLW1509 (the supervisor has one thread)
            )
        self.state = "restarting" if self._was_ready else "starting"
        log.info("role started", extra={"role": self.name, "pid": self.pid})

    def step(self) -> bool:
        """Check the process and note its state. Kill a hanging process. Restart the role after its delay.

        Returns:
            Whether the state may have changed.

        Raises:
            OperationalError: The role was never ready and does not start, or one of its processes cannot be killed.
        """
        died = False
        if self._process is not None and self._process.poll() is not None:
            self._bury(self._process)
            died = True
        if self._process is None:
            if self._clock() < self._due_at:
                return died
            self._restart()
            return True
        self._listen()
        if self._quiet >= (self._hang_seconds if self._up else START_SECONDS):
            log.error("role hangs, killed", extra={"role": self.name, "pid": self.pid, "seconds": self._quiet})
            self._bury(self._process)
            return True
        before, self.state = self.state, self._seen()
        if before == self.state:
            return False
        level = logging.INFO if self.state == "ready" else logging.WARNING
        log.log(level, f"role {self.state}", extra={"role": self.name, "pid": self.pid, "before": before})
        return True

    def _listen(self) -> None:
        """Note for how long the process has given no sign of life."""
        now = self._clock()
        passed, self._looked_at = min(now - self._looked_at, LOOK_SECONDS), now
        self._quiet = 0.0 if self.program.heard() else self._quiet + passed

    def _seen(self) -> RoleStatus:
        """Return the state of a process that runs."""
        if self._up and self._quiet >= SILENT_SECONDS:
            return "silent"
        # A program without a status file is a server, which depends on no other server. Once such a program was ready,
        # it stays ready as long as it gives signs of life.
        if not (self._up and self.program.status is None) and not self.program.ready(self._since):
            return "waiting" if self._up else self.state
        if not self._up:
            self._up, self._was_ready, self._ready_at = True, True, self._clock()
        return "ready"

    def renew_log(self, most_bytes: int) -> None:
        """Truncate the log if it exceeds a size. Until the process is ready, keep the log for `last_words`."""
        if self._up and renew(self.program.log, most_bytes):
            self._since = 0

    def terminate(self) -> None:
        """Ask the process to stop."""
        if self._process and self._process.poll() is None:
            self._process.terminate()

    def end(self) -> None:
        """Wait until the process has stopped, and kill it if it takes too long; then kill the rest of its session."""
        if self._process:
            try:
                self._process.wait(self.program.stop_seconds)
            except subprocess.TimeoutExpired:
                log.warning("role killed, it did not stop in time", extra={"role": self.name, "pid": self.pid})
            kill_sessions({self._process.pid})
            self._process.wait()
        self._process, self.state = None, "stopped"

    def last_words(self) -> str:
        """Return the last line of output that looks like an error of the product; without one, the last line."""
        with self.program.log.open("rb") as output:
            output.seek(self._since)
            lines = [line for line in output.read().decode("utf-8", "replace").splitlines() if line.strip()]
        ours = [line for line in lines if OURS.match(line)]
        return (ours or lines or ["it printed nothing"])[-1].strip()

    def _bury(self, process: subprocess.Popen[bytes]) -> None:
        """Kill all processes of the session, and note the end. All must be dead before a new process starts."""
        if not kill_sessions({process.pid}, timeout=60.0):
            raise OperationalError(f"processes of the {self.name} that died cannot be killed (session {process.pid})")
        code = process.wait()
        log.warning("role died", extra={"role": self.name, "pid": process.pid, "code": code})
        words = self.last_words()
        if not self._was_ready and (OURS.match(words) or self.restarts + 1 >= TRIES):
            raise OperationalError(
                f"the {self.name} does not start: {OURS.sub('', words).rstrip('.')}",
                hint=f"Its log is {self.program.log}.",
            )
        if self._up and self._clock() - self._ready_at > STEADY:
            self._row = 0
        self._process, self.state = None, "restarting"
        self._delay()

    def _restart(self) -> None:
        self.restarts += 1
        try:
            self.start()
        except OSError as error:  # usually the disk is full
            if not self._was_ready:
                raise
            log.warning("role not started", extra={"role": self.name, "reason": str(error)})
            self._delay()

    def _delay(self) -> None:
        """Set the time of the next start. The delay is longer after each restart in a row."""
        self._due_at = self._clock() + DELAYS[min(self._row, len(DELAYS) - 1)]
        self._row += 1
