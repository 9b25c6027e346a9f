"""The notes in Redis that the evaluator writes for the gateway: progress, tables, and the workers' statistics."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from gateway.state.connection import Connection
from grouping.model.catalog import Stream
from grouping.model.ids import DestinationId, StreamId
from grouping.store.connection import mapped
from grouping.store.first_records import FirstRecords
from grouping.store.keys import role_title
from grouping.store.notes import CommittedNote, ExecutorsNote, Output, PartitionWatermark, Pin, TableVersion
from grouping.store.ownership import Owner
from grouping.store.snapshot_notes import SnapshotNote

__all__ = ["EvaluatorNotes"]


class EvaluatorNotes:
    """Reads the evaluator's notes, and removes notes of snapshots; each method may raise `StoreUnavailable`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def committed(self, stream_ids: Collection[StreamId]) -> dict[StreamId, CommittedNote]:
        """Return stream → note of its last committed batch, where there is one; Redis is asked once."""
        if not stream_ids:
            return {}
        redis, keys = self._connection.redis, self._connection.keys
        with mapped():
            bodies = redis.mget([keys.committed(stream_id) for stream_id in stream_ids])
        found = zip(stream_ids, bodies, strict=True)
        return {stream_id: CommittedNote.unpack(body) for stream_id, body in found if body is not None}

    def evaluated(self, streams: Sequence[Stream]) -> list[dict[str, int]]:
        """Return the evaluated positions of each stream, by source partition."""
        notes, none = self.committed([stream.stream_id for stream in streams]), CommittedNote()
        return [stream.evaluated(notes.get(stream.stream_id, none).offsets) for stream in streams]

    def oldest_pin(self, stream_id: StreamId) -> TableVersion | None:
        """Return the oldest version that a micro-batch under way is pinned to; None without such a micro-batch."""
        with mapped():
            pins = self._connection.redis.hvals(self._connection.keys.pins(stream_id))
        return min((Pin.unpack(pin).version for pin in pins), default=None)

    def replicas(self, source_ids: Sequence[str]) -> dict[str, list[bytes]]:
        """Return the workers' reports on rows of tables, undecoded, by `Table.source_id`."""
        if not source_ids:
            return {}
        pipeline = self._connection.redis.pipeline(transaction=False)
        with mapped():
            for source_id in source_ids:
                pipeline.hvals(self._connection.keys.replicas(source_id))
            return dict(zip(source_ids, pipeline.execute(), strict=True))

    def made_snapshots(self) -> dict[DestinationId, SnapshotNote]:
        """Return destination → note of its written snapshot."""
        with mapped():
            bodies = self._connection.redis.hgetall(self._connection.keys.snapshots_made)
        return {DestinationId(name.decode()): SnapshotNote.unpack(body) for name, body in bodies.items()}

    def forget_snapshots(self, names: Sequence[DestinationId]) -> None:
        """Remove notes of written snapshots for destinations that wait for no snapshot."""
        with self._connection.writing() as pipeline:
            pipeline.hdel(self._connection.keys.snapshots_made, *names)

    def states(self, stream_ids: Sequence[StreamId]) -> dict[StreamId, list[bytes]]:
        """Return the workers' reports on states by source partition, undecoded, by stream; Redis is asked once."""
        found = self._hashes(map(self._connection.keys.states, stream_ids)) if stream_ids else []
        return {stream_id: [*bodies.values()] for stream_id, bodies in zip(stream_ids, found, strict=True)}

    def key_samples(self, stream_ids: Sequence[StreamId]) -> dict[StreamId, list[bytes]]:
        """Return the samples of keys by source partition, by stream; Redis is asked once."""
        found = self._hashes(map(self._connection.keys.key_samples, stream_ids)) if stream_ids else []
        return {stream_id: [*bodies.values()] for stream_id, bodies in zip(stream_ids, found, strict=True)}

    def outputs(self, stream_ids: Sequence[StreamId]) -> dict[StreamId, Output]:
        """Return the counts of records that the tasks of streams found and wrote, by stream; Redis is asked once."""
        found = self._hashes(map(self._connection.keys.output, stream_ids))
        return dict(zip(stream_ids, map(Output.unpack, found), strict=True))

    def event_times(
        self, stream_ids: Sequence[StreamId]
    ) -> dict[StreamId, tuple[Output, dict[int, PartitionWatermark]]]:
        """Return stream → the counts of its tasks, and its watermarks by source partition; Redis is asked once."""
        found = zip(stream_ids, self._hashes(map(self._connection.keys.output, stream_ids)), strict=True)
        return {each: (Output.unpack(fields), PartitionWatermark.unpack_all(fields)) for each, fields in found}

    def misfits(self, stream_ids: Sequence[StreamId]) -> dict[StreamId, dict[str, int]]:
        """Return how many values did not fit their column since Redis was filled, by stream and column.

        Redis is asked once.
        """
        found = self._hashes(map(self._connection.keys.misfits, stream_ids))
        return {
            stream_id: {column.decode(): int(count) for column, count in sorted(counts.items())}
            for stream_id, counts in zip(stream_ids, found, strict=True)
        }

    def first_records(self, stream_ids: Sequence[StreamId]) -> dict[StreamId, FirstRecords]:
        """Return how many of the first records of streams became dead letters, by stream; Redis is asked once."""
        found = self._hashes(map(self._connection.keys.first_records, stream_ids))
        return dict(zip(stream_ids, map(FirstRecords.unpack, found), strict=True))

    def schema_ids(self, stream_ids: Sequence[StreamId]) -> dict[StreamId, int]:
        """Return the ids of the schemas that the first records of streams named, by stream; Redis is asked once."""
        with mapped():
            bodies = self._connection.redis.mget([self._connection.keys.schema_id(each) for each in stream_ids])
        return {each: int(body) for each, body in zip(stream_ids, bodies, strict=True) if body is not None}

    def _hashes(self, keys: Iterable[str]) -> list[dict[bytes, bytes]]:
        pipeline = self._connection.redis.pipeline(transaction=False)
        with mapped():
            for key in keys:
                pipeline.hgetall(key)
            return list(pipeline.execute())

    def owners(self, stream_ids: Sequence[StreamId]) -> dict[StreamId, Owner]:
        """Return stream → live evaluator that owns it."""
        if not stream_ids:
            return {}
        redis, keys = self._connection.redis, self._connection.keys
        with mapped():
            bodies = redis.mget([keys.owner(stream_id) for stream_id in stream_ids])
            found = {each: Owner.unpack(body) for each, body in zip(stream_ids, bodies, strict=True)}
            names = list({owner.name for owner in found.values() if owner is not None})
        live = {(name, holder.decode()) for name, holder in self._holders(names).items()}
        return {each: owner for each, owner in found.items() if owner is not None and owner in live}

    def running(self, names: Collection[str]) -> set[str]:
        """Return which of the given evaluators hold their leases."""
        return set(self._holders(list(names)))

    def _holders(self, names: Sequence[str]) -> dict[str, bytes]:
        if not names:
            return {}
        redis, keys = self._connection.redis, self._connection.keys
        with mapped():
            holders = redis.mget([keys.lease(role_title("evaluator", name)) for name in names])
        return {name: holder for name, holder in zip(names, holders, strict=True) if holder}

    def executors(self, evaluator: str) -> ExecutorsNote:
        """Return the executors of an evaluator."""
        with mapped():
            return ExecutorsNote.unpack(self._connection.redis.get(self._connection.keys.executors(evaluator)))

    def statistics(self, stream_ids: Sequence[StreamId]) -> dict[StreamId, list[bytes]]:
        """Return the workers' statistics by source partition, undecoded, by stream; Redis is asked once."""
        found = self._hashes(map(self._connection.keys.statistics, stream_ids))
        return {stream_id: [*bodies.values()] for stream_id, bodies in zip(stream_ids, found, strict=True)}
