"""Divides periodic work on many streams into steps, each for some of the streams."""

from __future__ import annotations

from collections.abc import Iterable

from grouping.model.ids import StreamId

__all__ = ["Rotation"]

_MOST = 50
"""The largest number of streams of a step."""


class Rotation:
    """Chooses the streams of each step in turn, so a step takes no longer with a thousand streams than with fifty.

    Example:
        >>> rotation = Rotation(2)
        >>> [rotation.choose(["a", "b", "c"]) for _ in range(3)]
        [['a', 'b'], ['c', 'a'], ['b', 'c']]
        >>> rotation.choose(["b", "c"])
        ['b', 'c']
    """

    def __init__(self, most: int = _MOST) -> None:
        """Begin with the first stream; a step gets at most `most` streams."""
        self._most = most
        self._next = 0

    def choose(self, streams: Iterable[StreamId]) -> list[StreamId]:
        """Return the streams of the next step, given all streams."""
        every = list(streams)
        if len(every) <= self._most:
            return every
        first = self._next % len(every)
        self._next = first + self._most
        return [*every, *every][first : self._next]
