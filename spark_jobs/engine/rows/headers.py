"""CloudEvents headers and keys of records as Arrow arrays, made for whole columns by NumPy and Arrow.

The headers of a record are one string of bytes, packed as in Kafka's records (KIP-98). Making five headers as Python
objects would take longer than making the record's value.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_jobs.engine.rows.edge_rows import EXIT, KINDS
from spark_jobs.engine.rows.row_source import RowSource
from spark_jobs.engine.rows.silent_rows import SilentRows, cause_offsets
from spark_jobs.engine.rows.varints import read_varint, varint, varints

__all__ = [
    "NO_HEADERS",
    "computed_ids",
    "event_ids",
    "event_times",
    "hex_keys",
    "match_headers",
    "packed_headers",
    "unpacked_headers",
]

NO_HEADERS = varint(0)
"""The packed headers of a record that has none."""

_TIME_WIDTH = len("2026-11-21T10:00:00.000Z")
_HEX_PAIRS = np.array([int.from_bytes(f"{byte:02x}".encode(), "little") for byte in range(256)], "<u2")


def packed_headers(headers: Iterable[tuple[str, bytes]]) -> bytes:
    """Return headers packed as in Kafka's records: their number; then each name and value, each after its length."""
    packed = [_header(name, value) for name, value in headers]
    return varint(len(packed)) + b"".join(packed)


def unpacked_headers(packed: bytes) -> list[tuple[str, bytes]]:
    """Return the names and values of packed headers.

    Example:
        >>> unpacked_headers(packed_headers([("code", b"undecodable"), ("detail", b"")]))
        [('code', b'undecodable'), ('detail', b'')]
    """
    count, at = read_varint(packed, 0)
    parts = []
    for _ in range(2 * count):
        size, at = read_varint(packed, at)
        parts.append(packed[at : at + size])
        at += size
    return [(name.decode(), value) for name, value in zip(parts[::2], parts[1::2], strict=True)]


def _header(name: str, value: bytes) -> bytes:
    return _with_length(name.encode()) + _with_length(value)


def _with_length(text: bytes) -> bytes:
    return varint(len(text)) + text


_KIND_HEADERS = pa.array([_header("op" if kind > EXIT else "edge", name.encode()) for kind, name in enumerate(KINDS)])
"""The header of each kind of a result: ``edge`` for an edge, ``op`` for a change of a table."""


def match_headers(
    source: str,
    ids: pa.StringArray,
    times: pa.StringArray,
    kinds: NDArray[np.int8] | None = None,
    before: pa.BinaryArray | None = None,
    causes: pa.StringArray | None = None,
) -> pa.BinaryArray:
    """Return the packed headers of matches, a string for each match.

    Args:
        source: The name of the stream, or the id of the computation that made the rows.
        ids: ``ce_id`` of each record.
        times: ``ce_time`` of each record.
        kinds: The kind of each record (`rows.edge_rows.KINDS`), for the header ``edge`` or ``op``; None for no such
            header.
        before: The header ``before`` of each record, NULL for a record without it; None if no record has it.
        causes: The header ``cause`` of each record, the id of the event that caused the result; None for no such
            header.
    """
    same = (("ce_specversion", b"1.0"), ("ce_type", b"cq.match"), ("ce_source", source.encode()))
    fixed = b"".join(_header(*each) for each in same) + _with_length(b"ce_id")
    count = len(same) + (2 if kinds is None else 3) + (causes is not None)
    if before is None:
        begin: pa.Scalar | pa.Array = pa.scalar(varint(count) + fixed)
    else:
        begins = pa.array([varint(count) + fixed, varint(count + 1) + fixed], pa.binary())
        begin = begins.take(before.is_valid().cast(pa.int8()))
    middle = _with_length(b"ce_time") + varint(_TIME_WIDTH)
    lengths = varints(pc.binary_length(ids).to_numpy())
    parts = [begin, lengths, ids.cast(pa.binary()), pa.scalar(middle), times.cast(pa.binary())]
    if kinds is not None:
        parts.append(_KIND_HEADERS.take(pa.array(kinds)))
    if before is not None:
        sizes = varints(pc.binary_length(before).fill_null(0).to_numpy())
        header = pc.binary_join_element_wise(pa.scalar(_with_length(b"before")), sizes, before, pa.scalar(b""))
        parts.append(header.fill_null(b""))
    if causes is not None:
        sizes = varints(pc.binary_length(causes).to_numpy())
        parts += [pa.scalar(_with_length(b"cause")), sizes, causes.cast(pa.binary())]
    return pc.binary_join_element_wise(*parts, pa.scalar(b""))


