"""Stored matches without servers: records as the evaluator packs them, and a log of them in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from grouping.digests.pending_log import Place
from grouping.pending_matches import PendingMatches, pack_pending

__all__ = ["STORE", "MemoryLog", "record"]

STORE = b"p" * 12


class MemoryLog:
    """A log of records in memory, read as `PendingLog` is."""

    def __init__(self, records: list[PendingMatches]) -> None:
        self.records = records

    def load(self, places: Iterable[Place]) -> dict[Place, PendingMatches]:
        """Return the records at those places."""
        return {place: self.records[place[1]] for place in places}

    def scan(self, partition: int, first: int, last: int) -> Iterator[tuple[Place, PendingMatches]]:
        """Yield the records from one offset to another, that one included."""
        for offset in range(first, min(last + 1, len(self.records))):
            yield (partition, offset), self.records[offset]


def record(events: list[tuple[int, int]], version: int = 1, stores: tuple[bytes, ...] = (STORE,)) -> PendingMatches:
    """Return a record of events, given by offset and time, that each of the stores has."""
    count = len(events)
    ids = np.frombuffer(b"".join(store * count for store in stores), np.uint8).reshape(-1, 12)
    offsets = np.array([offset for offset, _ in events] * len(stores), np.int64)
    times = np.array([time for _, time in events] * len(stores), np.int64)
    rows = np.array(list(range(count)) * len(stores), np.int32)
    values = [b'{"n":%d}' % offset for offset, _ in events]
    partitions = np.zeros(count * len(stores), np.int32)
    return PendingMatches.decode(pack_pending("s", (1, version), ids, (partitions, offsets, times), rows, values))
