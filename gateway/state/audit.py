"""Whether Redis still has what the gateway wrote: of a key that is evicted or deleted nobody else tells.

What the gateway has in memory says how much there must be. All is filled anew from Kafka when something is missing;
of segments `TableUpkeep` finds that out.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from gateway.state.unit_writing import SHELVES, hash_of
from gateway.state.working_copy import WorkingCopy
from grouping.store.redis_store import StoreLost, mapped

__all__ = ["Audit"]

_STREAMS = 20
"""So many streams are looked at in one step."""
_SUBSCRIBERS = 100
"""So many subscribers, about."""


class Audit:
    """Compares sizes, of some streams and subscribers at a time; between units of work."""

    def __init__(self, working: WorkingCopy) -> None:
        """Begin with the first ones."""
        self._working = working
        self._streams: list[str] = []
        self._cursor = 0

    def step(self) -> None:
        """Look at the next ones.

        Raises:
            StoreLost: Something is missing.
        """
        self._streams = self._streams or list(self._working.streams)
        some, self._streams = self._streams[:_STREAMS], self._streams[_STREAMS:]
        self._check(some)
        self._check_subscribers()

    def whole(self) -> bool:
        """Tell whether all streams have what belongs to them."""
        try:
            self._check(list(self._working.streams))
        except StoreLost:
            return False
        return True

    def _check(self, stream_ids: list[str]) -> None:
        working = self._working
        numbered = sum(working.next_numbers.values()) - sum(map(len, working.free_numbers.values()))
        numbered -= sum(working.vacant.values())
        wanted: dict[tuple[str, ...], int] = {}
        wanted["streams",] = len(working.streams)
        wanted["version",] = len(working.streams) + 1  # with their mark
        wanted["destinations",] = numbered
        for stream_id in stream_ids:
            parts = working.parts.get(stream_id, {})
            wanted["parts", stream_id] = len(parts)
            wanted |= {(name, stream_id): count for name, count in Counter(map(hash_of, parts)).items() if name}
        with mapped():
            pipeline = working.redis.pipeline(transaction=False)
            for name in wanted:
                pipeline.hlen(working.key(*name))
            sizes = pipeline.execute()
        for (name, count), size in zip(wanted.items(), sizes, strict=True):
            # A plan, a SELECT list or a template outlives its last CQ for a while.
            if size < count or (size > count and name[0] not in SHELVES):
                self._refuse(name, size, count)

    def _check_subscribers(self) -> None:
        """Compare how many CQs some subscribers have with how many were counted as they came and went."""
        redis, key = self._working.redis, self._working.key
        with mapped():
            self._cursor, found = redis.hscan(key("subscribers"), self._cursor, count=_SUBSCRIBERS)
            pipeline = redis.pipeline(transaction=False)
            names = [name.decode("utf-8", "surrogatepass") for name in found]
            for name in names:
                pipeline.hlen(key("cqs", name))
            sizes: list[Any] = pipeline.execute() if names else []
            for name, wanted, size in zip(names, map(int, found.values()), sizes, strict=True):
                if size != wanted:
                    self._refuse(("cqs", name), size, wanted)
        if gone := [name for name, size in zip(names, sizes, strict=True) if not size]:
            with self._working.writing() as pipeline:
                pipeline.hdel(key("subscribers"), *gone)

    def _refuse(self, name: tuple[str, ...], size: int, wanted: int) -> None:
        raise StoreLost(
            "redis has lost a part of the working copy",
            detail=f'"{self._working.key(*name)}" has {size:,} entries where there must be {wanted:,}.',
            hint="It must not evict keys: maxmemory-policy noeviction.",
        )
