"""Silent partitions: Kafka has sent neither a record nor the end of the partition since a consumer began to read it.

Normally Kafka answers within a second. But librdkafka never reads a topic that was deleted and created again with
another leader. The new leader's epoch is lower than the old one, so librdkafka takes the new leader for an outdated one
and reports nothing (librdkafka issue 4898). A new consumer, which has not seen the old topic, does read the new topic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

__all__ = ["Silence"]

_TopicPartition = tuple[str, int]
_SECONDS, _MOST_SECONDS = 4.0, 64.0
"""A silence of more than the first value, in seconds, is long. Each long silence doubles this time, up to the second
value, since Kafka may be unreachable."""


class Silence:
    """Decides when to replace a consumer with a new one.

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
            clock: Returns the present, in seconds of a monotonic clock.
        """
        self._clock = clock
        self.begin(())

    def begin(self, places: Iterable[_TopicPartition]) -> None:
        """Await an answer for these partitions, and no longer for any others."""
        self._awaited: dict[_TopicPartition, float] = {}
        self._seconds = _SECONDS
        self.await_from(places)

    def await_from(self, places: Iterable[_TopicPartition]) -> None:
        """Await an answer for these partitions in addition."""
        self._awaited |= dict.fromkeys(places, self._clock())

    def heard(self, places: Iterable[_TopicPartition]) -> None:
        """Note partitions for which Kafka has answered, or which are no longer read."""
        if not self._awaited:
            return
        for place in places:
            self._awaited.pop(place, None)
        if not self._awaited:
            self._seconds = _SECONDS

    def is_long(self) -> bool:
        """Tell whether a partition has been silent for long. If so, the waits for all partitions start again."""
        if not self._awaited or self._clock() < min(self._awaited.values()) + self._seconds:
            return False
        self._awaited = dict.fromkeys(self._awaited, self._clock())
        self._seconds = min(2 * self._seconds, _MOST_SECONDS)
        return True
