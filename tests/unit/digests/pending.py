"""Stored matches without servers: records as the evaluator packs them, on a partition of `cq.pending` in memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from grouping.digests.pending_log import PendingLog
from grouping.digests.pending_matches import pack_pending

__all__ = ["STORE", "Partition", "record"]

STORE = b"p" * 12


class Partition:
    """The contents of partition 0 in Kafka, and the real log over it."""

    def __init__(self, bodies: list[bytes] | None = None) -> None:
        self.bodies = bodies or []
        """By offset: values of records."""
        self.first = 0
        """Records before it were deleted."""
        self.log = self.reader()

    def reader(self, *, keeping: bool = False) -> PendingLog:
        """Return a log that has nothing at hand yet."""
        return PendingLog(self._span, keeping=keeping)

    def append(self, body: bytes) -> int:
        """Write a record, and return its offset."""
        self.bodies.append(body)
        return len(self.bodies) - 1

    def _span(self, partition: int, first: int, last: int) -> Iterator[tuple[int, bytes]]:
        assert partition == 0
        for offset in range(max(first, self.first), min(last + 1, len(self.bodies))):
            yield offset, self.bodies[offset]


def record(
    events: list[tuple[int, int]], version: int = 1, stores: tuple[bytes, ...] = (STORE,), value: bytes = b""
) -> bytes:
    """Return a record of events, given by offset and time, in each of the stores; `value` is the value of all."""
    count = len(events)
    ids = np.frombuffer(b"".join(store * count for store in stores), np.uint8).reshape(-1, 12)
    offsets = np.array([offset for offset, _ in events] * len(stores), np.int64)
    times = np.array([time for _, time in events] * len(stores), np.int64)
    rows = np.array(list(range(count)) * len(stores), np.int32)
    values = [value or b'{"n":%d}' % offset for offset, _ in events]
    partitions = np.zeros(count * len(stores), np.int32)
    return pack_pending("s", (1, version), ids, (partitions, offsets, times), rows, values)
