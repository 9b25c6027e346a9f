"""Notes that tasks leave in Redis for the driver: the stream in hand of a lane, its cost, and who reads headers."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from grouping.model.ids import StreamId
from grouping.settings.settings import Settings
from grouping.store.connection import connect, mapped
from grouping.store.fence import Fence, transaction
from grouping.store.keys import RedisKeys
from grouping.store.ownership import EvaluatorFences

__all__ = ["LANE", "HeaderNotes", "LaneHand"]

LANE = "lane"
"""How the names of the lanes' checkpoints begin; ids of streams begin otherwise."""


class LaneHand:
    """The notes of one evaluator's lane. For one thread."""

    def __init__(self, settings: Settings) -> None:
        """Connect when first used."""
        self._redis = connect(settings)
        keys = RedisKeys.of(settings)
        self._hand = keys.lane_hand(settings.evaluator.name)
        self._seconds = keys.lane_seconds(settings.evaluator.name)

    def take(self, task: int, batch: int, source_id: str, fence: Fence) -> str | None:
        """Note that a task of a micro-batch begins to evaluate a stream, and return who holds the stream's fence.

        Raises:
            StoreUnavailable: Redis does not answer.
        """
        with mapped():
            pipeline = self._redis.pipeline(transaction=False).hset(self._hand, str(task), f"{batch} {source_id}")
            _, holder = pipeline.get(fence.key).execute()
        return holder.decode() if holder else None

    def done(self, task: int, seconds: Mapping[str, float]) -> None:
        """Note that a task has ended, and how long it took for each stream.

        Raises:
            StoreUnavailable: Redis does not answer.
        """
        with mapped():
            pipeline = self._redis.pipeline(transaction=False).hdel(self._hand, str(task))
            for source_id, spent in seconds.items():
                pipeline.hincrbyfloat(self._seconds, source_id, spent)
            pipeline.execute()

    def in_hand(self) -> dict[int, tuple[int, str]]:
        """Return by task the micro-batch and the stream that it evaluates, or evaluated when its worker died.

        Raises:
            StoreUnavailable: Redis does not answer.
        """
        with mapped():
            told = {int(task): body.decode().partition(" ") for task, body in self._redis.hgetall(self._hand).items()}
        return {task: (int(batch), source_id) for task, (batch, _, source_id) in told.items()}

    def forget(self) -> None:
        """Forget the streams in hand: their tasks have ended.

        Raises:
            StoreUnavailable: Redis does not answer.
        """
        with mapped():
            self._redis.delete(self._hand)

    def take_seconds(self) -> dict[str, float]:
        """Return how long each stream has taken since the last call.

        Raises:
            StoreUnavailable: Redis does not answer.
        """
        with mapped():
            found, _ = self._redis.pipeline(transaction=True).hgetall(self._seconds).delete(self._seconds).execute()
        return {source_id.decode(): float(spent) for source_id, spent in found.items()}


class HeaderNotes:
    """Notes on streams with queries that read `_headers`. For one thread.

    A query of Spark asks Kafka for headers, or does not, from its start to its end.
    """

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
        """Note that a query of a stream reads headers.

        Raises:
            StoreUnavailable: Redis does not answer.
            LeaseLost: Another evaluator has taken the stream.
        """
        fence = None if self._fences is None else self._fences.stream(stream_id)
        with mapped():
            transaction(self._redis, fence).set(self._keys.headers_read(stream_id), "1").execute()

    def told(self, stream_ids: Collection[StreamId]) -> frozenset[StreamId]:
        """Return the streams among the given ones with a note.

        Raises:
            StoreUnavailable: Redis does not answer.
        """
        if not stream_ids:
            return frozenset()
        with mapped():
            notes = self._redis.mget([self._keys.headers_read(each) for each in stream_ids])
        return frozenset(each for each, note in zip(stream_ids, notes, strict=True) if note is not None)
