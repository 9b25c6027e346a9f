"""Ticks of destinations with OVER LAST. Such a tick aggregates a whole window, which takes long.

Therefore the gateway first serves all other due destinations. The ticks of windows wait meanwhile, and the stream's
progress waits for these ticks. After each batch of windows, the gateway serves no window for four times the duration of
the batch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from grouping.model.ids import DestinationId, StreamId

__all__ = ["WindowTicks"]

_REST = 4
"""The pause after a batch of windows, in multiples of the batch's duration. With 4, windows get a fifth of the thread's
time."""
_LOT = 100
"""The largest number of windows that are served together."""

_Due = Sequence[tuple[DestinationId, int]]


class WindowTicks:
    """The due destinations with OVER LAST that wait. For use by the gateway's main thread only."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin without destinations; the clock returns seconds."""
        self._clock = clock
        self._waiting: dict[StreamId, set[DestinationId]] = {}
        self._rested = 0.0

    def waiting(self, stream_id: StreamId) -> int:
        """Return the number of destinations of a stream that wait."""
        return len(self._waiting.get(stream_id, ()))

    def defer(self, stream_id: StreamId, names: Iterable[DestinationId]) -> None:
        """Let destinations wait until all other due destinations are served."""
        self._waiting.setdefault(stream_id, set()).update(names)

    def divide(self, stream_id: StreamId, due: _Due) -> tuple[_Due, _Due]:
        """Return the due destinations that were not deferred, and the deferred destinations to serve now.

        Args:
            stream_id: The stream.
            due: All due destinations, the earliest first. Deferred destinations that are not in `due` are forgotten.
        """
        waiting = self._waiting.get(stream_id, set())
        own = [each for each in due if each[0] in waiting]
        self._waiting[stream_id] = {name for name, _ in own}
        others = [each for each in due if each[0] not in waiting]
        return others, [] if others or self._clock() < self._rested else own[:_LOT]

    @contextmanager
    def lot(self) -> Iterator[None]:
        """Measure the block, which serves a batch of windows, and begin the pause after it."""
        began = self._clock()
        yield
        ended = self._clock()
        self._rested = ended + _REST * (ended - began)
