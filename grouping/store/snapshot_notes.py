"""Snapshots of tables that the evaluator still has to write (EMIT CHANGES WITH SNAPSHOT), as notes of the gateway."""

from __future__ import annotations

from typing import Any

import msgspec

from grouping.model.ids import StreamId
from grouping.store.connection import mapped
from grouping.store.keys import RedisKeys

__all__ = ["SnapshotNote", "SnapshotStore"]

_WRITER_MS = 5_000
"""Time without a sign of a worker after which another worker writes its snapshot."""


class SnapshotNote(msgspec.Struct, frozen=True, array_like=True):
    """A snapshot that a destination lacks: a value of `RedisKeys.snapshots`."""

    stream_id: StreamId
    """The stream of the table's changes."""
    subscriber: str
    name: str
    """The CQ."""
    at_ms: int
    """When the CQ was created, epoch milliseconds."""
    since: tuple[int, ...]
    """By source partition, the position at which the snapshot ends; later changes are results of their own."""
    mode: str
    """``shared`` or ``dedicated``."""
    partition: int
    """The partition of the destination's topic."""
    segment: bytes
    """A `Segment` with the destination's entry alone."""

    def pack(self) -> bytes:
        """Return the note as bytes."""
        return msgspec.msgpack.encode(self)

    @classmethod
    def unpack(cls, body: bytes) -> SnapshotNote:
        """Read a note."""
        return _decode(body)


_decode = msgspec.msgpack.Decoder(SnapshotNote).decode


class SnapshotStore:
    """The evaluator's side. A single worker at a time writes a snapshot; a repetition has the same records."""

    def __init__(self, redis: Any, keys: RedisKeys) -> None:
        """Use a connection to Redis."""
        self._redis = redis
        self._keys = keys

    def due(self, stream_id: StreamId | None = None) -> dict[str, SnapshotNote]:
        """Return the snapshots to be written, by destination: of a stream, or of all streams.

        Raises:
            StoreUnavailable: Redis does not answer.
        """
        with mapped():
            bodies = self._redis.hgetall(self._keys.snapshots)
        notes = {name.decode(): SnapshotNote.unpack(body) for name, body in bodies.items()}
        return {name: note for name, note in notes.items() if stream_id in (None, note.stream_id)}

    def take(self, destination_id: str, worker: str) -> int:
        """Take charge of a snapshot.

        Args:
            destination_id: The destination that waits for the snapshot.
            worker: Names the worker.

        Returns:
            How often workers took charge of the snapshot, including this time; 0 if another worker is in charge now.

        Raises:
            StoreUnavailable: Redis does not answer.
        """
        with mapped():
            if not self._redis.set(self._keys.snapshot_writer(destination_id), worker, nx=True, px=_WRITER_MS):
                return 0
            return int(self._redis.hincrby(self._keys.snapshot_tries, destination_id, 1))

    def count_try(self, name: str) -> int:
        """Count a try to carry out an order of digests of rows; return the number of tries since the last `release`.

        Raises:
            StoreUnavailable: Redis does not answer.
        """
        with mapped():
            return int(self._redis.hincrby(self._keys.snapshot_tries, name, 1))

    def keep(self, destination_id: str, worker: str) -> bool:
        """Stay in charge of a snapshot; return whether it is still to be written.

        Raises:
            StoreUnavailable: Redis does not answer.
        """
        with mapped():
            pipeline = self._redis.pipeline(transaction=False)
            pipeline.set(self._keys.snapshot_writer(destination_id), worker, px=_WRITER_MS)
            return bool(pipeline.hexists(self._keys.snapshots, destination_id).execute()[-1])

    def made(self, destination_id: str, note: SnapshotNote) -> None:
        """Note that Kafka has a snapshot.

        Raises:
            StoreUnavailable: Redis does not answer.
        """
        with mapped():
            pipeline = self._redis.pipeline(transaction=True)
            pipeline.hdel(self._keys.snapshots, destination_id)
            pipeline.hset(self._keys.snapshots_made, destination_id, note.pack())
            self._forget(pipeline, destination_id)

    def release(self, destination_id: str) -> None:
        """Give up the charge of a snapshot that is not needed any more, or of an order that is carried out.

        Raises:
            StoreUnavailable: Redis does not answer.
        """
        with mapped():
            self._forget(self._redis.pipeline(transaction=True), destination_id)

    def _forget(self, pipeline: Any, destination_id: str) -> None:
        pipeline.hdel(self._keys.snapshot_tries, destination_id)
        pipeline.delete(self._keys.snapshot_writer(destination_id)).execute()
