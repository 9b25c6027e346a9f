"""The state of timers in Redis: the event list, the readers of each store of matches, the cursors of destinations.

The event list has the armed destinations of each stream, ordered by their ticks. When Redis is lost, the state is
restored from Kafka: cursors and open cuts from `cq.ticks`, the rest from `cq.catalog` and `cq.pending`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec

from gateway.model.membership import Membership
from gateway.model.records import incarnation_of
from gateway.model.stored_form import raw_id, unpack_membership
from gateway.state.working_copy import WorkingCopy
from grouping.digests.cursor import Cursor, cursor_encoder
from grouping.model.ids import DestinationId, StreamId
from grouping.store.connection import mapped

__all__ = ["ProgressNote", "TimerState"]

_encode = msgspec.msgpack.encode
_decode_cursor = msgspec.msgpack.Decoder(Cursor).decode


class ProgressNote(msgspec.Struct, array_like=True, frozen=True):
    """The progress of a stream's ticks, on `cq.ticks` under `settled/<stream>`."""

    at_ms: int
    """The instant up to which all ticks have fired, epoch milliseconds."""
    covered: dict[str, int]
    """Source partition → offset up to which events are committed and their matches taken in."""
    run_ms: int | None = None
    """The instant since which ticks have fired without a gap; None in a note of an earlier version of the gateway."""
    runs: tuple[tuple[int, int], ...] = ()
    """The earlier runs, each with its first and last instant (`StreamProgress.past`)."""


