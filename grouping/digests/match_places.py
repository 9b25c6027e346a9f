"""The positions of a store's matches on `cq.pending`: offsets of records, without the matches."""

from __future__ import annotations

from array import array

from grouping.model.ids import DestinationId

__all__ = ["MatchPlaces"]

_MOST_POSITIONS = 512
"""The largest number of positions of a store. Older matches are found by reading the log from `older` on."""


class MatchPlaces:
    """The positions of a store's matches, in the store's partition of the log."""

    __slots__ = (
        "earliest_ms",
        "fired",
        "idle",
        "older",
        "partition",
        "positions",
        "readers",
        "rolled",
        "rolled_before",
    )

    def __init__(
        self,
        partition: int,
        positions: array[int] | None = None,
        older: int | None = None,
        earliest_ms: int | None = None,
        rolled: int | None = None,
        rolled_before: int = 0,
    ) -> None:
        self.partition = partition
        self.positions = array("q") if positions is None else positions
        """Offsets of records, ascending."""
        self.older = older
        """The offset of the first older record: each record from this offset to the first position may have matches of
        the store. None if `positions` has all records with matches.
        """
        self.rolled = rolled
        """The offset of the rolled record that replaces all records before `rolled_before`; None without one."""
        self.rolled_before = rolled_before
        self.earliest_ms = earliest_ms
        """All readers are armed for matches with this time (epoch milliseconds) or later times; None if not armed."""
        self.idle: set[DestinationId] = set()
        """The readers that must be armed when the next match comes."""
        self.readers = 0
        """The number of readers at the last count."""
        self.fired = 0
        """The number of readers served since positions were last forgotten."""

    def add(self, offset: int, most: int = _MOST_POSITIONS) -> None:
        """Note that a record has matches; if there are more than `most` positions, drop the older half."""
        positions = self.positions
        if positions and positions[-1] >= offset:
            return
        positions.append(offset)
        if len(positions) > most:
            half = most // 2
            if self.older is None:
                self.older = positions[0]
            del positions[:half]

    def roll(self, offset: int, before: int) -> None:
        """Note a rolled record, which replaces all records of the store before another offset."""
        if before <= self.rolled_before:
            return  # known already: the log is read again after a server failed
        self.rolled, self.rolled_before = offset, before
        self.positions = array("q", (place for place in self.positions if place >= before))
        if self.older is not None:
            self.older = max(self.older, before) if self.positions else None

    def forget_before(self, offset: int, held: set[int]) -> None:
        """Forget the positions before an offset, except positions in `held`.

        If `older` is set, and a record before the first known position is still needed, only `older` is raised.
        """
        if self.rolled is not None and self.rolled < offset and self.rolled not in held:
            self.rolled = None
        if self.older is not None:
            low = min([offset, *held])
            if low < self.positions[0]:
                self.older = max(self.older, low)
                return
            self.older = None
        self.positions = array("q", (place for place in self.positions if place >= offset or place in held))

    def reaches(self, offset: int) -> bool:
        """Tell whether a record at or after an offset has matches."""
        latest = (self.positions[-1] if self.positions else None, self.rolled)
        return any(place is not None and place >= offset for place in latest)

    @property
    def first(self) -> int | None:
        """The offset of the first record that is still needed; None if no record is needed."""
        single = self.older
        if single is None and self.positions:
            single = self.positions[0]
        return min((place for place in (single, self.rolled) if place is not None), default=None)
