"""Checkpoints of the positions of pending matches, on `cq.positions`.

With the checkpoints, a gateway that starts reads only the tail of `cq.pending`. Each partition of `cq.pending` has a
checkpoint of its own. The gateway rewrites a checkpoint once the partition has received four times the checkpoint's
size, and at least `TAIL_BYTES`. So the gateway writes at most a quarter as many bytes of checkpoints as of records, and
the tail is bounded.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping

import msgspec

from gateway.kafka import LogReader, OutgoingRecord
from gateway.state.commit import Commits
from gateway.timers.pending_index import PendingIndex
from grouping.digests.match_places import MatchPlaces
from grouping.settings.settings import Settings
from grouping.store.record_keys import place_key, place_of

__all__ = ["TAIL_BYTES", "TimerCheckpoints"]

TAIL_BYTES = 8 << 20
"""The smallest number of bytes of records between two checkpoints of a partition."""
_RATIO = 4
"""The smallest number of bytes of records between two checkpoints, in multiples of the checkpoint's size."""
_PART_BYTES = 2 << 20
_ENTRY_BYTES = 40


class _StoreRecord(msgspec.Struct, array_like=True, frozen=True):
    """The positions of one store's matches."""

    store: bytes
    earliest_ms: int
    older: int | None
    positions: bytes
    """The offsets of the records with the matches, as 64-bit integers."""
    rolled: int | None = None
    rolled_before: int = 0


class _CheckpointPart(msgspec.Struct, array_like=True, frozen=True):
    """A record of a checkpoint, key ``<partition>/<number>``."""

    offset: int
    """The offset on `cq.pending`: the checkpoint has all positions before it."""
    parts: int
    entries: list[_StoreRecord]


_decode = msgspec.msgpack.Decoder(_CheckpointPart).decode


class TimerCheckpoints:
    """Writes and reads the checkpoints of all partitions."""

    def __init__(self, settings: Settings, commits: Commits) -> None:
        self._settings = settings
        self._commits = commits
        self._topic = settings.topics.positions
        self._taken: dict[int, int] = {}
        self._sizes: dict[int, int] = {}
        self._parts: dict[int, int] = {}

    def count(self, partition: int, size: int) -> None:
        """Note the size, in bytes, of a record that the gateway has taken in."""
        self._taken[partition] = self._taken.get(partition, 0) + size

    def step(self, index: PendingIndex, reached: Mapping[int, int]) -> None:
        """Write one checkpoint that is due, if any.

        Args:
            index: The positions.
            reached: Partition of `cq.pending` → offset up to which the index has its records.
        """
        for partition, taken in self._taken.items():
            if taken >= max(TAIL_BYTES, _RATIO * self._sizes.get(partition, 0)):
                self._write(partition, reached[partition], index)
                return

    def _write(self, partition: int, offset: int, index: PendingIndex) -> None:
        groups = list(_groups(index.of_partition(partition)))
        bodies = [msgspec.msgpack.encode(_CheckpointPart(offset, len(groups), group)) for group in groups]
        gone = range(len(bodies), self._parts.get(partition, 0))
        records = [self._record(partition, number, body) for number, body in enumerate(bodies)]
        self._commits.write_records([*records, *(self._record(partition, number, None) for number in gone)])
        self._taken[partition] = 0
        self._sizes[partition], self._parts[partition] = sum(map(len, bodies)), len(bodies)

    def _record(self, partition: int, number: int, body: bytes | None) -> OutgoingRecord:
        return OutgoingRecord(self._topic, place_key(partition, number), body, (), 0)

    def read(self, index: PendingIndex, ends: Mapping[int, int]) -> dict[int, int]:
        """Fill an index with the positions in the checkpoints.

        Args:
            index: An empty index.
            ends: Partition → end of the log. A checkpoint with a later offset does not belong to this log, and is
                ignored.

        Returns:
            Partition with a checkpoint → offset from which the log has to be read.
        """
        bodies: dict[tuple[int, int], bytes] = {}
        reader = LogReader(self._settings)
        try:
            for record in reader.since(self._topic, {0: 0}):
                place = place_of(record.key)
                if record.value is not None:
                    bodies[place] = record.value
                else:
                    bodies.pop(place, None)
        finally:
            reader.close()
        self._taken, self._sizes, self._parts = {}, {}, {}
        offsets: dict[int, int] = {}
        for (partition, _), body in bodies.items():
            part = _decode(body)
            self._parts[partition] = part.parts
            if part.offset > ends[partition]:
                continue
            offsets[partition] = part.offset
            for entry in part.entries:
                positions = array("q", entry.positions)
                places = (positions, entry.older, entry.earliest_ms, entry.rolled, entry.rolled_before)
                index.restore(entry.store, MatchPlaces(partition, *places))
        return offsets


def _groups(stores: Iterator[tuple[bytes, MatchPlaces]]) -> Iterator[list[_StoreRecord]]:
    """Divide a partition's stores into lists, one for each record of the checkpoint; the last list may be empty."""
    group: list[_StoreRecord] = []
    size = 0
    for store, stored in stores:
        places = (stored.older, stored.positions.tobytes(), stored.rolled, stored.rolled_before)
        group.append(_StoreRecord(store, stored.earliest_ms or 0, *places))
        size += _ENTRY_BYTES + len(group[-1].positions)
        if size > _PART_BYTES:
            yield group
            group, size = [], 0
    yield group
