"""Notes of the gateway on snapshots of tables that the evaluator still has to write (EMIT CHANGES WITH SNAPSHOT)."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from grouping.model.ids import StreamId
from grouping.store.connection import mapped
from grouping.store.keys import RedisKeys

__all__ = ["SnapshotNote", "SnapshotPart", "SnapshotStore"]

_WRITER_MS = 5_000
"""If the worker that writes a part gives no sign of life for this time, another worker may write the part."""
_PARTS_SECONDS = 86_400
"""How long notes on written parts last. Notes are left over if the snapshot is no longer wanted."""


class SnapshotNote(msgspec.Struct, frozen=True, array_like=True):
    """A snapshot that a destination still needs; a value of `RedisKeys.snapshots`."""

    stream_id: StreamId
    """The stream of the table's changes."""
    subscriber: str
    name: str
    """The name of the CQ."""
    at_ms: int
    """When the CQ was created, epoch milliseconds."""
    since: tuple[int, ...]
    """By source partition, the position at which the snapshot ends. Later changes are single results."""
    mode: str
    """The mode of the entry: ``shared``, ``dedicated`` or ``throttled``."""
    partition: int
    """The partition to which the snapshot is written."""
    segment: bytes
    """An encoded `Segment` with only the entry of the destination."""

    def pack(self) -> bytes:
        """Return the note as bytes."""
        return msgspec.msgpack.encode(self)

    @classmethod
    def unpack(cls, body: bytes) -> SnapshotNote:
        """Read a note."""
        return _decode(body)


_decode = msgspec.msgpack.Decoder(SnapshotNote).decode


class SnapshotPart(NamedTuple):
    """A part of a snapshot that one worker writes: the rows of one source partition, or the record at the end."""

    destination_id: str
    """The destination that waits for the snapshot."""
    number: int
    """The source partition; for the record at the end, the number of partitions."""

    @property
    def name(self) -> str:
        """The part's name in Redis."""
        return f"{self.destination_id}/{self.number}"


class SnapshotStore:
    """The evaluator's access to snapshots. Only one worker at a time writes a part; a retry writes the same records."""

    def __init__(self, redis: Any, keys: RedisKeys) -> None:
        """Use a connection to Redis."""
        self._redis = redis
        self._keys = keys

    def due(self, stream_id: StreamId | None = None) -> dict[str, SnapshotNote]:
        """Return the snapshots that are to be written, by destination. Without a stream, return those of all streams.

        Raises:
            StoreUnavailable: Redis does not answer.
        """
        with mapped():
            bodies = self._redis.hgetall(self._keys.snapshots)
        notes = {name.decode(): SnapshotNote.unpack(body) for name, body in bodies.items()}
        return {name: note for name, note in notes.items() if stream_id in (None, note.stream_id)}

    def written(self, destination_id: str) -> dict[int, int]:
        """Return the parts of a snapshot that Kafka has: the number of rows in each part, by the number of the part.

        Raises:
            StoreUnavailable: Redis does not answer.
        """
        with mapped():
            rows = self._redis.hgetall(self._keys.snapshot_parts(destination_id))
        return {int(number): int(count) for number, count in rows.items()}

    def take(self, part: SnapshotPart, worker: str) -> int:
        """Take charge of a part.

        Args:
            part: The part.
            worker: Names the worker.

        Returns:
            How often a worker has taken charge of the part, including this time. The result is 0 if another worker is
            in charge or has written the part, or if the snapshot is no longer wanted.

        Raises:
            StoreUnavailable: Redis does not answer.
        """
        with mapped():
            if not self._redis.set(self._keys.snapshot_writer(part.name), worker, nx=True, px=_WRITER_MS):
                return 0
            pipeline = self._redis.pipeline(transaction=False)
            pipeline.hexists(self._keys.snapshots, part.destination_id)
            pipeline.hexists(self._keys.snapshot_parts(part.destination_id), str(part.number))
            if pipeline.execute() == [True, False]:
                return self.count_try(part.name)
            self._redis.delete(self._keys.snapshot_writer(part.name))
            return 0

    def count_try(self, name: str) -> int:
        """Count an attempt to write a part of a snapshot, or to carry out an order of digests of rows.

        Args:
            name: Names the part or the order.

        Returns:
            The number of attempts since the last `release`, `wrote` or `made`.

        Raises:
            StoreUnavailable: Redis does not answer.
        """
        with mapped():
            return int(self._redis.hincrby(self._keys.snapshot_tries, name, 1))

    def keep(self, part: SnapshotPart, worker: str) -> bool:
        """Stay in charge of a part; return whether its snapshot is still wanted.

        Raises:
            StoreUnavailable: Redis does not answer.
        """
        with mapped():
            pipeline = self._redis.pipeline(transaction=False)
            pipeline.set(self._keys.snapshot_writer(part.name), worker, px=_WRITER_MS)
            return bool(pipeline.hexists(self._keys.snapshots, part.destination_id).execute()[-1])

    def wrote(self, part: SnapshotPart, rows: int) -> None:
        """Note that Kafka has a part of a snapshot.

        Args:
            part: The part.
            rows: The number of its rows.

        Raises:
            StoreUnavailable: Redis does not answer.
        """
        parts = self._keys.snapshot_parts(part.destination_id)
        with mapped():
            pipeline = self._redis.pipeline(transaction=True)
            pipeline.hset(parts, str(part.number), rows)
            pipeline.expire(parts, _PARTS_SECONDS)
            self._forget(pipeline, part.name)

    def made(self, part: SnapshotPart, note: SnapshotNote) -> None:
        """Note that Kafka has all of a snapshot, or that the snapshot was given up.

        Args:
            part: The part that was written last.
            note: The snapshot.

        Raises:
            StoreUnavailable: Redis does not answer.
        """
        with mapped():
            pipeline = self._redis.pipeline(transaction=True)
            pipeline.hdel(self._keys.snapshots, part.destination_id)
            pipeline.hset(self._keys.snapshots_made, part.destination_id, note.pack())
            pipeline.delete(self._keys.snapshot_parts(part.destination_id))
            self._forget(pipeline, part.name)

    def release(self, name: str) -> None:
        """Give up the charge of a part that is no longer needed, or of an order that is carried out.

        Args:
            name: Names the part or the order.

        Raises:
            StoreUnavailable: Redis does not answer.
        """
        with mapped():
            self._forget(self._redis.pipeline(transaction=True), name)

    def _forget(self, pipeline: Any, name: str) -> None:
        pipeline.hdel(self._keys.snapshot_tries, name)
        pipeline.delete(self._keys.snapshot_writer(name)).execute()
