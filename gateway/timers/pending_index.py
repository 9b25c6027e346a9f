"""The index of pending matches: for each store, the offsets of its records on `cq.pending`, without the matches.

The index is in memory and takes about 400 bytes for each store with pending matches. A gateway that starts restores the
index from checkpoints.
"""

from __future__ import annotations

from collections.abc import Iterator

from gateway.model.records import PENDING_PARTITIONS
from grouping.digests.match_places import MatchPlaces
from grouping.digests.pending_matches import PendingMatches

__all__ = ["PendingIndex", "store_key"]


def store_key(name: str) -> bytes:
    """Return the bytes of a store's id, `p_…`."""
    return bytes.fromhex(name[2:])


class PendingIndex:
    """The positions of pending matches, by store."""

    def __init__(self) -> None:
        self._stores: dict[bytes, MatchPlaces] = {}
        self._by_partition: list[dict[bytes, MatchPlaces]] = [{} for _ in range(PENDING_PARTITIONS)]

    def __len__(self) -> int:
        return len(self._stores)

    def __iter__(self) -> Iterator[tuple[bytes, MatchPlaces]]:
        return iter(self._stores.items())

    def get(self, store: bytes) -> MatchPlaces | None:
        """Return the positions of a store's matches; None if no match is pending."""
        return self._stores.get(store)

    def take_in(self, record: PendingMatches, partition: int, offset: int) -> Iterator[tuple[bytes, MatchPlaces, int]]:
        """Note the positions of a record's matches, and yield the stores whose readers must be armed.

        Readers of a store must be armed if some of them are idle (`MatchPlaces.idle`), or if a new match has an earlier
        time than all pending matches.

        Yields:
            A store's id, its positions, and the earliest time of its new matches.
        """
        for part in record.whole:
            times = part.time_of
            for store, (begin, end) in part.spans.items():
                stored = self._stores.get(store)
                if stored is None:
                    stored = MatchPlaces(partition)
                    self.restore(store, stored)
                if part.before:
                    stored.roll(offset, part.before)
                else:
                    stored.add(offset)
                earliest = int(times[begin]) if end == begin + 1 else int(times[begin:end].min())
                if part.computed:
                    earliest = 0  # the next digest has the result, even if the result's time is later
                if stored.idle or stored.earliest_ms is None or earliest < stored.earliest_ms:
                    yield store, stored, earliest

    def restore(self, store: bytes, stored: MatchPlaces) -> None:
        """Add a store that the index does not have yet."""
        self._stores[store] = self._by_partition[stored.partition][store] = stored

    def of_partition(self, partition: int) -> Iterator[tuple[bytes, MatchPlaces]]:
        """Yield the stores of a partition of the log."""
        return iter(self._by_partition[partition].items())

    def drop(self, store: bytes) -> None:
        """Forget a store."""
        stored = self._stores.pop(store, None)
        if stored is not None:
            del self._by_partition[stored.partition][store]

    def floors(self) -> dict[int, int]:
        """Return partition with pending matches → offset of its first record that a store needs."""
        floors: dict[int, int] = {}
        for stored in self._stores.values():
            if (first := stored.first) is not None:
                floors[stored.partition] = min(first, floors.get(stored.partition, first))
        return floors
