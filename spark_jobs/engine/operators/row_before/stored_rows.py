"""The state of `RowBefore` as bytes: a checksum, then an Arrow stream with keys, offsets and columns."""

from __future__ import annotations

import json
import zlib

import numpy as np
import pyarrow as pa

from spark_jobs.engine.operators.row_before.last_rows import NO_ROW, LastRows

__all__ = ["restored_rows", "stored_rows"]

_FORMAT = b"row-before 1\n"
"""Names the format and its version: other bytes are no snapshot."""
_CHECKSUM = 4
_KEY, _COLUMN, _OFFSET = "key.", "column.", "offset"


def stored_rows(state: LastRows) -> bytes:
    """Return a state as bytes; changes can be undone no more in what `restored_rows` returns of them.

    Example:
        >>> restored_rows(stored_rows(LastRows(7))).position
        7
    """
    keys = state.keys.columns()
    numbers = np.arange(state.keys.count)
    offsets = state.offsets(numbers)
    present = np.flatnonzero(offsets != NO_ROW)
    places = pa.array(present)
    columns = {f"{_KEY}{place}": column.take(places) for place, column in enumerate(keys)}
    columns[_OFFSET] = pa.array(offsets[present])
    columns |= {f"{_COLUMN}{name}": values for name, values in state.taken(state.columns, present).items()}
    told = json.dumps({"position": state.position, "since": dict(state.since)})
    rows = pa.table(columns).replace_schema_metadata({"state": told})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(rows)
    body: bytes = sink.getvalue().to_pybytes()
    return _FORMAT + zlib.crc32(body).to_bytes(_CHECKSUM) + body


def restored_rows(stored: bytes) -> LastRows:
    """Return the state that bytes hold.

    Raises:
        ValueError: The bytes are no whole snapshot of this version.
    """
    begin = len(_FORMAT) + _CHECKSUM
    body = stored[begin:]
    if not stored.startswith(_FORMAT) or zlib.crc32(body).to_bytes(_CHECKSUM) != stored[len(_FORMAT) : begin]:
        raise ValueError("no whole snapshot of this version")
    rows = pa.ipc.open_stream(body).read_all().combine_chunks()
    told = json.loads(rows.schema.metadata[b"state"])
    state = LastRows(told["position"])
    for name, since in told["since"].items():
        state.hold(name, since)
    if rows.num_rows:
        names = rows.schema.names
        arrays = {name: rows[name].chunk(0) for name in names}
        numbers = state.keys.of([arrays[name] for name in names if name.startswith(_KEY)])
        columns = {name.removeprefix(_COLUMN): arrays[name] for name in names if name.startswith(_COLUMN)}
        state.put(numbers, arrays[_OFFSET].to_numpy(), columns, undoable=False)
        state.changed = 0
    return state
