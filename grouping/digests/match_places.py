"""The positions of one store's matches on `cq.pending`. They name records; no match is held."""

from __future__ import annotations

from array import array

from grouping.model.ids import DestinationId

__all__ = ["MatchPlaces"]

_MOST_POSITIONS = 512
"""Positions kept for a store; older matches are found again by reading the log from `older` on."""


class MatchPlaces:
    """The positions of one store's matches, in the store's partition of the log."""

    __slots__ = ("earliest_ms", "fired", "idle", "older", "partition", "positions", "readers")

    def __init__(
        self,
        partition: int,
        positions: array[int] | None = None,
        older: int | None = None,
        earliest_ms: int | None = None,
    ) -> None:
        self.partition = partition
        self.positions = array("q") if positions is None else positions
        """Offsets of records, ascending."""
        self.older = older
        """The first of the older records: each record from here to the first position may hold matches of the store."""
        self.earliest_ms = earliest_ms
        """The earliest time of a match that all readers are armed for; None while they are not armed."""
        self.idle: set[DestinationId] = set()
        """Readers that the next match arms."""
        self.readers = 0
        """The number of readers when they were last counted."""
        self.fired = 0
        """Readers served since the positions were last cleared of those that all readers have passed."""

    def add(self, offset: int, most: int = _MOST_POSITIONS) -> None:
        """Note that a record holds matches; beyond `most` positions the older half is dropped."""
        positions = self.positions
        if positions and positions[-1] >= offset:
            return
        positions.append(offset)
        if len(positions) > most:
            half = most // 2
            if self.older is None:
                self.older = positions[0]
            del positions[:half]

    def forget_before(self, offset: int, held: set[int]) -> None:
        """Forget the positions before an offset, but those in `held`."""
        if self.older is not None:
            low = min([offset, *held])
            if low < self.positions[0]:
                self.older = max(self.older, low)
                return
            self.older = None
        self.positions = array("q", (place for place in self.positions if place >= offset or place in held))

    def reaches(self, offset: int) -> bool:
        """Tell whether a record at an offset, or behind it, has matches."""
        return bool(self.positions) and self.positions[-1] >= offset

    @property
    def first(self) -> int | None:
        """The first record that is still needed."""
        if self.older is not None:
            return self.older
        return self.positions[0] if self.positions else None