def event_ids(stream: str, events: RowSource, rows: NDArray[np.int32]) -> pa.StringArray:
    """Return ``<stream>/<partition>/<offset>`` of each row, followed by ``/<number>`` if records may have several rows.

    For changes of a table, the first change that a record makes has no number (docs/debezium.md).
    """
    numbered = _ids(stream, events, cause_offsets(events), rows)
    if events.number is None or not events.stream.changes_of:
        return numbered
    first = pa.array(events.number[rows] == 0)
    return pc.if_else(first, pc.utf8_slice_codeunits(numbered, 0, -len("/0")), numbered)


def computed_ids(silent: SilentRows, rows: NDArray[np.int32]) -> pa.StringArray:
    """Return ``<computation>/<partition>/<position>`` of some rows."""
    return _ids(silent.computation_id, silent, silent.positions, rows)


def _ids(source: str, rows: RowSource, positions: NDArray[np.int64], which: NDArray[np.int32]) -> pa.StringArray:
    numbers = [rows.partitions[which], positions[which]]
    if rows.number is not None:
        numbers.append(rows.number[which])
    texts = [pc.cast(pa.array(each), pa.string()) for each in numbers]
    return pc.binary_join_element_wise(pa.scalar(source), *texts, "/")


def event_times(events: RowSource, rows: NDArray[np.int32]) -> pa.StringArray:
    """Return the record times of some of the events in ISO 8601, with milliseconds and "Z"."""
    # Arrow is fast, but writes "2026-11-21 10:00:00.000"; NumPy and strftime write the wanted form, but slowly.
    spaced = pc.cast(pa.array(events.time_ms[rows], pa.timestamp("ms")), pa.string())
    text = np.empty((len(rows), _TIME_WIDTH), np.uint8)
    text[:, :-1] = np.frombuffer(spaced.buffers()[2], np.uint8, text[:, :-1].size).reshape(text[:, :-1].shape)
    text[:, 10] = ord("T")
    text[:, -1] = ord("Z")
    return _fixed_width(text, pa.string())


def hex_keys(prefix: str, ids: pa.FixedSizeBinaryArray) -> pa.BinaryArray:
    """Return ids as texts: the prefix, then the bytes of the id in lower-case hexadecimal digits.

    Example:
        >>> hex_keys("d_", pa.array([bytes(range(12))], pa.binary(12)))[0].as_py()
        b'd_000102030405060708090a0b'
    """
    count, size, head = len(ids), ids.type.byte_width, prefix.encode()
    raw = np.frombuffer(ids.buffers()[1], np.uint8)[ids.offset * size : (ids.offset + count) * size]
    text = np.empty((count, len(head) + 2 * size), np.uint8)
    text[:, : len(head)] = np.frombuffer(head, np.uint8)
    text[:, len(head) :] = _HEX_PAIRS[raw].view(np.uint8).reshape(count, 2 * size)
    return _fixed_width(text, pa.binary())


def _fixed_width(text: NDArray[np.uint8], kind: pa.DataType) -> pa.Array:
    """Return the rows of a matrix of bytes as texts."""
    count, width = text.shape
    offsets = np.arange(count + 1, dtype=np.int32) * width
    return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(offsets), pa.py_buffer(text)])
