"""Which records of `cq.pending` hold matches of which store: positions of records, never matches.

Kept in memory, about four hundred bytes for a store that has something pending; checkpoints bring it back on start.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from gateway.records import PENDING_PARTITIONS
from grouping.pending_matches import PendingMatches

__all__ = ["PendingIndex", "Stored", "store_key"]

_MOST_POSITIONS = 512
"""Per store: of one that has more, the older ones are found again by reading the log from the first of them."""


def store_key(name: str) -> bytes:
    """Return the bytes of a store's id, `p_…`."""
    return bytes.fromhex(name[2:])


class Stored:
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
        self.idle: set[str] = set()
        """Readers that are to be armed again with the next match."""
        self.readers = 0
        """How many there are, or were at some time."""
        self.fired = 0
        """Digests since the positions were last gone through."""

    def add(self, offset: int) -> None:
        """Note that a record holds matches."""
        positions = self.positions
        if positions and positions[-1] >= offset:
            return
        positions.append(offset)
        if len(positions) > _MOST_POSITIONS:
            half = _MOST_POSITIONS // 2
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


class PendingIndex:
    """All stores with something pending."""

    def __init__(self) -> None:
        self._stores: dict[bytes, Stored] = {}
        self._by_partition: list[dict[bytes, Stored]] = [{} for _ in range(PENDING_PARTITIONS)]

    def __len__(self) -> int:
        return len(self._stores)

    def __iter__(self) -> Iterator[tuple[bytes, Stored]]:
        return iter(self._stores.items())

    def get(self, store: bytes) -> Stored | None:
        """Return a store's matches, None when nothing is pending."""
        return self._stores.get(store)

    def take_in(self, record: PendingMatches, partition: int, offset: int) -> Iterator[tuple[bytes, Stored, int]]:
        """Note a record's matches; yields the stores whose readers are to be armed, with their earliest times."""
        times = record.time_of
        for store, (begin, end) in record.spans.items():
            stored = self._stores.get(store)
            if stored is None:
                stored = Stored(partition)
                self.restore(store, stored)
            stored.add(offset)
            earliest = int(times[begin]) if end == begin + 1 else int(times[begin:end].min())
            if stored.idle or stored.earliest_ms is None or earliest < stored.earliest_ms:
                yield store, stored, earliest

    def restore(self, store: bytes, stored: Stored) -> None:
        """Take up a store that is not known yet."""
        self._stores[store] = self._by_partition[stored.partition][store] = stored

    def of_partition(self, partition: int) -> Iterator[tuple[bytes, Stored]]:
        """Return the stores of one partition of the log."""
        return iter(self._by_partition[partition].items())

    def drop(self, store: bytes) -> None:
        """Forget a store."""
        stored = self._stores.pop(store, None)
        if stored is not None:
            del self._by_partition[stored.partition][store]

    def floors(self) -> dict[int, int]:
        """Return by partition the first record that is still needed; partitions that hold none are left out."""
        floors: dict[int, int] = {}
        for stored in self._stores.values():
            if (first := stored.first) is not None:
                floors[stored.partition] = min(first, floors.get(stored.partition, first))
        return floors
