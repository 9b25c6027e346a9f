"""Notes in Redis that tasks write for the driver and for each other.

`LaneHand` notes the stream that each task of a lane evaluates, and the time it takes. `HeaderNotes` and `ClockNotes`
note the streams whose queries read headers or depend on the clock. `SchemaNotes` has the schemas that records name.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from grouping.model.catalog import Stream
from grouping.model.ids import StreamId
from grouping.settings.settings import Settings
from grouping.store.connection import connect, mapped
from grouping.store.fence import Fence, transaction
from grouping.store.keys import RedisKeys
from grouping.store.ownership import EvaluatorFences

__all__ = ["LANE", "ClockNotes", "HeaderNotes", "LaneHand", "SchemaNotes", "UnknownIds"]

LANE = "lane"
"""The beginning of the name of a lane's checkpoint. No id of a stream begins with this word."""


class LaneHand:
    """Notes on the stream that each task of an evaluator's lane evaluates. For one thread."""

    def __init__(self, settings: Settings) -> None:
        """Connect when first used."""
        self._redis = connect(settings)
        keys = RedisKeys.of(settings)
        self._hand = keys.lane_hand(settings.evaluator.name)
        self._seconds = keys.lane_seconds(settings.evaluator.name)

    def take(self, task: int, batch: int, source_id: str, fence: Fence) -> str | None:
        """Note that a task of a micro-batch begins to evaluate a stream; return the holder of the stream's fence.

        Raises:
            StoreUnavailable: Redis does not answer.
        """
        with mapped():
            pipeline = self._redis.pipeline(transaction=False).hset(self._hand, str(task), f"{batch} {source_id}")
            _, holder = pipeline.get(fence.key).execute()
        return holder.decode() if holder else None

    def done(self, task: int, seconds: Mapping[str, float]) -> None:
        """Note that a task has ended, and add the seconds that the task took for each stream.

        Raises:
            StoreUnavailable: Redis does not answer.
        """
        with mapped():
            pipeline = self._redis.pipeline(transaction=False).hdel(self._hand, str(task))
            for source_id, spent in seconds.items():
                pipeline.hincrbyfloat(self._seconds, source_id, spent)
            pipeline.execute()

    def in_hand(self) -> dict[int, tuple[int, str]]:
        """Return the micro-batch and the stream that each task evaluates, or evaluated when its worker died, by task.

        Raises:
            StoreUnavailable: Redis does not answer.
        """
        with mapped():
            noted = {int(task): body.decode().partition(" ") for task, body in self._redis.hgetall(self._hand).items()}
        return {task: (int(batch), source_id) for task, (batch, _, source_id) in noted.items()}

    def forget(self) -> None:
        """Remove the notes of tasks on their streams, once all tasks have ended.

        Raises:
            StoreUnavailable: Redis does not answer.
        """
        with mapped():
            self._redis.delete(self._hand)

    def take_seconds(self) -> dict[str, float]:
        """Return the seconds that each stream has taken since the last call.

        Raises:
            StoreUnavailable: Redis does not answer.
        """
        with mapped():
            found, _ = self._redis.pipeline(transaction=True).hgetall(self._seconds).delete(self._seconds).execute()
        return {source_id.decode(): float(spent) for source_id, spent in found.items()}


class _QueryNotes:
    """Notes on streams that have queries of a certain kind. For one thread."""

    def __init__(self, settings: Settings, fences: EvaluatorFences | None = None) -> None:
        """Connect when first used.

        Args:
            settings: Where Redis is.
            fences: The evaluator's fences; None for a process that only reads.
        """
        self._redis = connect(settings)
        self._keys = RedisKeys.of(settings)
        self._fences = fences

    def tell(self, stream_id: StreamId) -> None:
        """Note that a stream has a query of this kind.

        Raises:
            StoreUnavailable: Redis does not answer.
            LeaseLost: Another evaluator has taken the stream.
        """
        fence = None if self._fences is None else self._fences.stream(stream_id)
        with mapped():
            transaction(self._redis, fence).set(self._key(stream_id), "1").execute()

    def noted(self, stream_ids: Collection[StreamId]) -> frozenset[StreamId]:
        """Return which of the given streams have a note.

        Raises:
            StoreUnavailable: Redis does not answer.
        """
        if not stream_ids:
            return frozenset()
        with mapped():
            notes = self._redis.mget([self._key(each) for each in stream_ids])
        return frozenset(each for each, note in zip(stream_ids, notes, strict=True) if note is not None)

    def _key(self, stream_id: StreamId) -> str:
        raise NotImplementedError


