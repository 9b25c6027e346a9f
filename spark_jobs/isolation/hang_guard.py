"""A worker that makes nothing of its events for too long ends itself, and then counts as dead (`trials`)."""

from __future__ import annotations

import faulthandler
from collections.abc import Iterator
from typing import TypeVar

__all__ = ["HangGuard"]

T = TypeVar("T")

_APART = 10
"""How many times faster shares must be that are evaluated apart, since one of them is suspected."""


class HangGuard:
    """The time that a task's steps may take; at its end the process ends, its stack in the log.

    faulthandler's thread sees to it, which needs no interpreter: a library that never returns may hold it.
    """

    def __init__(self, seconds: float) -> None:
        """Begin with no step under way.

        Args:
            seconds: What a step may take.
        """
        self._seconds = seconds
        self._limit = seconds
        self._armed = False

    def pieces(self, made: Iterator[T]) -> Iterator[T]:
        """Yield what an iterator makes, under the limit.

        What the consumer takes for itself doesn't count: it may wait for Kafka, for as long as that is away.

        Args:
            made: Pieces, none of them None.
        """
        self._limit = self._seconds
        while True:
            self._arm()
            try:
                piece = next(made, None)
            finally:
                self._armed = False
                faulthandler.cancel_dump_traceback_later()
            if piece is None:
                return
            yield piece

    def step(self, *, apart: bool) -> None:
        """Begin another step of what is being made.

        Args:
            apart: Whether it is the evaluation of suspects.
        """
        self._limit = self._seconds / _APART if apart else self._seconds
        if self._armed:
            self._arm()

    def _arm(self) -> None:
        faulthandler.dump_traceback_later(self._limit, exit=True)
        self._armed = True
