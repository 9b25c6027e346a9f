"""The state of `RowBefore` as bytes, or a task's changes of it: a checksum, then an Arrow stream.

The stream has the columns of keys, offsets and stored columns. Changes bring a state at any position from where the
task began up to where it ended to the end: they have the last row of each key that the task met.
"""

from __future__ import annotations

import json
import zlib

import numpy as np
import pyarrow as pa

from spark_jobs.engine.index import Ints
from spark_jobs.engine.operators.row_before.last_rows import NO_ROW, LastRows

__all__ = ["changed_rows", "put_changes", "restored_rows", "stored_rows"]

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
    return _packed(state, np.arange(state.keys.count), "zstd")


def changed_rows(state: LastRows) -> bytes:
    """Return the changes of the last task as bytes for `put_changes`."""
    return _packed(state, state.changed_numbers(), None)


def _packed(state: LastRows, numbers: Ints, compression: str | None) -> bytes:
    offsets = state.offsets(numbers)
    kept = np.flatnonzero(offsets != NO_ROW)
    present = numbers[kept]
    columns = {f"{_KEY}{place}": column for place, column in enumerate(state.keys.columns(present))}
    columns[_OFFSET] = pa.array(offsets[kept])
    columns |= {f"{_COLUMN}{name}": values for name, values in state.taken(state.columns, present).items()}
    told = json.dumps({"position": state.position, "since": dict(state.since)})
    rows = pa.table(columns).replace_schema_metadata({"state": told})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(rows)
    body: bytes = sink.getvalue().to_pybytes()
    return _FORMAT + zlib.crc32(body).to_bytes(_CHECKSUM) + body


def restored_rows(stored: bytes) -> LastRows:
    """Return the state that bytes hold.

    Raises:
        ValueError: The bytes are no whole snapshot of this version.
    """
    rows, position, held = _unpacked(stored)
    state = LastRows(position)
    for name, since in held.items():
        state.hold(name, since)
    _put(state, rows)
    state.changed = 0
    return state


def put_changes(state: LastRows, stored: bytes) -> bool:
    """Bring a state to the end of a task, given the task's changes; the state is not before the task's beginning.

    Returns:
        Whether the changes were put: they are not where they lack a column of the state.

    Raises:
        ValueError: The bytes are no whole changes of this version.
    """
    rows, position, held = _unpacked(stored)
    if not state.since.keys() <= held.keys():
        return False
    _put(state, rows)
    state.position = position
    return True


def _unpacked(stored: bytes) -> tuple[pa.Table, int, dict[str, int]]:
    """Return rows, the position behind them, and by column since when rows have it."""
    begin = len(_FORMAT) + _CHECKSUM
    body = memoryview(stored)[begin:]
    if not stored.startswith(_FORMAT) or zlib.crc32(body).to_bytes(_CHECKSUM) != stored[len(_FORMAT) : begin]:
        raise ValueError("no whole snapshot of this version")
    rows = pa.ipc.open_stream(body).read_all().combine_chunks()
    told = json.loads(rows.schema.metadata[b"state"])
    return rows, told["position"], told["since"]


def _put(state: LastRows, rows: pa.Table) -> None:
    if not rows.num_rows:
        return
    names = rows.schema.names
    arrays = {name: rows[name].chunk(0) for name in names}
    numbers = state.keys.of([arrays[name] for name in names if name.startswith(_KEY)])
    columns = {name.removeprefix(_COLUMN): arrays[name] for name in names if name.startswith(_COLUMN)}
    state.put(numbers, arrays[_OFFSET].to_numpy(), columns, undoable=False)
