"""Upkeep of the constant tables: neighbouring segments are merged, definitions that no CQ needs go.

Segments form a log-structured merge: each commit adds a small segment, and a segment is merged with all newer ones once
these are together half its size, so an entry is rewritten O(log n) times, and O(log n) segments are left. Nothing above
the oldest pinned version is merged, since a batch that is under way, or replayed, still loads up to exactly there. A
merge of a million rows takes a second: it is made in a thread, while commands are carried out. The thread writes the
pieces, which do not count until the gateway's own thread replaces the merged segments with the new one; after an
interruption the old segments are still there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from gateway.model.dependencies import Dependency
from gateway.state.working_copy import WorkingCopy
from grouping.model.ids import GroupId, StreamId
from grouping.model.table import DroppedTable
from grouping.settings.settings import Settings
from grouping.store.connection import StoreLost, connect, mapped
from grouping.store.constant_table import net
from grouping.store.segment_log import SegmentLog, SegmentLost, VersionSpan, chain, segment_fields

__all__ = ["TableUpkeep", "oldest_to_merge"]

_FEW = 8
"""Segments that a stream's log may have before they are merged."""

_MANY = 256
"""The versions that may lie between the workers' version and the newest before their segments are merged as well."""


class _Merge(NamedTuple):
    """Neighbouring segments of a stream that are being merged."""

    stream_id: StreamId
    fields: list[bytes]
    """The fields of the segments and of all their pieces."""
    stale: Event
    """Set when the tables changed so that the merge no longer holds."""
    own: Future[tuple[str, bytes]]
    """The write that is left: the merged segment's own field."""


