"""Waits for signals, so that the supervisor's loop reacts at once without frequent polling."""

from __future__ import annotations

import select
import signal
import socket
from types import FrameType, TracebackType

__all__ = ["Signals"]

STOP = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Signals:
    """Receives, within a `with` block, signals to stop and signals that a child has ended. For the main thread only."""

    def __init__(self) -> None:
        self.stop = False
        """Whether a signal to stop was received."""

        self._reader, self._writer = socket.socketpair()
        self._before: dict[int, object] = {}

    def __enter__(self) -> Signals:
        """Install the handlers."""
        for end in (self._reader, self._writer):
            end.setblocking(False)
        self._wakeup = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        for number in STOP:
            self._before[number] = signal.signal(number, self._note)
        self._before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda number, frame: None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Restore the former handlers."""
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        signal.set_wakeup_fd(self._wakeup)
        self._reader.close()
        self._writer.close()

    def wait(self, seconds: float) -> None:
        """Wait for the next signal, but at most `seconds`."""
        if select.select([self._reader], [], [], seconds)[0]:
            self._reader.recv(4096)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.stop = True
