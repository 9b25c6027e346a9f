"""Ends a worker that makes no progress for too long; the worker then counts as dead (`worker_deaths`)."""

from __future__ import annotations

import faulthandler
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

__all__ = ["HangGuard"]

T = TypeVar("T")

_SUSPECTED = 5
"""Divisor of the time of a step that evaluates suspected work units."""


class HangGuard:
    """The time that a step of a task may take; at its end the process ends, with its stack in the log.

    A timer of the system watches the time: its signal has faulthandler log the stack, and then ends the process. The
    timer does not need the interpreter, which a never-returning library may hold, and costs a microsecond.
    """

    def __init__(
        self, seconds: float, arm: Callable[[], None] = lambda: None, disarm: Callable[[], None] = lambda: None
    ) -> None:
        """Begin with no step under way.

        Args:
            seconds: Longest time of a step.
            arm: Is called when a piece is begun.
            disarm: Is called when a piece is made.
        """
        self._seconds = seconds
        self._limit = seconds
        self._armed = False
        self._on_arm = arm
        self._on_disarm = disarm
        faulthandler.register(signal.SIGALRM, chain=True)

    def pieces(self, made: Iterator[T]) -> Iterator[T]:
        """Yield the pieces of an iterator, under the limit.

        The consumer's own time does not count: it may wait for Kafka for any time.

        Args:
            made: Pieces, none of them None.
        """
        self._limit = self._seconds
        while True:
            with self.armed():
                piece = next(made, None)
            if piece is None:
                return
            yield piece

    @contextmanager
    def armed(self) -> Iterator[None]:
        """Carry the block out under the limit."""
        self._arm()
        self._on_arm()
        try:
            yield
        finally:
            self._armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            self._on_disarm()

    def begin_step(self, *, suspected: bool) -> None:
        """Begin another step of the piece that is being made.

        Args:
            suspected: Whether the step evaluates suspects.
        """
        self._limit = self._seconds / _SUSPECTED if suspected else self._seconds
        if self._armed:
            self._arm()

    def _arm(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, self._limit)
        self._armed = True