class TimerState:
    """The timers' keys of the working copy; for use by the gateway's main thread only."""

    def __init__(self, working: WorkingCopy) -> None:
        self._connection = working.connection
        self._redis = self._connection.redis

    def memberships(self, names: Sequence[DestinationId]) -> list[Membership | None]:
        """Return destinations with their members; None for destinations that are gone."""
        if not names:
            return []
        with mapped():
            bodies = self._redis.hmget(self._connection.keys.destinations, [raw_id(name) for name in names])
        return [
            None if body is None else unpack_membership(name, body) for name, body in zip(names, bodies, strict=True)
        ]

    def cursors(self, incarnations: Sequence[str]) -> list[Cursor]:
        """Return the cursors of incarnations of destinations; an empty cursor for an incarnation that was never served.

        Equal cursors are one object, since destinations that were served together have equal cursors.
        """
        if not incarnations:
            return []
        with mapped():
            bodies = self._redis.hmget(self._connection.keys.cursors, incarnations)
        known = {body: _NEW if body is None else _decode_cursor(body) for body in set(bodies)}
        return [known[body] for body in bodies]

    def cursors_of(self, stores: Sequence[bytes]) -> list[list[Cursor]]:
        """Return the cursors of the readers of each store."""
        readers = self.readers(stores)
        cursors = self.readers_cursors([name for some in readers for name in some])
        return [[cursors[name] for name in some if name in cursors] for some in readers]

    def readers_cursors(self, names: Sequence[DestinationId]) -> dict[DestinationId, Cursor]:
        """Return the cursors of those readers that still exist."""
        memberships = zip(names, self.memberships(names), strict=True)
        incarnations = {
            name: incarnation_of(name, membership.timed) for name, membership in memberships if membership is not None
        }
        return dict(zip(incarnations, self.cursors(list(incarnations.values())), strict=True))

    def begin_cursors(self, cursors: Mapping[str, Cursor]) -> None:
        """Store cursors for incarnations of destinations; an incarnation that has a cursor keeps it."""
        with self._connection.writing() as pipeline:
            for incarnation, cursor in cursors.items():
                pipeline.hsetnx(self._connection.keys.cursors, incarnation, _encode(cursor))

    def readers(self, stores: Sequence[bytes]) -> list[list[DestinationId]]:
        """Return the destinations that read each store."""
        with mapped():
            pipeline = self._redis.pipeline(transaction=False)
            for store in stores:
                pipeline.smembers(self._connection.keys.readers(_store_id(store)))
            answers = pipeline.execute() if stores else []
        return [[name.decode() for name in names] for names in answers]

    def reader_counts(self, stores: Sequence[bytes]) -> list[int]:
        """Return the number of destinations that read each store."""
        with mapped():
            pipeline = self._redis.pipeline(transaction=False)
            for store in stores:
                pipeline.scard(self._connection.keys.readers(_store_id(store)))
            return list(pipeline.execute()) if stores else []

    # -- the event list ------------------------------------------------------------------------------------------------

    def due(self, stream_id: StreamId, until_ms: int, most: int, start: int = 0) -> list[tuple[DestinationId, int]]:
        """Return destinations that are due up to an instant, the earliest first, each with its tick (0 for a look)."""
        with mapped():
            found = self._redis.zrangebyscore(
                self._connection.keys.timers(stream_id), "-inf", until_ms, start=start, num=most, withscores=True
            )
        return [(name.decode(), int(score)) for name, score in found]

    def with_ticks(self, until_ms: Mapping[StreamId, int]) -> set[StreamId]:
        """Return the streams with a destination that is due up to the stream's instant; Redis is asked once."""
        if not until_ms:
            return set()
        with mapped():
            pipeline = self._redis.pipeline(transaction=False)
            for stream_id, at_ms in until_ms.items():
                pipeline.zrangebyscore(self._connection.keys.timers(stream_id), "-inf", at_ms, start=0, num=1)
            return {stream_id for stream_id, found in zip(until_ms, pipeline.execute(), strict=True) if found}

    def due_count(self, stream_id: StreamId, until_ms: int) -> int:
        """Return the number of destinations with a tick up to an instant; destinations due for a look do not count."""
        with mapped():
            return int(self._redis.zcount(self._connection.keys.timers(stream_id), 1, until_ms))

    def armed(self, stream_id: StreamId, name: DestinationId) -> int | None:
        """Return the armed tick of a destination (0 for a look); None if no tick is armed."""
        with mapped():
            score = self._redis.zscore(self._connection.keys.timers(stream_id), name)
        return None if score is None else int(score)

    def arm(self, stream_id: StreamId, ticks: Mapping[DestinationId, int]) -> None:
        """Arm destinations for ticks, unless they are armed for earlier ticks."""
        for chunk in _chunks(ticks):
            with self._connection.writing() as pipeline:
                pipeline.zadd(self._connection.keys.timers(stream_id), chunk, lt=True)

    def look_after(self, stream_id: StreamId, at_ms: int) -> None:
        """Arm destinations for a look, if they are armed for ticks later than an instant."""
        key = self._connection.keys.timers(stream_id)
        while names := self._armed_later(key, at_ms):
            with self._connection.writing() as pipeline:
                pipeline.zadd(key, dict.fromkeys(names, 0))

    def _armed_later(self, key: str, at_ms: int) -> list[bytes]:
        with mapped():
            return list(self._redis.zrangebyscore(key, f"({at_ms}", "+inf", start=0, num=_CHUNK))

    def settle(
        self,
        stream_id: StreamId,
        ticks: Mapping[DestinationId, int],
        idle: Iterable[DestinationId],
        cursors: Mapping[str, Cursor],
    ) -> None:
        """Store the outcome of served destinations: next ticks, destinations to disarm (`idle`), and new cursors."""
        key, gone = self._connection.keys.timers(stream_id), list(idle)
        with self._connection.writing() as pipeline:
            if cursors:
                encode = cursor_encoder()
                packed = {name: encode(cursor) for name, cursor in cursors.items()}
                pipeline.hset(self._connection.keys.cursors, mapping=packed)
            if ticks:
                pipeline.zadd(key, dict(ticks))
            if gone:
                pipeline.zrem(key, *gone)

    # -- recovery from Kafka -------------------------------------------------------------------------------------------

    def read_position(self) -> int:
        """Return the offset up to which `cq.ticks` was read into Redis."""
        with mapped():
            return int(self._redis.get(self._connection.keys.ticks_read) or 0)

    def restore(
        self, cursors: Mapping[str, Cursor | None], progress: Mapping[StreamId, ProgressNote | None], read: int
    ) -> None:
        """Restore the cursors and progress that `cq.ticks` has up to the offset `read`; None removes a cursor."""
        for chunk in _chunks(cursors):
            kept = {name: _encode(cursor) for name, cursor in chunk.items() if cursor is not None}
            gone = [name for name, cursor in chunk.items() if cursor is None]
            with self._connection.writing() as pipeline:
                if kept:
                    pipeline.hset(self._connection.keys.cursors, mapping=kept)
                if gone:
                    pipeline.hdel(self._connection.keys.cursors, *gone)
        self.note_progress({stream_id: note for stream_id, note in progress.items() if note is not None})
        self.note_position(read)

    def note_position(self, read: int) -> None:
        """Note the offset up to which `cq.ticks` was read into Redis."""
        with self._connection.writing() as pipeline:
            pipeline.set(self._connection.keys.ticks_read, read)

    def progress(self, stream_id: StreamId) -> ProgressNote | None:
        """Return the progress of a stream's ticks; None without a note."""
        with mapped():
            body = self._redis.hget(self._connection.keys.progress, stream_id)
        return None if body is None else msgspec.msgpack.decode(body, type=ProgressNote)

    def note_progress(self, notes: Mapping[StreamId, ProgressNote]) -> None:
        """Note the progress of streams' ticks."""
        if notes:
            with self._connection.writing() as pipeline:
                packed = {stream_id: _encode(note) for stream_id, note in notes.items()}
                pipeline.hset(self._connection.keys.progress, mapping=packed)


_NEW = Cursor()
_CHUNK = 5000
_Any = TypeVar("_Any")
_Name = TypeVar("_Name", bound=str)


def _store_id(raw: bytes) -> DestinationId:
    return DestinationId(f"p_{raw.hex()}")


def _chunks(mapping: Mapping[_Name, _Any]) -> Iterable[dict[_Name, _Any]]:
    items = list(mapping.items())
    return (dict(items[first : first + _CHUNK]) for first in range(0, len(items), _CHUNK))
