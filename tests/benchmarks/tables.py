"""Constant tables of any size, put into the store in one piece: what the gateway would hold after as many CREATEs."""

from __future__ import annotations

import json

import msgspec
import numpy as np
import pyarrow as pa
from redis import Redis

from grouping.catalog import Catalog, Stream
from grouping.compiler import compile_select
from grouping.constant_table import Block, Segment
from grouping.settings import Settings

__all__ = ["Tables"]


class Tables:
    """Writes what the evaluator reads of a stream."""

    def __init__(self, settings: Settings) -> None:
        """Connect, and confirm an epoch of the tables."""
        self._settings = settings
        self._redis = Redis.from_url(settings.redis.url.get_secret_value())
        run_id = self._redis.info("server")["run_id"]
        self._redis.set(settings.key("epoch"), json.dumps({"epoch": 1, "run_id": run_id}))

    def put(self, stream: Stream, select: str, constants: dict[str, pa.Array], mode: str = "shared") -> None:
        """Make a query with many rows of constants all that there is on a stream.

        Args:
            stream: Which one; it becomes live.
            select: The query, its own constants only telling their types.
            constants: By slot (``c0``, …) the constants of all rows.
            mode: Where matches go.
        """
        self.put_all(stream, [(select, constants)], mode)

    def put_all(self, stream: Stream, queries: list[tuple[str, dict[str, pa.Array]]], mode: str = "shared") -> None:
        """Make some queries, each with its rows of constants, all that there is on a stream."""
        catalog = Catalog([stream])
        blocks: dict[Block, pa.Table] = {}
        pipeline = self._redis.pipeline()
        first = 0
        for select, constants in queries:
            query = compile_select(select, catalog)
            count = len(constants["c0"])
            block = Block(query.plan.group_id, query.row.types, query.select.select_id, mode)
            table = _rows(count, first, self._settings.results.partitions, constants)
            blocks[block] = pa.concat_tables([blocks[block], table]) if block in blocks else table
            first += count
            key = self._settings.key
            pipeline.hset(key("groups", stream.stream_id), query.plan.group_id, msgspec.json.encode(query.plan))
            pipeline.hset(key("selects", stream.stream_id), query.select.select_id, msgspec.json.encode(query.select))
        pipeline.delete(self._settings.key("segments", stream.stream_id))
        body = Segment(pa.array([], pa.binary(12)), blocks).encode()
        pipeline.hset(self._settings.key("segments", stream.stream_id), "0-1", body)
        pipeline.hset(self._settings.key("version"), stream.stream_id, 1)
        pipeline.hset(self._settings.key("streams"), stream.stream_id, msgspec.json.encode(stream))
        pipeline.execute()


def _rows(count: int, first: int, partitions: int, constants: dict[str, pa.Array]) -> pa.Table:
    random = np.random.default_rng(first)
    ids = pa.FixedSizeBinaryArray.from_buffers(pa.binary(12), count, [None, pa.py_buffer(random.bytes(12 * count))])
    return pa.table(
        {
            "destination": ids,
            "number": pa.array(np.arange(first, first + count, dtype=np.int32)),
            "partition": pa.array(random.integers(0, partitions, count, dtype=np.int32)),
            "start_ms": pa.nulls(count, pa.int64()),
            "expire_ms": pa.nulls(count, pa.int64()),
            **constants,
        }
    )
