"""The evaluator's side of Redis: it reads tables and pins, and writes notes.

The gateway writes constant tables in commits; each commit makes a new version for the streams that it changes. The
evaluator pins a version for each micro-batch, so all tasks of a batch, and its replay, see the same version. The
gateway confirms an *epoch* of the tables for the run of the Redis server that it filled. After a restart of Redis, the
evaluator waits for another confirmation (docs/design/003-redis-is-a-working-copy.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from grouping.access.stream_statistics import PartitionStatistics
from grouping.model.catalog import Stream
from grouping.model.errors import OperationalError
from grouping.model.ids import GroupId, SelectId, StreamId
from grouping.model.table import DroppedTable, Table
from grouping.plan.group import GroupPlan, SelectList
from grouping.settings.settings import Settings
from grouping.store.connection import StoreUnavailable, check_primary, connect, mapped
from grouping.store.constant_table import Segment, net
from grouping.store.evaluator_scripts import PIN
from grouping.store.fence import LeaseLost, transaction
from grouping.store.keys import RedisKeys
from grouping.store.notes import CommittedNote, EpochNote, ExecutorsNote, PartitionStates, Pin, ReplicaNote, TablePins
from grouping.store.ownership import EvaluatorFences
from grouping.store.segment_log import SegmentLog, VersionSpan, chain
from grouping.store.snapshot_notes import SnapshotStore
from grouping.store.task_counts import CountWriter

__all__ = ["VERSIONS_MARK", "BatchCommitted", "TableStore"]

_encode_pins = msgspec.json.Encoder().encode
_decode_pins = msgspec.json.Decoder(TablePins).decode
_DROPPED_MS = 86_400_000
"""Milliseconds for which a note on the dead letters of a table stays if Redis lacks the table. The table was dropped,
or the gateway is filling Redis and has not written the table yet.
"""
_WRITER_MS = 30_000
"""If the worker that writes a table's dead letters gives no sign of life for this time, another worker takes over."""
_REPLICAS_SECONDS = 3600
"""Seconds for which the notes of workers on a table are kept after the last note."""
_Id = TypeVar("_Id", bound=str)
_Stored = TypeVar("_Stored")

VERSIONS_MARK = b""
"""A field that the hash of versions always has; if the field is missing, Redis has lost the hash."""


class BatchCommitted(OperationalError):
    """The micro-batch of a task is committed already, by another attempt."""


