"""Positions of what waits for a tick, kept on `cq.positions`, so that a gateway that starts reads the log's tail only.

Each partition of `cq.pending` has a checkpoint of its own, written anew when as much has come in as is worth it: so the
writing costs a fraction of what comes in, and what is read on start is bounded, however much waits.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping

import msgspec

from gateway.kafka import LogReader, OutgoingRecord
from gateway.state.commit import Commits
from gateway.timers.pending_index import PendingIndex
from grouping.digests.match_places import MatchPlaces
from grouping.settings import Settings
from grouping.store.record_keys import place_key, place_of

__all__ = ["Checkpoints"]

_TAIL_BYTES = 8 << 20
"""Of a partition's records that are taken in between two checkpoints, at least."""
_RATIO = 4
"""So many times its own size comes in between two checkpoints, at least."""
_PART_BYTES = 2 << 20
_ENTRY_BYTES = 40


class _Entry(msgspec.Struct, array_like=True, frozen=True):
    store: bytes
    earliest_ms: int
    older: int | None
    positions: bytes
    """Offsets, int64 each."""


class _Part(msgspec.Struct, array_like=True, frozen=True):
    """One record, key ``<partition>/<number>``."""

    offset: int
    """Of `cq.pending`: everything before it is in the checkpoint."""
    parts: int
    entries: list[_Entry]


_decode = msgspec.msgpack.Decoder(_Part).decode


class Checkpoints:
    """Writes and reads the checkpoints of all partitions."""

    def __init__(self, settings: Settings, commits: Commits) -> None:
        self._settings = settings
        self._commits = commits
        self._topic = settings.topics.positions
        self._taken: dict[int, int] = {}
        self._sizes: dict[int, int] = {}
        self._parts: dict[int, int] = {}

    def count(self, partition: int, size: int) -> None:
        """Note that a record of so many bytes was taken in."""
        self._taken[partition] = self._taken.get(partition, 0) + size

    def step(self, index: PendingIndex, reached: Mapping[int, int]) -> None:
        """Write the checkpoint of one partition, if one is due."""
        for partition, taken in self._taken.items():
            if taken >= max(_TAIL_BYTES, _RATIO * self._sizes.get(partition, 0)):
                self._write(partition, reached[partition], index)
                return

    def _write(self, partition: int, offset: int, index: PendingIndex) -> None:
        groups = list(_groups(index.of_partition(partition)))
        bodies = [msgspec.msgpack.encode(_Part(offset, len(groups), group)) for group in groups]
        gone = range(len(bodies), self._parts.get(partition, 0))
        records = [self._record(partition, number, body) for number, body in enumerate(bodies)]
        self._commits.write_records([*records, *(self._record(partition, number, None) for number in gone)])
        self._taken[partition] = 0
        self._sizes[partition], self._parts[partition] = sum(map(len, bodies)), len(bodies)

    def _record(self, partition: int, number: int, body: bytes | None) -> OutgoingRecord:
        return OutgoingRecord(self._topic, place_key(partition, number), body, (), 0)

    def read(self, index: PendingIndex, ends: Mapping[int, int]) -> dict[int, int]:
        """Fill an index with what the checkpoints hold.

        Args:
            index: An empty one.
            ends: The log's; a checkpoint beyond them is of another log.

        Returns:
            By partition that has a checkpoint: where the log is to be read on from.
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
                index.restore(entry.store, MatchPlaces(partition, positions, entry.older, entry.earliest_ms))
        return offsets


def _groups(stores: Iterator[tuple[bytes, MatchPlaces]]) -> Iterator[list[_Entry]]:
    """Cut a partition's stores into runs for a record each; one empty run where there is none."""
    group: list[_Entry] = []
    size = 0
    for store, stored in stores:
        group.append(_Entry(store, stored.earliest_ms or 0, stored.older, stored.positions.tobytes()))
        size += _ENTRY_BYTES + len(group[-1].positions)
        if size > _PART_BYTES:
            yield group
            group, size = [], 0
    yield group
