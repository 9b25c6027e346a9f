"""Partitions that have given a consumer neither a record nor their end since it began to read them.

Kafka answers within a second. librdkafka never reads a topic that was deleted and created anew with a different leader:
the new leader's epoch is lower, so librdkafka takes it for an old epoch, and reports nothing (its issue 4898). A
consumer that knows nothing of the old topic reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

__all__ = ["Silence"]

_TopicPartition = tuple[str, int]
_SECONDS, _MOST_SECONDS = 4.0, 64.0
"""Seconds until a silence counts as long: at first, and at most. Each long silence doubles them, as Kafka may be
away."""


class Silence:
    """Decides when to continue with another consumer.

    Example:
        >>> now = 0.0
        >>> silence = Silence(lambda: now)
        >>> silence.await_from([("a", 0), ("b", 0)])
        >>> silence.heard([("a", 0)])
        >>> now = 4.5
        >>> silence.is_long(), silence.is_long()
        (True, False)
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        """Begin without partitions.

        Args:
            clock: The present, in seconds of a monotonic clock.
        """
        self._clock = clock
        self.begin(())

    def begin(self, places: Iterable[_TopicPartition]) -> None:
        """Await a sign of these partitions, and of no others."""
        self._awaited: dict[_TopicPartition, float] = {}
        self._seconds = _SECONDS
        self.await_from(places)

    def await_from(self, places: Iterable[_TopicPartition]) -> None:
        """Await a sign of these partitions too."""
        self._awaited |= dict.fromkeys(places, self._clock())

    def heard(self, places: Iterable[_TopicPartition]) -> None:
        """Note partitions that gave a record, or are no longer read."""
        if not self._awaited:
            return
        for place in places:
            self._awaited.pop(place, None)
        if not self._awaited:
            self._seconds = _SECONDS

    def is_long(self) -> bool:
        """Tell whether a partition has been silent for long; if so, the waits for all partitions begin anew."""
        if not self._awaited or self._clock() < min(self._awaited.values()) + self._seconds:
            return False
        self._awaited = dict.fromkeys(self._awaited, self._clock())
        self._seconds = min(2 * self._seconds, _MOST_SECONDS)
        return True
