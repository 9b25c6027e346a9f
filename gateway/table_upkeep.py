"""Upkeep of the constant tables: neighbouring segments are merged, unused parts go.

Segments form a log-structured merge: each commit adds a small one, and a segment is merged with all newer ones once
those are together half its size, so that an entry is rewritten O(log n) times, and O(log n) segments are left. Nothing
above the oldest pinned version is merged, since a batch that is under way, or replayed, still loads up to exactly
there. A merge of a million rows takes a second: it is made in a thread, while commands are carried out, and written by
the gateway's own.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from gateway.unit_writing import SHELVES
from gateway.working_copy import WorkingCopy
from grouping.constant_table import Segment
from grouping.redis_store import connect, mapped
from grouping.settings import Settings

__all__ = ["TableUpkeep", "oldest_pin", "oldest_to_merge"]

_FEW = 8
"""So many segments may stand in a stream's log as they came."""

_MANY = 256
"""So many versions may lie between what workers have loaded and the newest, before these are merged as well."""

Span = tuple[int, int]


class _Merge(NamedTuple):
    """Neighbouring segments of a stream that are being merged."""

    stream_id: str
    spans: list[Span]
    body: Future[bytes]


class TableUpkeep:
    """Looks after the constant tables of all streams, on connections of its own."""

    def __init__(self, settings: Settings, working: WorkingCopy) -> None:
        self._redis = connect(settings)
        self._thread_redis = connect(settings)
        self._working = working
        self._distinct: dict[str, tuple[int, dict[str, int]]] = {}
        self._thread = ThreadPoolExecutor(1, "merge")
        self._merge: _Merge | None = None

    def forget(self) -> None:
        """Let go of a merge under way: the tables are not those that it began with."""
        self._merge = None

    def step(self) -> None:
        """Merge what is worth merging, one thing at a time, and remove parts that no batch can ask for any more."""
        if self._merge is not None and self._merge.body.done():
            self._replace(self._merge)
            self._merge = None
        for stream_id in list(self._working.streams):
            version = self._working.versions[stream_id]
            pinned = oldest_pin(self._working, stream_id)
            loaded = self._loaded(stream_id) if pinned is None else min(version, pinned[1])
            if self._merge is None:
                self._merge = self._begin(stream_id, 0, loaded)
            floor = loaded
            if pinned is None and version - loaded >= _MANY:
                # Nothing flows but commands. What workers have ends where a segment does, so that none loads all anew.
                floor = version
                if self._merge is None:
                    self._merge = self._begin(stream_id, loaded, version)
            self._remove_unused(stream_id, floor)

    def _loaded(self, stream_id: str) -> int:
        """Return the version that workers have, while no batch is under way."""
        version = self._working.versions[stream_id]
        with mapped():
            body = self._redis.get(self._working.key("committed", stream_id))
        last = json.loads(body).get("pinned") if body else None
        return min(version, int(last.split(":")[1])) if last else version

    def _spans(self, stream_id: str) -> list[Span]:
        with mapped():
            fields = self._redis.hkeys(self._working.key("segments", stream_id))
        spans = (field.decode().split("-") for field in fields)
        return sorted((int(since), int(until)) for since, until in spans)

    def _begin(self, stream_id: str, since: int, until: int) -> _Merge | None:
        """Begin to merge a stream's segments between two versions, where there is anything to merge."""
        spans = [span for span in self._spans(stream_id) if since <= span[0] and span[1] <= until]
        if len(spans) < _FEW:
            return None
        key = self._working.key("segments", stream_id)
        with mapped():
            pipeline = self._redis.pipeline(transaction=False)
            for span in spans:
                pipeline.hstrlen(key, _field(span))
            sizes = pipeline.execute()
        first = oldest_to_merge(sizes)
        if first is None:
            return None
        chosen = spans[first:]
        return _Merge(stream_id, chosen, self._thread.submit(self._merged, key, chosen))

    def _merged(self, key: str, spans: list[Span]) -> bytes:
        """Return some segments as one; in the thread."""
        with mapped():
            bodies = self._thread_redis.hmget(key, [_field(span) for span in spans])
        return Segment.merge([Segment.decode(body) for body in bodies], oldest=spans[0][0] == 0).encode()

    def _replace(self, merge: _Merge) -> None:
        """Put the merged segment in the place of those that it was made of."""
        if merge.stream_id not in self._working.streams:
            return
        body, spans = merge.body.result(), merge.spans
        key = self._working.key("segments", merge.stream_id)
        with mapped():
            pipeline = self._redis.pipeline(transaction=True)
            pipeline.hdel(key, *map(_field, spans))
            pipeline.hset(key, _field((spans[0][0], spans[-1][1])), body)
            pipeline.execute()

    def _remove_unused(self, stream_id: str, floor: int) -> None:
        key = self._working.key("unused", stream_id)
        with mapped():
            doomed = [name.decode() for name in self._redis.zrangebyscore(key, 0, floor)]
            leaving = self._working.leaving.values()
            needed = {name for each in leaving for name in (each.group_id, each.select_id)}
            gone = [name for name in doomed if name not in self._working.parts[stream_id] and name not in needed]
            if gone:
                pipeline = self._redis.pipeline(transaction=True)
                for name in SHELVES:
                    pipeline.hdel(self._working.key(name, stream_id), *gone)
                pipeline.zrem(key, *gone)
                pipeline.execute()

    def distinct_rows(self, stream_id: str) -> dict[str, int]:
        """Return how many distinct rows of constants each group of a stream has."""
        version = self._working.versions[stream_id]
        known = self._distinct.get(stream_id)
        if known is None or known[0] != version:
            known = self._distinct[stream_id] = (version, self._count_rows(stream_id))
        return known[1]

    def _count_rows(self, stream_id: str) -> dict[str, int]:
        key = self._working.key("segments", stream_id)
        with mapped():
            bodies = self._redis.hmget(key, [_field(span) for span in self._spans(stream_id)] or ["-"])
        segments = [Segment.decode(body) for body in bodies if body is not None]
        alike: dict[tuple[str, tuple[str, ...]], list[pa.Table]] = {}
        for block, table in Segment.merge(segments, oldest=True).added.items():
            if not block.until:  # else its last member has left
                alike.setdefault((block.group_id, block.types), []).append(_constants(table))
        found: dict[str, int] = {}
        for (group_id, _), tables in alike.items():
            rows = pa.concat_tables(tables)
            distinct = rows.group_by(rows.column_names).aggregate([]).num_rows if rows.column_names else 1
            found[group_id] = found.get(group_id, 0) + distinct
        return found


