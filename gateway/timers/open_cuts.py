"""Open cuts: cuts with digests that are not written yet, because of a crash or because the disk was full.

The gateway tries to write the digests of an open cut again. If the disk was full, the first of these tries comes after
ten seconds. Each try uses the same cut, so the content of a digest does not depend on the time of writing. Until a
digest is written, its destination gets no other digest, except a last digest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from gateway.metrics import WAITING_DIGESTS
from gateway.timers.cuts import Cut

__all__ = ["OpenCuts"]

_AGAIN_MS, _LONGEST_MS = 10_000, 300_000
"""The first and the longest wait between two tries, in milliseconds. Each wait is twice as long as the wait before,
since the gathering of a large digest takes long."""


class _Attempt(NamedTuple):
    """The last try of a cut, and the wait until the next try."""

    since_ms: int
    wait_ms: int

    def due(self, now_ms: int) -> bool:
        """Tell whether the next try is due: after the wait or, if the clock was turned back meanwhile, at once."""
        return not 0 <= now_ms - self.since_ms < self.wait_ms


class OpenCuts:
    """Open cuts by their names; for use by the gateway's main thread only."""

    def __init__(self) -> None:
        self.recover({})

    def recover(self, found: Mapping[str, Cut]) -> None:
        """Begin with the open cuts that were found on Kafka."""
        self._cuts = dict(found)
        self._tries: dict[str, _Attempt] = {}
        self._count()

    def keep(self, name: str, left: Cut | None, now_ms: int) -> None:
        """Note the outcome of a try of a cut.

        Args:
            name: The name of the cut.
            left: The cut with the digests that are still unwritten; None if all are written.
            now_ms: The present, epoch milliseconds.
        """
        if left is not None:
            wait_ms = min(2 * self._tries[name].wait_ms, _LONGEST_MS) if name in self._tries else _AGAIN_MS
            self._cuts[name], self._tries[name] = left, _Attempt(now_ms, wait_ms)
        elif self._cuts.pop(name, None) is not None:
            self._tries.pop(name, None)
        else:
            return
        self._count()

    def _count(self) -> None:
        self.waiting = {name for cut in self._cuts.values() for name, _, _ in cut.digests}
        """Destinations with a digest in an open cut."""
        WAITING_DIGESTS.set(len(self.waiting))

    def due(self, now_ms: int) -> tuple[str, Cut] | None:
        """Return the name and the cut of a try that is due; None if no try is due.

        The first try of a cut that a crash left open is due at once.
        """
        for name, cut in self._cuts.items():
            if name not in self._tries or self._tries[name].due(now_ms):
                return name, cut
        return None

    @property
    def untried(self) -> bool:
        """Whether a cut that a crash left open was not tried yet."""
        return len(self._tries) < len(self._cuts)

    def of_streams(self) -> Counter[str]:
        """Return the number of waiting digests by stream."""
        found: Counter[str] = Counter()
        for cut in self._cuts.values():
            found[cut.stream_id] += len(cut.digests)
        return found
