"""The watchdog: a process that kills the sessions of the roles when the supervisor dies.

The supervisor writes the ids of all running sessions, as a line, to the watchdog's standard input. When the supervisor
ends, the input ends too, and the watchdog kills the sessions of the last line. An empty last line means that the
supervisor itself has stopped all roles.
"""

from __future__ import annotations

import subprocess
import sys

from gateway.local.sessions import kill_sessions

__all__ = ["SupervisorWatchdog", "main"]


class SupervisorWatchdog:
    """The supervisor's connection to the watchdog."""

    def __init__(self) -> None:
        self._process = self._start()

    def tell(self, sessions: list[int]) -> None:
        """Send the ids of the running sessions to the watchdog. If the watchdog was killed, start a new one."""
        if self._process.poll() is not None:
            self._process = self._start()
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(map(str, sessions)) + "\n")
        self._process.stdin.flush()

    @staticmethod
    def _start() -> subprocess.Popen[str]:
        # The watchdog has a session of its own, so that a Ctrl-C on the terminal ends only the supervisor.
        command = [sys.executable, "-m", "gateway.local.watchdog"]
        return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, text=True)

    def close(self) -> None:
        """End the watchdog. The supervisor must have stopped all roles before."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=20)


def main() -> None:
    """Wait for the supervisor's end, and then kill the sessions that it has left."""
    sessions: list[int] = []
    for line in sys.stdin:
        sessions = [int(word) for word in line.split()]
    if sessions:
        kill_sessions(sessions, timeout=30.0)


if __name__ == "__main__":
    main()
