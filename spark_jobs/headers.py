"""CloudEvents headers and keys as Arrow arrays, laid out by NumPy and never row by row.

Five headers a record cost more than its value when each is a Python object; here they are one string per record, of
which Arrow's offsets make five.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_jobs.events import Events
from spark_jobs.output import HEADERS

__all__ = ["event_ids", "event_times", "hex_keys", "match_headers"]

_NAMES = ("ce_specversion", "ce_type", "ce_source", "ce_id", "ce_time")
_VERSION = "1.0"
_TYPE = "cq.match"
_TIME_WIDTH = len("2026-11-21T10:00:00.000Z")
_HEX_PAIRS = np.array([int.from_bytes(f"{byte:02x}".encode(), "little") for byte in range(256)], "<u2")


def match_headers(source: str, ids: pa.StringArray, times: pa.StringArray) -> pa.ListArray:
    """Return the headers of matches, one list for each id.

    Args:
        source: The stream's name.
        ids: ``ce_id`` of each record.
        times: ``ce_time`` of each record.
    """
    count, width = len(ids), len(_NAMES)
    start = _VERSION + _TYPE + source
    data = pc.binary_join_element_wise(pa.scalar(start), ids, times, "")
    _, offsets, text = data.buffers()
    begins = np.frombuffer(offsets, np.int32)[data.offset : data.offset + count + 1]
    id_begins = begins[:-1] + len(start.encode())
    cuts = np.empty(count * width + 1, np.int32)
    cuts[-1] = begins[-1]
    by_record = cuts[:-1].reshape(count, width)
    by_record[:, 0] = begins[:-1]
    by_record[:, 1] = by_record[:, 0] + len(_VERSION)
    by_record[:, 2] = by_record[:, 1] + len(_TYPE)
    by_record[:, 3] = id_begins
    by_record[:, 4] = id_begins + pc.binary_length(ids).to_numpy()
    values = pa.Array.from_buffers(pa.binary(), count * width, [None, pa.py_buffer(cuts), text])
    pairs = pa.StructArray.from_arrays([_names(count), values], fields=list(HEADERS.value_type))
    lists = np.arange(count + 1, dtype=np.int32) * width
    return pa.Array.from_buffers(HEADERS, count, [None, pa.py_buffer(lists)], children=[pairs])


def _names(count: int) -> pa.StringArray:
    """Return the names of the headers, over and over."""
    lengths = np.tile(np.array([len(name) for name in _NAMES], np.int32), count)
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    text = "".join(_NAMES).encode() * count
    return pa.Array.from_buffers(pa.string(), len(lengths), [None, pa.py_buffer(offsets), pa.py_buffer(text)])


def event_ids(stream: str, events: Events, rows: NDArray[np.int32]) -> pa.StringArray:
    """Return ``<stream>/<partition>/<offset>`` of some of the events."""
    partitions = pc.cast(pa.array(events.partitions[rows]), pa.string())
    offsets = pc.cast(pa.array(events.offsets[rows]), pa.string())
    return pc.binary_join_element_wise(pa.scalar(stream), partitions, offsets, "/")


def event_times(events: Events, rows: NDArray[np.int32]) -> pa.StringArray:
    """Return the record time of some of the events, ISO 8601 with milliseconds and Z."""
    # Arrow writes "2026-11-21 10:00:00.000" fast, NumPy and strftime write what is wanted slowly.
    spaced = pc.cast(pa.array(events.time_ms[rows], pa.timestamp("ms")), pa.string())
    text = np.empty((len(rows), _TIME_WIDTH), np.uint8)
    text[:, :-1] = np.frombuffer(spaced.buffers()[2], np.uint8, text[:, :-1].size).reshape(text[:, :-1].shape)
    text[:, 10] = ord("T")
    text[:, -1] = ord("Z")
    return _fixed_width(text, pa.string())


def hex_keys(prefix: str, ids: pa.FixedSizeBinaryArray) -> pa.BinaryArray:
    """Return ids of 12 bytes as texts: the prefix and lower-case hexadecimal digits.

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
