"""How long other streams wait for their results when one stream, or a role, has a fault."""

from __future__ import annotations

import os
import time

__all__ = ["Probes", "served_within"]

_SERVED_SECONDS = 5.0
"""How long a stream may wait for the result of an event, on a machine with a free core."""


def served_within() -> float:
    """Return the longest allowed wait in seconds: five, times the runnable processes for each core of the machine."""
    return _SERVED_SECONDS * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


class Probes:
    """Published events whose results are awaited. The publishing thread notes events, the reading thread results."""

    def __init__(self) -> None:
        self._sent_at: dict[tuple[str, int], float] = {}
        self._seconds: dict[str, float] = {}
        """By stream: the longest wait that has ended."""

    def begin(self) -> None:
        """Forget the earlier events."""
        self._sent_at, self._seconds = {}, {}

    def sent(self, stream: str, number: int) -> None:
        """Note that an event with this number is published now."""
        self._sent_at[stream, number] = time.monotonic()

    def seen(self, stream: str, number: int) -> None:
        """Note that the result of an event is here."""
        sent_at = self._sent_at.pop((stream, number), None)
        if sent_at is not None:
            self._seconds[stream] = max(self._seconds.get(stream, 0.0), time.monotonic() - sent_at)

    @property
    def is_waiting(self) -> bool:
        """Whether a result is still awaited."""
        return bool(self._sent_at)

    def waits(self) -> dict[str, float]:
        """Return by stream the longest wait in seconds, unfinished waits included."""
        found, now = dict(self._seconds), time.monotonic()
        for (stream, _), sent_at in tuple(self._sent_at.items()):
            found[stream] = max(found.get(stream, 0.0), now - sent_at)
        return found
