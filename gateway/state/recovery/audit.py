"""The audit of Redis: checks that all keys of the gateway are still there, since Redis reports no lost key.

The audit compares the sizes of hashes in Redis with the gateway's memory. If anything is missing, Redis is filled again
from Kafka. The audit does not check segments of constant tables; `TableUpkeep` checks them.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from gateway.model.dependencies import DependencyKind, definition_hash
from gateway.state.working_copy import WorkingCopy
from grouping.model.ids import StreamId
from grouping.store.connection import StoreLost, mapped

__all__ = ["Audit"]

_STREAMS = 20
"""The number of streams that one step examines."""
_SUBSCRIBERS = 100
"""The approximate number of subscribers that one step examines."""


class Audit:
    """Compares the sizes of hashes, for a few streams and subscribers in each step, between units of work."""

    def __init__(self, working: WorkingCopy) -> None:
        """Begin with the first streams and subscribers."""
        self._working = working
        self._connection = working.connection
        self._streams: list[StreamId] = []
        self._cursor = 0

    def step(self) -> None:
        """Check the next streams and subscribers.

        Raises:
            StoreLost: Keys are missing.
        """
        self._streams = self._streams or list(self._working.inventory.streams)
        some, self._streams = self._streams[:_STREAMS], self._streams[_STREAMS:]
        self._check(some)
        self._check_subscribers()

    def whole(self) -> bool:
        """Tell whether Redis has all keys of all streams."""
        try:
            self._check(list(self._working.inventory.streams))
        except StoreLost:
            return False
        return True

    def _check(self, stream_ids: list[StreamId]) -> None:
        working, keys = self._working, self._connection.keys
        numbered = sum(working.inventory.next_numbers.values()) - sum(map(len, working.inventory.free_numbers.values()))
        numbered -= sum(working.inventory.vacant.values())
        wanted: Counter[str] = Counter()
        wanted[keys.streams] = len(working.inventory.streams)
        wanted[keys.quotas] = len(working.inventory.quotas)
        wanted[keys.pauses] = sum(map(len, working.inventory.pauses.values()))
        wanted[keys.version] = len(working.inventory.streams) + 1  # the count includes the mark of the hash
        wanted[keys.destinations] = numbered
        definition_hashes: set[str] = set()
        for stream_id in stream_ids:
            counts = {kind: len(working.inventory.users(stream_id, kind)) for kind in DependencyKind}
            wanted[keys.dependencies(stream_id)] = sum(counts.values())
            for kind, count in counts.items():
                if count and (definitions := definition_hash(keys, stream_id, kind)) is not None:
                    wanted[definitions] = count
            definition_hashes.update(keys.definition_hashes(stream_id))
        with mapped():
            pipeline = self._connection.redis.pipeline(transaction=False)
            for name in wanted:
                pipeline.hlen(name)
            sizes = pipeline.execute()
        for (name, count), size in zip(wanted.items(), sizes, strict=True):
            # A plan, a SELECT list or a template stays in Redis for a while after its last CQ.
            if size < count or (size > count and name not in definition_hashes):
                _refuse(name, size, count)

    def _check_subscribers(self) -> None:
        """Check, for the next subscribers, that Redis has as many CQs as units of work have counted in Redis."""
        redis, keys = self._connection.redis, self._connection.keys
        with mapped():
            self._cursor, found = redis.hscan(keys.subscribers, self._cursor, count=_SUBSCRIBERS)
            pipeline = redis.pipeline(transaction=False)
            names = [name.decode("utf-8", "surrogatepass") for name in found]
            for name in names:
                pipeline.hlen(keys.cqs(name))
            sizes: list[Any] = pipeline.execute() if names else []
            for name, wanted, size in zip(names, map(int, found.values()), sizes, strict=True):
                if size != wanted:
                    _refuse(keys.cqs(name), size, wanted)
        if gone := [name for name, size in zip(names, sizes, strict=True) if not size]:
            with self._connection.writing() as pipeline:
                pipeline.hdel(keys.subscribers, *gone)


def _refuse(name: str, size: int, wanted: int) -> None:
    raise StoreLost(
        "redis has lost a part of the working copy",
        detail=f'"{name}" has {size:,} entries where there must be {wanted:,}.',
        hint="Redis must not evict keys: set maxmemory-policy to noeviction.",
    )
