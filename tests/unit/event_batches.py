"""Batches as Spark's Kafka source gives them, and the streams that they belong to."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from grouping.catalog import Stream, StreamColumn
from grouping.settings import Settings

SETTINGS = Settings(prefix="cq.")
FIRST_OFFSET = 100
TIME_MS = 1_700_000_000_123


def stream(
    *columns: str, form: str = "json", schema: str | None = None, framing: str = "single-object", name: str = "quotes"
) -> Stream:
    """Return a stream of columns written as ``name TYPE``."""
    declared = tuple(StreamColumn(*column.split(" ", 1)) for column in columns)
    return Stream("s_1", name, declared, "source", form, {"0": 0}, "2026-11-21T10:00:00Z", schema, framing)


def batch(
    values: Sequence[bytes | None], keys: Sequence[bytes | None] | None = None, partitions: Sequence[int] | None = None
) -> pa.RecordBatch:
    """Return records of those values, at offsets from `FIRST_OFFSET` and a millisecond apart."""
    count = len(values)
    return pa.record_batch(
        {
            "key": pa.array(keys or [b"k"] * count, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "partition": pa.array(partitions or [3] * count, pa.int32()),
            "offset": pa.array(range(FIRST_OFFSET, FIRST_OFFSET + count), pa.int64()),
            "timestamp": pa.array([(TIME_MS + row) * 1000 for row in range(count)], pa.timestamp("us", "UTC")),
        }
    )


def header(row: dict, name: str) -> str:
    """Return a header of an output row."""
    return next(item["value"] for item in row["headers"] if item["key"] == name).decode()