class HeaderNotes(_QueryNotes):
    """Notes on streams with queries that read `_headers`.

    The notes are needed because a Spark query decides at its start whether it reads headers from Kafka.
    """

    def _key(self, stream_id: StreamId) -> str:
        return self._keys.headers_read(stream_id)


class ClockNotes(_QueryNotes):
    """Notes on streams whose queries depend on the clock. A lane advances the watermarks of their idle partitions."""

    def _key(self, stream_id: StreamId) -> str:
        return self._keys.clocked(stream_id)


class UnknownIds(msgspec.Struct, frozen=True):
    """Ids that a registry did not know when records of a source partition were decoded."""

    until: int = -1
    """The offset of the last record with one of these ids. In a replay up to this offset the ids stay unknown."""
    ids: frozenset[int] = frozenset()


class SchemaNotes:
    """Notes on the schemas that a stream's records name by ids, so that all tasks and replays use the same schemas."""

    def __init__(self, settings: Settings, fences: EvaluatorFences | None = None) -> None:
        """Connect when first used.

        Args:
            settings: Where Redis is.
            fences: The evaluator's fences, with which writes may raise `LeaseLost`; None for a process that only reads.
        """
        self._redis = connect(settings)
        self._keys = RedisKeys.of(settings)
        self._fences = fences

    def _write(self, stream_id: StreamId) -> Any:
        return transaction(self._redis, None if self._fences is None else self._fences.stream(stream_id))

    def first_id(self, stream_id: StreamId, found: int) -> int:
        """Return the id of the schema that the first record of a stream named.

        Args:
            stream_id: The stream.
            found: The first id among the caller's records, which becomes the result if no task has noted an id before.

        Raises:
            StoreUnavailable: Redis does not answer.
        """
        key = self._keys.schema_id(stream_id)
        with mapped():
            # After Redis was filled again, only the definition of the stream, from the catalog, has the id.
            body = self._redis.hget(self._keys.streams, stream_id)
            kept = msgspec.UNSET if body is None else msgspec.json.decode(body, type=Stream).schema_id
            if kept is not msgspec.UNSET:
                return kept
            return int(self._write(stream_id).set(key, found, nx=True).get(key).execute()[-1])

    def schemas(self, stream_id: StreamId, ids: Sequence[int], partition: int) -> tuple[dict[int, str], UnknownIds]:
        """Return schemas that a registry gave.

        Args:
            stream_id: The stream.
            ids: The ids of the schemas.
            partition: A source partition.

        Returns:
            The known schemas, and the ids in the partition that the registry did not know.

        Raises:
            StoreUnavailable: Redis does not answer.
        """
        with mapped():
            unknown, *found = self._redis.hmget(self._keys.schemas(stream_id), f"unknown/{partition}", *map(str, ids))
        there = {each: body.decode() for each, body in zip(ids, found, strict=True) if body is not None}
        return there, UnknownIds() if unknown is None else msgspec.json.decode(unknown, type=UnknownIds)

    def keep_schemas(self, stream_id: StreamId, schemas: Mapping[int, str]) -> None:
        """Store schemas that a registry gave. A schema that is stored already is not replaced.

        Raises:
            StoreUnavailable: Redis does not answer.
        """
        with mapped():
            pipeline = self._write(stream_id)
            for each, schema in schemas.items():
                pipeline.hsetnx(self._keys.schemas(stream_id), str(each), schema)
            pipeline.execute()

    def keep_unknown(self, stream_id: StreamId, partition: int, unknown: UnknownIds) -> None:
        """Store the ids in a partition that a registry did not know. Call this before writing the dead letters.

        Raises:
            StoreUnavailable: Redis does not answer.
        """
        body = msgspec.json.encode(unknown)
        with mapped():
            self._write(stream_id).hset(self._keys.schemas(stream_id), f"unknown/{partition}", body).execute()
