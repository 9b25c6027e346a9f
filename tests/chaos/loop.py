"""An action repeated in a separate thread until it is stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

__all__ = ["Loop"]


class Loop:
    """A thread that runs while entered; `check`, and the end, raise its exceptions."""

    def __init__(self, name: str, step: Callable[[], None], pause: float) -> None:
        """Prepare to call `step` with pauses of this many seconds."""
        self._step = step
        self._pause = pause
        self.steps = 0
        """How often it was done."""
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def check(self) -> None:
        """Raise the error that the thread has raised."""
        if self._error is not None:
            raise self._error

    def __enter__(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop, after the step that is being done."""
        self._stop.set()
        self._thread.join()
        if error is None:
            self.check()

    def _run(self) -> None:
        try:
            while not self._stop.wait(self._pause):
                self._step()
                self.steps += 1
        except BaseException as error:
            self._error = error
