"""The counts of matches and of output that tasks write to Redis for the gateway."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from grouping.model.ids import StreamId
from grouping.store.connection import mapped
from grouping.store.evaluator_scripts import COUNT
from grouping.store.fence import LeaseLost
from grouping.store.keys import RedisKeys
from grouping.store.match_tally import MatchTally
from grouping.store.notes import Output, PartitionWatermark
from grouping.store.ownership import EvaluatorFences

__all__ = ["CountWriter", "TaskCount"]

_FEW_WAITING = 64
"""If at most this number of values of a stream wait for the gateway, they are not replaced by their sum."""
_LOST = -1
"""The answer of the script `COUNT` if another evaluator has the fence."""


class TaskCount(NamedTuple):
    """The matches and the output of a task in one source partition."""

    stream_id: StreamId
    tally: MatchTally | None
    """The number of matches by destination; None if no destination has matches."""
    partition: int
    batch: str
    """A unique name of the micro-batch, by which a replay is recognised and not counted again."""
    output: Output = Output()
    watermark: PartitionWatermark | None = None
    """The watermark after the task; None for a stream without event-time queries."""


class CountWriter:
    """Writes the counts of tasks. For one thread."""

    def __init__(self, redis: Any, keys: RedisKeys, fences: EvaluatorFences | None) -> None:
        """Take the connection of a store.

        Args:
            redis: The client.
            keys: The names of the keys.
            fences: The evaluator's fences; None for a store that never counts.
        """
        self._redis = redis
        self._keys = keys
        self._fences = fences
        self._count = redis.register_script(COUNT)
        self._most_waiting: dict[str, int] = {}
        """Stream → the number of waiting values above which the values are replaced by their sum."""

    def add(self, counts: Sequence[TaskCount]) -> None:
        """Add the matches and the output of tasks, with one request to Redis.

        While no gateway takes the counts, the waiting values are replaced by their sum from time to time.

        Raises:
            StoreUnavailable: Redis does not answer.
            LeaseLost: Another evaluator has taken a stream. Only the counts of this stream are left out.
        """
        if not counts:
            return
        with mapped():
            pipeline = self._redis.pipeline(transaction=False)
            for each in counts:
                keys, token = self._places(each.stream_id)
                values = () if each.tally is None else each.tally.encode()
                watermark = "" if each.watermark is None else each.watermark.pack()
                arguments = [each.partition, each.batch, *each.output, watermark, token, *values]
                self._count(keys, arguments, client=pipeline)
            found = list(map(int, pipeline.execute()))
            for each, waiting in zip(counts, found, strict=True):
                self._sum_up(each.stream_id, waiting)
        if _LOST in found:
            raise LeaseLost("another evaluator has taken over", detail="The counts of its streams are left out.")

    def _places(self, stream_id: StreamId) -> tuple[list[str], str]:
        """Return the keys of a stream for the script `COUNT`, and the holder that the stream's fence must have."""
        keys = [self._keys.matches(stream_id), self._keys.counted(stream_id), self._keys.output(stream_id)]
        keys.append(self._keys.next_batch(stream_id))
        if self._fences is None:
            return keys, ""
        fence = self._fences.stream(stream_id)
        return [*keys, fence.key], fence.token

    def _sum_up(self, stream_id: StreamId, waiting: int) -> None:
        """Replace many waiting values by their sum. If the process dies in between, these counts are lost."""
        if waiting > self._most_waiting.get(stream_id, _FEW_WAITING):
            key = self._keys.matches(stream_id)
            taken = self._redis.lpop(key, waiting)
            if not taken:  # another task, or the gateway, has taken the values meanwhile
                return
            total = list(MatchTally.total(map(MatchTally.decode, taken)).encode())
            self._redis.rpush(key, *total)
            self._most_waiting[stream_id] = max(_FEW_WAITING, 2 * len(total))
