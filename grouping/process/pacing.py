"""The time between two checks of all source topics."""

from __future__ import annotations

__all__ = ["look_seconds"]

_SHORTEST_SECONDS, _LONGEST_SECONDS = 1.0, 3.0
_SOURCE_SECONDS = 0.003
"""Seconds between two checks, for each source. To get Kafka's description of a topic takes some 0.05 ms of CPU time."""


def look_seconds(sources: int) -> float:
    """Return the seconds between two checks of all sources: more for many sources, since a check then takes longer.

    Example:
        >>> [look_seconds(sources) for sources in (20, 500, 5000)]
        [1.0, 1.5, 3.0]
    """
    return min(max(_SHORTEST_SECONDS, _SOURCE_SECONDS * sources), _LONGEST_SECONDS)
