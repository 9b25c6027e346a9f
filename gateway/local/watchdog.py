"""The watchdog, a process that outlives the supervisor: when the supervisor dies, it kills the sessions of the roles.

The watchdog reads the running sessions from its standard input, a line of pids at each change; the end of the input is
the supervisor's end. An empty last line means that the supervisor itself has stopped all roles.
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
        """Send the running sessions to the watchdog; replace a watchdog that was killed."""
        if self._process.poll() is not None:
            self._process = self._start()
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(map(str, sessions)) + "\n")
        self._process.stdin.flush()

    @staticmethod
    def _start() -> subprocess.Popen[str]:
        # The watchdog has a session of its own, so that a Ctrl-C on the terminal does not end it first.
        command = [sys.executable, "-m", "gateway.local.watchdog"]
        return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, text=True)

    def close(self) -> None:
        """Let the watchdog end, since no role runs any more."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=20)


def main() -> None:
    """Watch the supervisor until it is gone."""
    sessions: list[int] = []
    for line in sys.stdin:
        sessions = [int(word) for word in line.split()]
    if sessions:
        kill_sessions(sessions, timeout=30.0)


if __name__ == "__main__":
    main()
