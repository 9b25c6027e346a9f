"""Constant tables of any size, made at once: the gateway's tables after as many CREATEs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

import msgspec
import numpy as np
import pyarrow as pa
from redis import Redis

from grouping.compiler.compiler import compile_select
from grouping.compiler.prepared import Preparer
from grouping.model.catalog import Catalog, Stream
from grouping.model.table import Table
from grouping.plan.group import GroupPlan, SelectList
from grouping.settings.settings import Settings
from grouping.statements.cq_text import CqText
from grouping.store.connection import connect
from grouping.store.constant_table import FRAMES, Block, Entry, Segment, cut
from grouping.store.keys import RedisKeys
from grouping.store.segment_log import PIECE_BYTES, VersionSpan, segment_fields
from grouping.store.table_store import VERSIONS_MARK

__all__ = ["Contents", "Tables"]

_RESULTS_PARTITIONS = Settings().results.partitions


class Contents:
    """The tables of one stream, in memory; a worker can read them from here as from the store."""

    def __init__(self, stream: Stream, tables: Sequence[Table] = ()) -> None:
        """Begin without queries on a stream, which may join some tables."""
        self.stream = stream
        self._tables = tables
        self.rows = 0
        self._plans: dict[str, GroupPlan] = {}
        self._selects: dict[str, SelectList] = {}
        self._blocks: dict[Block, list[pa.Table]] = {}
        self._random = np.random.default_rng(0)

    def add(self, select: str, constants: dict[str, pa.Array], mode: str = "shared", bounds: bytes = b"") -> Contents:
        """Add a query with many rows of constants.

        Args:
            select: The query, its own constants only telling their types.
            constants: By slot (``c0``, …) the constants of all rows.
            mode: Where matches go.
            bounds: For an aggregate query (`grouping.model.panes`); constants are of its WHERE alone.
        """
        query = compile_select(select, Catalog([self.stream], self._tables))
        self._know(query.plan, query.select)
        types = query.row.type_texts[: len(constants)]
        edge = FRAMES if query.plan.frames or query.plan.silence else query.edge
        block = Block(query.plan.group_id, types, query.select.select_id, mode, edge=edge)
        if edge:  # all events of the topic count
            constants = constants | {"since": pa.array([b""] * len(constants["c0"])).dictionary_encode()}
        if bounds:
            constants = constants | {"bounds": pa.array([bounds] * len(constants["c0"]))}
        self._blocks.setdefault(block, []).append(self._table(constants))
        return self

    def add_each(self, selects: Iterable[str]) -> Contents:
        """Add queries of any shapes, each with its own constants."""
        preparer = Preparer(Catalog([self.stream], self._tables))
        entries = []
        for select in selects:
            _, query = preparer.create(CqText.cut(f"CREATE CQ a AS {select}"))
            self._know(query.plan, query.select)
            block = Block(query.plan.group_id, query.row.type_texts, query.select.select_id, "shared")
            name = f"d_{self._random.bytes(12).hex()}"
            entries.append(Entry(block, name, query.row, self.rows, self.rows % _RESULTS_PARTITIONS))
            self.rows += 1
        for block, table in Segment.of((), entries).added.items():
            self._blocks.setdefault(block, []).append(table)
        return self

    def _know(self, plan: GroupPlan, select: SelectList) -> None:
        self._plans[plan.group_id] = plan
        self._selects[select.select_id] = select

    def _table(self, constants: dict[str, pa.Array]) -> pa.Table:
        count, first = len(constants["c0"]), self.rows
        self.rows += count
        ids = [None, pa.py_buffer(self._random.bytes(12 * count))]
        return pa.table(
            {
                "destination": pa.FixedSizeBinaryArray.from_buffers(pa.binary(12), count, ids),
                "number": pa.array(np.arange(first, first + count, dtype=np.int32)),
                "partition": pa.array(self._random.integers(0, _RESULTS_PARTITIONS, count, dtype=np.int32)),
                "start_ms": pa.nulls(count, pa.int64()),
                "expire_ms": pa.nulls(count, pa.int64()),
                **constants,
            }
        )

    @property
    def virtual_groups(self) -> set[str]:
        """The groups whose matches go to topics of their own."""
        return {block.group_id for block in self._blocks if block.mode == "virtual"}

    def changes(self, stream_id: str, epoch: int, since: int, until: int) -> Iterator[Segment]:
        """Return all rows in pieces, of version 1."""
        blocks = {block: pa.concat_tables(tables) for block, tables in self._blocks.items()}
        return cut([Segment(pa.array([], pa.binary(12)), blocks)], PIECE_BYTES)

    def plans(self, stream_id: str, ids: list[str]) -> dict[str, GroupPlan]:
        """Return the plans of groups."""
        return {group: self._plans[group] for group in ids}

    def selects(self, stream_id: str, ids: list[str]) -> dict[str, SelectList]:
        """Return SELECT lists."""
        return {select: self._selects[select] for select in ids}

    def write(self, settings: Settings, redis: Redis) -> None:
        """Make this all that there is on the stream, which becomes live."""
        name, keys = self.stream.stream_id, RedisKeys.of(settings)
        pipeline = redis.pipeline(transaction=False)
        for group, plan in self._plans.items():
            pipeline.hset(keys.groups(name), group, msgspec.json.encode(plan))
        for select_id, select in self._selects.items():
            pipeline.hset(keys.selects(name), select_id, msgspec.json.encode(select))
        for table in self._tables:
            pipeline.hset(keys.tables, table.table_id, msgspec.json.encode(table))
        redis.delete(keys.segments(name))
        for field, body in segment_fields(VersionSpan(0, 1), self.changes(name, 1, 0, 1)):
            redis.hset(keys.segments(name), field, body)
        pipeline.hset(keys.version, name, 1)
        pipeline.hset(keys.streams, name, msgspec.json.encode(self.stream))
        pipeline.execute()


class Tables:
    """Writes the evaluator's input on streams into the store."""

    def __init__(self, settings: Settings) -> None:
        """Connect, and confirm an epoch of the tables."""
        self._settings = settings
        self._redis = connect(settings)
        run_id = self._redis.info("server")["run_id"]
        self._redis.set(RedisKeys.of(settings).epoch, json.dumps({"epoch": 1, "run_id": run_id}))
        self._redis.hset(RedisKeys.of(settings).version, VERSIONS_MARK, 1)

    def put(self, contents: Contents) -> None:
        """Make these all that there is on their stream."""
        contents.write(self._settings, self._redis)
