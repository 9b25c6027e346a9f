"""Topics that a broker did not know when it was asked. No I/O.

Such a topic was deleted, or the broker had just started and did not know its topics yet.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["Doubts"]

_SECONDS = 10.0
"""The longest time for which a broker that has just started may not know its topics."""


class Doubts:
    """Partitions of unknown topics. Each partition is kept until it is time to ask the broker again."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, int], float] = {}

    def note(self, where: tuple[str, int], now: float) -> None:
        """Note a partition of an unknown topic; `now` is in seconds of a monotonic clock."""
        self._since.setdefault(where, now)

    def due(self, now: float) -> list[tuple[str, int]]:
        """Return the partitions to ask about now, and forget them.

        Example:
            >>> doubts = Doubts()
            >>> doubts.note(("results", 3), 100.0)
            >>> doubts.due(105.0), doubts.due(110.0), doubts.due(110.0)
            ([], [('results', 3)], [])
        """
        found = [where for where, since in self._since.items() if now >= since + _SECONDS]
        self.forget(found)
        return found

    def forget(self, places: Iterable[tuple[str, int]]) -> None:
        """Forget partitions that are no longer read."""
        for where in places:
            self._since.pop(where, None)
