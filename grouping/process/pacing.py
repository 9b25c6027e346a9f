"""How often the topics of all sources are looked at."""

from __future__ import annotations

__all__ = ["look_seconds"]

_SHORTEST_SECONDS = 1.0
_TOPIC_SECONDS = 0.005
"""Seconds between two looks, for each topic. Kafka's description of a topic takes some 0.05 ms of CPU time."""


def look_seconds(topics: int) -> float:
    """Return how many seconds lie between two looks at topics: the more topics, the longer, so looks stay cheap.

    Example:
        >>> look_seconds(20), look_seconds(1000)
        (1.0, 5.0)
    """
    return max(_SHORTEST_SECONDS, _TOPIC_SECONDS * topics)
