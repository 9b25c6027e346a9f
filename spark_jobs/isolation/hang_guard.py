"""A worker that makes nothing of its events for too long ends itself, and then counts as dead (`trials`)."""

from __future__ import annotations

import faulthandler
from collections.abc import Iterator
from typing import TypeVar

__all__ = ["guarded"]

T = TypeVar("T")


def guarded(made: Iterator[T], seconds: float) -> Iterator[T]:
    """Yield what an iterator makes; end the process, its stack in the log, when one piece takes too long.

    faulthandler's thread sees to it, which needs no interpreter: a library that never returns may hold it. What the
    consumer takes for itself doesn't count: it may wait for Kafka, for as long as that is away.

    Args:
        made: Pieces, none of them None.
        seconds: What one may take.
    """
    while True:
        faulthandler.dump_traceback_later(seconds, exit=True)
        try:
            piece = next(made, None)
        finally:
            faulthandler.cancel_dump_traceback_later()
        if piece is None:
            return
        yield piece