class TableUpkeep:
    """Looks after the constant tables of all streams, on connections of its own."""

    def __init__(self, settings: Settings, working: WorkingCopy) -> None:
        self._redis = connect(settings)
        self._thread_redis = connect(settings)
        self._working = working
        self._connection = working.connection
        self._distinct: dict[str, tuple[int, dict[str, int]]] = {}
        self._thread = ThreadPoolExecutor(1, "merge")
        self._merge: _Merge | None = None

    def forget(self) -> None:
        """Abandon a merge under way: the tables have changed since its beginning."""
        if self._merge is not None:
            self._merge.stale.set()

    @property
    def merging(self) -> bool:
        """Whether a merge is under way."""
        return self._merge is not None

    def step(self) -> None:
        """Do one useful merge, and remove definitions no longer needed by any batch.

        Raises:
            StoreLost: Segments are missing.
        """
        if self._merge is not None and self._merge.own.done():
            merge, self._merge = self._merge, None
            self._replace(merge)
        for stream_id in list(self._working.inventory.streams):
            version = self._working.inventory.versions[stream_id]
            pinned = self._working.evaluator.oldest_pin(stream_id)
            loaded = self._loaded(stream_id) if pinned is None else min(version, pinned.version)
            segments = self._segments(stream_id)
            if self._merge is None:
                self._merge = self._begin(stream_id, segments, 0, loaded)
            floor = loaded
            if pinned is None and version - loaded >= _MANY:
                # There are commands but no events. The workers' tables end at a segment's end, so no worker has to load
                # everything anew.
                floor = version
                if self._merge is None:
                    self._merge = self._begin(stream_id, segments, loaded, version)
            self._remove_unused(stream_id, floor)
        self._remove_dropped()

    def _loaded(self, stream_id: StreamId) -> int:
        """Return the version that workers have, while no batch is under way."""
        version = self._working.inventory.versions[stream_id]
        note = self._working.evaluator.committed([stream_id]).get(stream_id)
        last = None if note is None else note.table
        return version if last is None else min(version, last.version)

    def _log(self, stream_id: StreamId) -> SegmentLog:
        return SegmentLog(self._redis, self._connection.keys.segments(stream_id))

    def _segments(self, stream_id: StreamId) -> dict[VersionSpan, list[bytes]]:
        """Return the fields of a stream's segments, and delete leftovers of unfinished merges."""
        with mapped():
            fields = self._log(stream_id).fields()
        whole = {span: each for span, each in fields.items() if span.field.encode() in each}
        if chain(list(whole), 0, self._working.inventory.versions[stream_id]) is None:
            raise StoreLost(
                "the constant tables are not complete", detail=f'Redis lacks segments of stream "{stream_id}".'
            )
        if self._merge is None and (left := [field for span in fields.keys() - whole for field in fields[span]]):
            with self._connection.writing(self._redis) as pipeline:
                pipeline.hdel(self._connection.keys.segments(stream_id), *left)
        return whole

    def _begin(
        self, stream_id: StreamId, segments: dict[VersionSpan, list[bytes]], since: int, until: int
    ) -> _Merge | None:
        """Begin to merge a stream's segments between two versions, where there is anything to merge."""
        spans = [span for span in segments if since <= span.since and span.until <= until]
        if len(spans) < _FEW:
            return None
        key = self._connection.keys.segments(stream_id)
        with mapped():
            pipeline = self._redis.pipeline(transaction=False)
            for span in spans:
                for field in segments[span]:
                    pipeline.hstrlen(key, field)
            sizes = iter(pipeline.execute())
        first = oldest_to_merge([sum(next(sizes) for _ in segments[span]) for span in spans])
        if first is None:
            return None
        chosen, stale = spans[first:], Event()
        fields = [field for span in chosen for field in segments[span]]
        return _Merge(stream_id, fields, stale, self._thread.submit(self._merged, key, chosen, stale))

    def _merged(self, key: str, spans: list[VersionSpan], stale: Event) -> tuple[str, bytes]:
        """Write the pieces of some segments as one, and return its own field; in the thread."""
        log, whole = SegmentLog(self._thread_redis, key), VersionSpan(spans[0].since, spans[-1].until)
        with mapped():
            for field, body in segment_fields(whole, net(map(log.pieces, reversed(spans)), oldest=not whole.since)):
                if field == whole.field or stale.is_set():
                    break
                with self._connection.writing(self._thread_redis) as pipeline:
                    pipeline.hset(key, field, body)
        return field, body

    def _replace(self, merge: _Merge) -> None:
        """Put the merged segment in the place of its source segments."""
        if merge.stale.is_set() or merge.stream_id not in self._working.inventory.streams:
            return
        try:
            field, body = merge.own.result()
        except SegmentLost as error:
            raise StoreLost("the constant tables are not complete", detail=error.detail) from error
        key = self._connection.keys.segments(merge.stream_id)
        with self._connection.writing(self._redis) as pipeline:
            pipeline.hdel(key, *merge.fields)
            pipeline.hset(key, field, body)

    def _remove_unused(self, stream_id: StreamId, floor: int) -> None:
        key = self._connection.keys.unused(stream_id)
        with mapped():
            doomed = [name.decode() for name in self._redis.zrangebyscore(key, 0, floor)]
            inventory = self._working.inventory
            leaving = [each.destination for each in inventory.leaving.values()]
            needed = {name for each in leaving for name in (each.group_id, each.select_id)}
            used = inventory.dependencies[stream_id]
            gone = [name for name in doomed if Dependency.read(name) not in used and name not in needed]
        if gone:
            with self._connection.writing(self._redis) as pipeline:
                for definitions in self._connection.keys.definition_hashes(stream_id):
                    pipeline.hdel(definitions, *gone)
                pipeline.hdel(self._connection.keys.sole_users(stream_id), *gone)
                pipeline.zrem(key, *gone)
            sole_users = inventory.sole_users.get(stream_id, {})
            for name in gone:
                sole_users.pop(name, None)

    def _remove_dropped(self) -> None:
        """Forget the dropped tables that no plan joins any more."""
        dropped = self._working.inventory.dropped_tables
        gone = [table_id for table_id, table in dropped.items() if not any(self._kept(table))]
        if gone:
            with self._connection.writing(self._redis) as pipeline:
                pipeline.hdel(self._connection.keys.dropped_tables, *gone)
            for table_id in gone:
                del dropped[table_id]

    def _kept(self, table: DroppedTable) -> Iterator[GroupId]:
        """Yield the groups that join a dropped table and have plans."""
        by_stream = defaultdict[StreamId, list[GroupId]](list)
        for stream_id, group_id in table.groups:
            by_stream[stream_id].append(group_id)
        for stream_id, group_ids in by_stream.items():
            yield from self._working.kept_plans(stream_id, group_ids)

    def distinct_rows(self, stream_id: StreamId) -> dict[str, int]:
        """Return how many distinct rows of constants each group of a stream has."""
        version = self._working.inventory.versions[stream_id]
        known = self._distinct.get(stream_id)
        if known is None or known[0] != version:
            known = self._distinct[stream_id] = (version, self._count_rows(stream_id))
        return known[1]

    def _count_rows(self, stream_id: StreamId) -> dict[str, int]:
        log, alike = self._log(stream_id), defaultdict[tuple[str, tuple[str, ...]], list[pa.Table]](list)
        with mapped():
            for piece in net(map(log.pieces, reversed(log.spans())), oldest=True):
                for block, table in piece.added.items():
                    if not block.until:  # else its last member has left
                        alike[block.group_id, block.type_texts].append(_constants(table))
        found: dict[str, int] = {}
        for (group_id, _), tables in alike.items():
            rows = pa.concat_tables(tables)
            distinct = rows.group_by(rows.column_names).aggregate([]).num_rows if rows.column_names else 1
            found[group_id] = found.get(group_id, 0) + distinct
        return found


def oldest_to_merge(sizes: Sequence[int]) -> int | None:
    """Return the index of the first segment that is at most twice as large as all newer ones together; else None.

    Args:
        sizes: The sizes of the segments, from the oldest to the newest.

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
