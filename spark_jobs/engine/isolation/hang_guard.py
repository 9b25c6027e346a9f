"""Ends a worker that makes no progress for too long. To the driver, the worker has then died (`worker_deaths`)."""

from __future__ import annotations

import faulthandler
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

__all__ = ["HangGuard"]

T = TypeVar("T")

_SUSPECTED = 5
"""The time of a step is divided by this number if the step evaluates suspected work units."""


class HangGuard:
    """The limit on the time of a step of a task. After this time, the process logs its stack and ends.

    A timer of the operating system watches the time. At the timer's signal, faulthandler logs the stack, and the
    process ends. The timer works even while a library that never returns holds the interpreter's lock. To set the timer
    takes a microsecond.
    """

    def __init__(
        self, seconds: float, arm: Callable[[], None] = lambda: None, disarm: Callable[[], None] = lambda: None
    ) -> None:
        """Begin with no step under way.

        Args:
            seconds: The longest time of a step.
            arm: Is called before a piece is made.
            disarm: Is called after a piece was made.
        """
        self._seconds = seconds
        self._limit = seconds
        self._armed = False
        self._on_arm = arm
        self._on_disarm = disarm
        faulthandler.register(signal.SIGALRM, chain=True)

    def pieces(self, made: Iterator[T]) -> Iterator[T]:
        """Yield the pieces of an iterator, under the limit.

        The time that the consumer takes between two pieces is not limited: the consumer may wait for Kafka.

        Args:
            made: The pieces. No piece may be None.
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
        """Carry out the block under the limit."""
        self._arm()
        self._on_arm()
        try:
            yield
        finally:
            self._armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            self._on_disarm()

    def begin_step(self, *, suspected: bool) -> None:
        """Begin another step of the piece that is being made, so that the time begins again.

        Args:
            suspected: Whether the step evaluates suspects.
        """
        self._limit = self._seconds / _SUSPECTED if suspected else self._seconds
        if self._armed:
            self._arm()

    def _arm(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, self._limit)
        self._armed = True
