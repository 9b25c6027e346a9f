"""Where the matches of one store lie in the log: positions of records, never matches."""

from __future__ import annotations

from array import array

from grouping.model.ids import DestinationId

__all__ = ["MatchPlaces"]

_MOST_POSITIONS = 512
"""Per store: of one that has more, the older ones are found again by reading the log from the first of them."""


class MatchPlaces:
    """Where the matches of one store lie, in its partition of the log."""

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
        """From here to the first of the positions every record may hold some."""
        self.earliest_ms = earliest_ms
        """Earliest time of a match that all readers are armed for; None while they are not."""
        self.idle: set[DestinationId] = set()
        """Readers that are to be armed again with the next match."""
        self.readers = 0
        """How many there are, or were at some time."""
        self.fired = 0
        """Digests since the positions were last gone through."""

    def add(self, offset: int, most: int = _MOST_POSITIONS) -> None:
        """Note that a record holds matches; of so many positions the older half goes."""
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
        """Forget positions that nobody reads any more."""
        if self.older is not None:
            low = min([offset, *held])
            if low < self.positions[0]:
                self.older = max(self.older, low)
                return
            self.older = None
        self.positions = array("q", (place for place in self.positions if place >= offset or place in held))

    @property
    def first(self) -> int | None:
        """The first record that is still needed."""
        if self.older is not None:
            return self.older
        return self.positions[0] if self.positions else None
