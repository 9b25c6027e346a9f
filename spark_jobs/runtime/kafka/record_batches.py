"""Makes Kafka's record batches (KIP-98, version 2) from output rows, by Arrow and never record by record.

Spark's sink makes Java objects for each record and for each of its five headers. This takes 4.2 µs for each record,
which is more than half of the time for an event. Here the columns of many rows are joined to records, divided by
partition, compressed and given their checksums. This takes 0.5 µs for each record. `record_writer` sends the batches.
"""

from __future__ import annotations

import gzip
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import lz4.frame
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from aiokafka.record.util import calc_crc32c

from grouping.settings.settings import Codec
from spark_jobs.engine.rows.arrays import Ints
from spark_jobs.engine.rows.varints import varints

__all__ = ["RecordBatch", "record_batches"]

_BATCH_BYTES = 512 * 1024
"""The largest number of bytes in a batch, unless a single record has more. Brokers accept 1 MiB by default."""
_BEFORE_CHECKSUM = struct.Struct(">qiibI")
_CHECKED = struct.Struct(">hiqqqhii")
_VERSION = 2
_CODECS = {"none": 0, "gzip": 1, "lz4": 3}
"""Kafka's numbers of the codecs."""
_NO_EPOCH = -1
_NO_FLAGS_NO_TIME = b"\x00\x00"
"""The first two fields of a record: its attributes, and its time minus the batch's time. Both are zero."""


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """Some records of a partition, compressed by a codec."""

    topic: str
    partition: int
    count: int
    records: bytes
    codec: Codec

    def encode(self, producer_id: int, producer_epoch: int, first_sequence: int, now_ms: int) -> bytes:
        """Return the batch as the bytes of Kafka's protocol.

        Args:
            producer_id: The producer's id, by which the broker recognises a repeated batch.
            producer_epoch: The producer's epoch.
            first_sequence: The number of records of the partition that the producer has sent before.
            now_ms: The time of writing in epoch milliseconds. The broker may use its own time instead (LogAppendTime).
        """
        codec, last = _CODECS[self.codec], self.count - 1
        checked = (
            _CHECKED.pack(codec, last, now_ms, now_ms, producer_id, producer_epoch, first_sequence, self.count)
            + self.records
        )
        rest = len(checked) + _BEFORE_CHECKSUM.size - struct.calcsize(">qi")
        return _BEFORE_CHECKSUM.pack(0, rest, _NO_EPOCH, _VERSION, calc_crc32c(checked)) + checked


def record_batches(rows: pa.RecordBatch, codec: Codec = "lz4") -> Iterator[RecordBatch]:
    """Yield record batches with some rows; within each partition, records are in the order of the rows.

    Args:
        rows: Rows of `spark_jobs.engine.rows.output.OUTPUT`; each must have a partition.
        codec: The compression.
    """
    if not rows.num_rows:
        return
    topics = rows["topic"].dictionary_encode()
    names = topics.dictionary.to_pylist()
    addresses = topics.indices.to_numpy().astype(np.int64) << 32 | rows["partition"].to_numpy()
    order = np.argsort(addresses, kind="stable")
    addresses, placed = addresses[order], rows.select(["key", "value", "headers"]).take(pa.array(order))
    body, sizes = _without_place(placed)
    starts = _starts(addresses, sizes)
    ends = np.append(starts[1:], rows.num_rows)
    place = varints(np.arange(rows.num_rows) - np.repeat(starts, ends - starts))
    length = varints(len(_NO_FLAGS_NO_TIME) + _lengths(place) + sizes)
    records = _joined(length, pa.scalar(_NO_FLAGS_NO_TIME), place, *body)
    offsets = np.frombuffer(records.buffers()[1], np.int32)
    data = memoryview(records.buffers()[2])
    for start, end, address in zip(starts.tolist(), ends.tolist(), addresses[starts].tolist(), strict=True):
        packed = _compressed(data[offsets[start] : offsets[end]], codec)
        yield RecordBatch(names[address >> 32], address & 0xFFFFFFFF, end - start, packed, codec)


def _compressed(data: memoryview, codec: Codec) -> bytes:
    match codec:
        case "none":
            return bytes(data)
        case "gzip":
            return gzip.compress(data, compresslevel=1, mtime=0)
        case "lz4":  # Kafka reads only independent blocks, which Arrow's own lz4 does not write
            return bytes(lz4.frame.compress(data, block_linked=False, store_size=False))


def _without_place(rows: pa.RecordBatch) -> tuple[list[pa.Array], Ints]:
    """Return, for each record, the fields after its offset in the batch, and the total length of these fields."""
    key, value, headers = rows["key"], rows["value"], rows["headers"]
    key_length, value_length = _lengths(key), _lengths(value)
    parts = [varints(key_length), key, varints(value_length), value, headers]
    sizes = np.maximum(key_length, 0) + np.maximum(value_length, 0) + _lengths(headers)
    return parts, sizes + _lengths(parts[0]) + _lengths(parts[2])


def _lengths(column: pa.Array) -> Ints:
    """Return the length of each value; -1 for a null."""
    lengths: Ints = pc.binary_length(column).fill_null(-1).to_numpy().astype(np.int64)
    return lengths


def _joined(*parts: pa.Array | pa.Scalar) -> pa.BinaryArray:
    nothing = pa.scalar(b"")
    return pc.binary_join_element_wise(*parts, nothing, null_handling="replace", null_replacement="")


def _starts(addresses: Ints, sizes: Ints) -> Ints:
    """Return the first row of each batch; a batch ends with its partition, or before a row that makes it too large."""
    runs = np.flatnonzero(np.diff(addresses, prepend=-1)).tolist()
    ends, cuts = np.cumsum(sizes), []
    for first, last in pairwise([*runs, len(addresses)]):
        start = first
        while start < last:
            cuts.append(start)
            before = ends[start - 1] if start else 0
            start = max(start + 1, int(np.searchsorted(ends, before + _BATCH_BYTES, side="right")))
    return np.array(cuts, np.int64)
