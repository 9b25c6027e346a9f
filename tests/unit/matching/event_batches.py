"""Batches as Spark's Kafka source gives them, and the streams that they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pyarrow as pa
from aiokafka.record.util import decode_varint

from gateway.evaluation.records import PlacedRecord, source_batch
from grouping.model.catalog import Stream, StreamColumn
from grouping.settings.settings import Settings

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
    values: Sequence[bytes | None],
    keys: Sequence[bytes | None] | None = None,
    partitions: Sequence[int] | None = None,
    first: int = FIRST_OFFSET,
    headers: Sequence[tuple[tuple[str, bytes | None], ...]] | None = None,
) -> pa.RecordBatch:
    """Return records of these values, at offsets from `first` and a millisecond apart."""
    count = len(values)
    keys, partitions = keys or [b"k"] * count, partitions or [3] * count
    times = [datetime.fromtimestamp((TIME_MS + row) / 1000, UTC) for row in range(count)]
    offsets = range(first, first + count)
    return source_batch(map(PlacedRecord, values, keys, times, partitions, offsets, headers or [()] * count))


def headers(row: dict) -> list[tuple[str, bytes]]:
    """Return the headers of an output row."""
    packed = bytearray(row["headers"])
    count, at = decode_varint(packed, 0)
    found = []
    for _ in range(2 * count):
        size, at = decode_varint(packed, at)
        found.append(bytes(packed[at : at + size]))
        at += size
    assert at == len(packed)
    return [(name.decode(), value) for name, value in zip(found[::2], found[1::2], strict=True)]


def header(row: dict, name: str) -> str:
    """Return a header of an output row."""
    return dict(headers(row))[name].decode()