class TableStore:
    """The evaluator's access to Redis. Each process and thread needs its own instance."""

    def __init__(self, settings: Settings, fences: EvaluatorFences | None = None) -> None:
        """Connect when first used.

        Args:
            settings: Where Redis is.
            fences: The evaluator's fences, with which every write may raise `LeaseLost`. None for a process that only
                reads.
        """
        self._keys = RedisKeys.of(settings)
        self._fences = fences
        self._redis = connect(settings)
        self._pin = self._redis.register_script(PIN)
        self.counts = CountWriter(self._redis, self._keys, fences)
        """The counts of matches."""
        self.snapshots = SnapshotStore(self._redis, self._keys)
        """The snapshots that are still to be written."""

    def pin(self, stream_id: StreamId, batch: int) -> Pin:
        """Return the pin of a micro-batch. The first task that asks creates the pin; all other tasks get the same pin.

        Raises:
            StoreUnavailable: The tables are not confirmed for this run of the server, or not complete; or the stream
                is held; or the server is no longer the primary. The caller should ask again.
            BatchCommitted: The batch is committed already, so its pin was removed.
            LeaseLost: Another evaluator has taken over.
        """
        with mapped():
            pinned = self._pin(*self._pin_question(stream_id, batch))
        if pinned == b"":
            raise LeaseLost("another evaluator has taken over", detail="Nothing was pinned.")
        if pinned == b"committed":
            raise BatchCommitted(
                "the micro-batch is committed", detail=f"The micro-batch is {batch}; another attempt was faster."
            )
        if pinned is None:
            raise StoreUnavailable("the constant tables are not confirmed", hint="The gateway confirms them on start.")
        check_primary(self._redis)
        return Pin.unpack(pinned)

    def pin_together(self, stream_ids: Iterable[StreamId], batch: int) -> dict[StreamId, Pin]:
        """Return the pins of several streams for micro-batches of one number; streams that cannot be pinned are absent.

        Raises:
            StoreUnavailable: Redis does not answer, or is not the primary any more.
        """
        listed = list(stream_ids)
        with mapped():
            pipeline = self._redis.pipeline(transaction=False)
            for stream_id in listed:
                self._pin(*self._pin_question(stream_id, batch), client=pipeline)
            found = zip(listed, pipeline.execute(), strict=True)
        check_primary(self._redis)
        return {stream_id: Pin.unpack(pinned) for stream_id, pinned in found if pinned not in (None, b"", b"committed")}

    def _pin_question(self, stream_id: StreamId, batch: int) -> tuple[list[str], list[str | int]]:
        """Return the keys and arguments of the script `PIN`."""
        keys = self._keys
        names = [keys.epoch, keys.version, keys.pins(stream_id), keys.streams, keys.pauses, keys.next_batch(stream_id)]
        names.append(keys.held(stream_id))
        if self._fences is None:
            return names, [stream_id, batch]
        fence = self._fences.stream(stream_id)
        return [*names, fence.key], [stream_id, batch, fence.token]

    def changes(self, stream_id: StreamId, epoch: int, since: int, until: int) -> Iterator[Segment] | None:
        """Return the net changes of the versions (`since`, `until`] of an epoch, to be read piece by piece.

        The result is None if `since` lies within a merged segment. The caller must then load the tables from version 0.
        If `since` is 0, the changes may end after `until`, because a merged segment spans several versions.

        Raises:
            StoreUnavailable: Pieces are missing, or the epoch has changed; raised at once, or while pieces are read.
        """
        log = SegmentLog(self._redis, self._keys.segments(stream_id))
        with mapped():
            spans = chain(log.spans(), since, until)
        if spans is None and not since:
            raise StoreUnavailable(
                "the constant tables are not complete",
                detail=f'No segments of stream "{stream_id}" lead to version {until}.',
            )
        return None if spans is None else self._net(log, spans, epoch)

    def _net(self, log: SegmentLog, spans: list[VersionSpan], epoch: int) -> Iterator[Segment]:
        with mapped():
            yield from net(map(log.pieces, reversed(spans)), oldest=bool(spans) and not spans[0].since)
        if self.epoch() != epoch:
            raise StoreUnavailable("the constant tables were filled again while they were read")

    def pieces(self, stream_id: StreamId) -> Iterator[Segment]:
        """Yield the pieces of all stored segments of a stream.

        Raises:
            StoreUnavailable: Redis does not answer.
            SegmentLost: A segment was merged meanwhile, or is not complete.
        """
        log = SegmentLog(self._redis, self._keys.segments(stream_id))
        with mapped():
            for span in log.spans():
                yield from log.pieces(span)

    def plans(self, stream_id: StreamId, group_ids: Iterable[GroupId]) -> dict[GroupId, GroupPlan]:
        """Return the plans of the given groups. Groups without a plan are missing in the result."""
        return self._read(self._keys.groups(stream_id), list(group_ids), GroupPlan)

    def selects(self, stream_id: StreamId, select_ids: Iterable[SelectId]) -> dict[SelectId, SelectList]:
        """Return the given SELECT lists. Unknown ids are missing in the result."""
        return self._read(self._keys.selects(stream_id), list(select_ids), SelectList)

    def _read(self, key: str, ids: list[_Id], kind: type[_Stored]) -> dict[_Id, _Stored]:
        if not ids:
            return {}
        with mapped():
            bodies = self._redis.hmget(key, ids)
        return {
            name: msgspec.json.decode(body, type=kind)
            for name, body in zip(ids, bodies, strict=True)
            if body is not None
        }

    def tables(self, table_ids: Sequence[str]) -> dict[str, Table]:
        """Return tables by id. Dropped tables are included, since their dropped CQs may still have unevaluated events.

        Raises:
            StoreUnavailable: Tables are missing; without them matches would be lost.
        """
        found = self._read(self._keys.tables, list(table_ids), Table)
        dropped = self._read(self._keys.dropped_tables, [each for each in table_ids if each not in found], DroppedTable)
        found |= {table_id: each.table for table_id, each in dropped.items()}
        if missing := sorted(set(table_ids) - found.keys()):
            raise StoreUnavailable("the tables are not complete", detail=f'Redis has lost "{missing[0]}".')
        return found

    def lost_tables(self, table_ids: Sequence[str]) -> set[str]:
        """Return which of the given tables were dropped and no longer have a topic."""
        dropped = self._read(self._keys.dropped_tables, list(table_ids), DroppedTable)
        return {table_id for table_id, each in dropped.items() if each.lost}

    def table_pins(self, stream_id: StreamId, batch: int) -> TablePins:
        """Return the offsets of tables that were stored for a micro-batch; empty without any."""
        with mapped():
            body = self._redis.hget(self._keys.table_pins(stream_id), str(batch))
        return {} if body is None else _decode_pins(body)

    def keep_table_pins(self, stream_id: StreamId, batch: int, pins: TablePins) -> None:
        """Store the offsets of tables that a micro-batch sees, until its commit. `cq.pins` must have them already."""
        with mapped():
            pipeline = self._transaction(stream_id)
            pipeline.hset(self._keys.table_pins(stream_id), str(batch), _encode_pins(pins)).execute()

    def _transaction(self, stream_id: StreamId) -> Any:
        """Return a transaction under the fence of a stream."""
        return transaction(self._redis, None if self._fences is None else self._fences.stream(stream_id))

    def _transaction_of_evaluator(self) -> Any:
        return transaction(self._redis, None if self._fences is None else self._fences.lease)

    def letters_of(self, table_id: str) -> dict[int, int]:
        """Return the offset up to which dead letters of a table's records are written, by partition."""
        with mapped():
            noted = self._redis.hgetall(self._keys.table_letters(table_id))
        return {int(partition): int(offset) for partition, offset in noted.items()}

    def letters_written(self, table_id: str, offsets: Mapping[int, int]) -> None:
        """Write the offsets that `letters_of` returns. They lapse if Redis does not have the table."""
        key = self._keys.table_letters(table_id)
        with mapped():
            live = self._redis.hexists(self._keys.tables, table_id)
            pipeline = self._transaction_of_evaluator()
            pipeline.hset(key, mapping={str(each): at for each, at in offsets.items()})
            if live:
                pipeline.persist(key)
            else:
                pipeline.pexpire(key, _DROPPED_MS)
            pipeline.execute()

    def writes_letters(self, table_id: str, worker: str) -> bool:
        """Tell whether this worker is in charge of a table's dead letters; take charge if no other worker is."""
        key = self._keys.letters_writer(table_id)
        with mapped():
            self._redis.set(key, worker, nx=True, px=_WRITER_MS)
            mine = bool(self._redis.get(key) == worker.encode())
            if mine:
                self._redis.pexpire(key, _WRITER_MS)
        return mine

    def tell_replica(self, source_id: str, worker: str, note: ReplicaNote) -> None:
        """Write a worker's note on its replica of a table, for the gateway."""
        key = self._keys.replicas(source_id)
        with mapped():
            pipeline = self._redis.pipeline(transaction=False)
            pipeline.hset(key, worker, note.pack()).expire(key, _REPLICAS_SECONDS).execute()

    def tell_states(self, stream_id: StreamId, partition: int, states: PartitionStates, sample: bytes | None) -> None:
        """Write a worker's report on the states in a source partition, and a sample of its keys if one is given."""
        with mapped():
            pipeline = self._redis.pipeline(transaction=False)
            pipeline.hset(self._keys.states(stream_id), str(partition), states.pack())
            if sample is not None:
                pipeline.hset(self._keys.key_samples(stream_id), str(partition), sample)
            pipeline.execute()

    def tell_executors(self, note: ExecutorsNote) -> None:
        """Write the note on the evaluator's executors, for the gateway."""
        name = self._fences.holder.name if self._fences else ""
        with mapped():
            self._transaction_of_evaluator().set(self._keys.executors(name), note.pack()).execute()

    def streams(self) -> list[Stream]:
        """Return the live streams.

        Raises:
            StoreUnavailable: Redis may have lost streams. The caller must not take missing streams for dropped.
        """
        with mapped():
            pipeline = self._redis.pipeline(transaction=True)
            bodies, versions = pipeline.hgetall(self._keys.streams).hkeys(self._keys.version).execute()
        if {VERSIONS_MARK, *bodies} != set(versions):
            raise StoreUnavailable("the streams are not complete", detail="Redis has lost some, or their versions.")
        check_primary(self._redis)
        return [msgspec.json.decode(body, type=Stream) for body in bodies.values()]

    def stream(self, stream_id: StreamId) -> Stream | None:
        """Return a live stream; None if the stream was dropped.

        Raises:
            StoreUnavailable: Redis does not answer, or is not the primary any more.
        """
        with mapped():
            body = self._redis.hget(self._keys.streams, stream_id)
        check_primary(self._redis)
        return None if body is None else msgspec.json.decode(body, type=Stream)

    def epoch(self) -> int | None:
        """Return the epoch if it is confirmed for this run of the server, otherwise None."""
        with mapped():
            body, info = self._redis.get(self._keys.epoch), self._redis.info("server")
        note = EpochNote.unpack(body)
        return note.epoch if note.run_id == info["run_id"] else None

    def committed(self, stream_id: StreamId, batch: int, offsets: dict[str, int]) -> None:
        """Note that a micro-batch is committed, and up to which offsets; remove its pin and all older pins."""
        pins = self._keys.pins(stream_id)
        with mapped():
            pinned = self._redis.hgetall(pins)
            done = [field for field in pinned if int(field) <= batch]
            seen = pinned[max(done, key=int)].decode() if done else msgspec.UNSET
            pipeline = self._transaction(stream_id)
            pipeline.set(self._keys.committed(stream_id), CommittedNote(batch, offsets, seen).pack())
            pipeline.set(self._keys.next_batch(stream_id), batch + 1)
            if done:
                pipeline.hdel(pins, *done).hdel(self._keys.table_pins(stream_id), *done)
            pipeline.execute()

    def unpin(self, stream_id: StreamId, under_way: int | None) -> None:
        """Remove the unused pins of a stream, before its query begins.

        Args:
            stream_id: The stream.
            under_way: The batch that will be replayed; None if the numbers of batches begin again at 0.
        """
        pins = self._keys.pins(stream_id)
        with mapped():
            stale = [field for field in self._redis.hkeys(pins) if under_way is None or int(field) != under_way]
            pipeline = self._transaction(stream_id).set(self._keys.next_batch(stream_id), under_way or 0)
            if stale:
                pipeline.hdel(pins, *stale).hdel(self._keys.table_pins(stream_id), *stale)
            pipeline.execute()

    def committed_positions(self, stream_id: StreamId) -> dict[str, int]:
        """Return, by source partition, the position up to which a stream is evaluated; empty without a note."""
        with mapped():
            body = self._redis.get(self._keys.committed(stream_id))
        return CommittedNote.unpack(body).offsets

    def checkpoint(self, stream_id: StreamId) -> str | None:
        """Return the name of the checkpoint with which a stream was evaluated last; None if unknown."""
        with mapped():
            name = self._redis.get(self._keys.checkpoint(stream_id))
        return None if name is None else name.decode()

    def note_checkpoint(self, stream_id: StreamId, name: str) -> None:
        """Note the checkpoint with which a stream is evaluated from now on."""
        with mapped():
            self._transaction(stream_id).set(self._keys.checkpoint(stream_id), name).execute()

    def tell_statistics(self, stream_id: StreamId, partition: int, statistics: PartitionStatistics) -> None:
        """Write the latest statistics of a source partition, for the gateway."""
        with mapped():
            encoded = msgspec.msgpack.encode(statistics)
            self._transaction(stream_id).hset(self._keys.statistics(stream_id), str(partition), encoded).execute()