def oldest_to_merge(sizes: Sequence[int]) -> int | None:
    """Return the place of the first segment that all newer ones are together half of, None where there is none.

    Args:
        sizes: Of the segments, from the oldest to the newest.

    Example:
        >>> oldest_to_merge([54_000, 300, 300, 10]), oldest_to_merge([54_000, 300, 10])
        (1, None)
    """
    found, newer = None, 0
    for place in reversed(range(len(sizes))):
        if sizes[place] <= 2 * newer:
            found = place
        newer += sizes[place]
    return found


def _constants(table: pa.Table) -> pa.Table:
    """Return the constants alone, sets as texts: lists are no keys to group by."""
    names = [name for name in table.column_names if name.startswith("c")]
    columns = [
        pc.binary_join(pc.cast(table[name], pa.list_(pa.string())), "\x00")
        if str(table[name].type).startswith("list")
        else table[name]
        for name in names
    ]
    return pa.table(columns, names)


def oldest_pin(working: WorkingCopy, stream_id: str) -> tuple[int, int] | None:
    """Return the oldest (epoch, version) that a micro-batch under way is pinned to, None when none is under way."""
    with mapped():
        pins = working.redis.hvals(working.key("pins", stream_id))
    return min((_pin(pin) for pin in pins), default=None)


def _pin(text: bytes) -> tuple[int, int]:
    epoch, version = text.split(b":")
    return int(epoch), int(version)


def _field(span: Span) -> str:
    return f"{span[0]}-{span[1]}"
