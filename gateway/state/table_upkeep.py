"""Merges neighbouring segments of the constant tables, and removes definitions that no CQ needs.

Segments are merged as in a log-structured merge tree: each commit adds a small segment, and a segment is merged with
all newer segments when these together have half its size. So an entry is rewritten O(log n) times, and O(log n)
segments remain. Only segments up to the oldest pinned version are merged, since a micro-batch under way, or replayed,
loads the tables of exactly this version. A merge of a million rows takes a second, so a thread makes it while commands
are carried out. The thread writes the pieces of the new segment. The new segment becomes valid when the main thread
replaces the old segments; after an interruption, the old segments are still valid.
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
from gateway.model.rotation import Rotation
from gateway.state.working_copy import WorkingCopy
from grouping.model.ids import GroupId, StreamId
from grouping.model.table import DroppedTable
from grouping.settings.settings import Settings
from grouping.store.connection import StoreLost, connect, mapped
from grouping.store.constant_table import net
from grouping.store.segment_log import SegmentLog, SegmentLost, VersionSpan, chain, segment_fields

__all__ = ["TableUpkeep", "oldest_to_merge"]

_FEW = 8
"""Segments of a stream are merged only if there are at least this many."""

_MANY = 256
"""If the newest tables are at least this many versions ahead of the workers' tables, the segments between these
versions are merged too."""


class _Merge(NamedTuple):
    """Neighbouring segments of a stream that are being merged."""

    stream_id: StreamId
    fields: list[bytes]
    """The fields of the segments and of all their pieces."""
    stale: Event
    """Set when other changes of the tables have made the merge invalid."""
    own: Future[tuple[str, bytes]]
    """The thread's result: the merged segment's own field, which is written last."""


class TableUpkeep:
    """Merges and cleans the constant tables of all streams, with connections of its own."""

    def __init__(self, settings: Settings, working: WorkingCopy) -> None:
        self._redis = connect(settings)
        self._thread_redis = connect(settings)
        self._working = working
        self._connection = working.connection
        self._rotation = Rotation()
        self._distinct: dict[str, tuple[int, dict[str, int]]] = {}
        self._thread = ThreadPoolExecutor(1, "merge")
        self._merge: _Merge | None = None

    def forget(self) -> None:
        """Abandon a merge under way, because a recovery has changed the tables."""
        if self._merge is not None:
            self._merge.stale.set()

    @property
    def merging(self) -> bool:
        """Whether a merge is under way."""
        return self._merge is not None

    def step(self) -> None:
        """Finish a merge that is done, begin a merge that is due, and remove definitions that are not needed.

        Raises:
            StoreLost: Segments are missing.
        """
        if self._merge is not None and self._merge.own.done():
            merge, self._merge = self._merge, None
            self._replace(merge)
        for stream_id in self._rotation.choose(self._working.inventory.streams):
            version = self._working.inventory.versions[stream_id]
            pinned = self._working.evaluator.oldest_pin(stream_id)
            loaded = self._loaded(stream_id) if pinned is None else min(version, pinned.version)
            segments = self._segments(stream_id)
            if self._merge is None:
                self._merge = self._begin(stream_id, segments, 0, loaded)
            floor = loaded
            if pinned is None and version - loaded >= _MANY:
                # Commands come, but no events, so newer segments are merged too. The merge begins at the workers'
                # version, so that workers can still load only the changes since their version.
                floor = version
                if self._merge is None:
                    self._merge = self._begin(stream_id, segments, loaded, version)
            self._remove_unused(stream_id, floor)
        self._remove_dropped()

    def _loaded(self, stream_id: StreamId) -> int:
        """Return the version of the tables that the workers have if no micro-batch is under way."""
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
        """Begin to merge a stream's segments between two versions; None if there is nothing to merge."""
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
        """Write the pieces of a merged segment, and return the segment's own field without writing it.

        The segment is valid only after its own field is written. The method runs in the thread.
        """
        log, whole = SegmentLog(self._thread_redis, key), VersionSpan(spans[0].since, spans[-1].until)
        with mapped():
            for field, body in segment_fields(whole, net(map(log.pieces, reversed(spans)), oldest=not whole.since)):
                if field == whole.field or stale.is_set():
                    break
                with self._connection.writing(self._thread_redis) as pipeline:
                    pipeline.hset(key, field, body)
        return field, body

    def _replace(self, merge: _Merge) -> None:
        """Replace the merged segments by the new segment."""
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
        """Forget dropped tables that no plan joins any more."""
        dropped = self._working.inventory.dropped_tables
        gone = [table_id for table_id, table in dropped.items() if not any(self._kept(table))]
        if gone:
            with self._connection.writing(self._redis) as pipeline:
                pipeline.hdel(self._connection.keys.dropped_tables, *gone)
            for table_id in gone:
                del dropped[table_id]

    def _kept(self, table: DroppedTable) -> Iterator[GroupId]:
        """Yield the groups that join a dropped table and still have plans in Redis."""
        by_stream = defaultdict[StreamId, list[GroupId]](list)
        for stream_id, group_id in table.groups:
            by_stream[stream_id].append(group_id)
        for stream_id, group_ids in by_stream.items():
            yield from self._working.kept_plans(stream_id, group_ids)

    def distinct_rows(self, stream_id: StreamId) -> dict[str, int]:
        """Return group → number of distinct rows of constants, for each group of a stream."""
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
                    if not block.until:  # rows of departed members do not count
                        alike[block.group_id, block.type_texts].append(_constants(table))
        found: dict[str, int] = {}
        for (group_id, _), tables in alike.items():
            rows = pa.concat_tables(tables)
            distinct = rows.group_by(rows.column_names).aggregate([]).num_rows if rows.column_names else 1
            found[group_id] = found.get(group_id, 0) + distinct
        return found


def oldest_to_merge(sizes: Sequence[int]) -> int | None:
    """Return the index of the first segment that is to be merged with all newer segments; None if there is none.

    The size of this segment is at most twice the size of all newer segments together.


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
    """Return only the columns of constants; sets become texts, because Arrow cannot group by lists."""
    names = [name for name in table.column_names if name.startswith("c")]
    columns = [
        pc.binary_join(pc.cast(table[name], pa.list_(pa.string())), "\x00")
        if str(table[name].type).startswith("list")
        else table[name]
        for name in names
    ]
    return pa.table(columns, names)
