"""The base of states that depend only on the log of a source partition, and how such a state is written as bytes.

A worker may lose such a state at any time, since the runtime can read the log again (`spark_jobs/runtime/states`).
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Generic, Self, TypeVar

import pyarrow as pa

__all__ = ["LogOperator", "LogState", "packed", "unpacked"]

_CHECKSUM = 4


class LogState:
    """A state that has taken in all events before a position of the log. `undo` undoes the changes of the last task."""

    def __init__(self, position: int = 0) -> None:
        """Begin without rows.

        Args:
            position: The position of the first event that is not in the state.
        """
        self.position = self.began = position
        """`began` is the position to which `undo` returns: the position when the last task began."""
        self.reached = position
        """The position after the last event in the state, when the last task began. `began` may be later, since offsets
        between the two may have no events. Another worker can apply the task's changes to a state whose position is at
        least `reached`."""
        self.complete = True
        """Whether the state has all events of the last task that changed it."""
        self.whole = True
        """Whether the state has taken in all events that the task has read; False until a step ends."""
        self.torn = False
        """Whether a change failed midway, so that the state must not be used any more."""
        self.changed = 0
        """The number of rows that were written into the state since the last snapshot."""
        self.restore_seconds = 0.0
        """The seconds that the worker took to restore the state for its first batch."""
        self._since: dict[str, int] = {}

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Change the state within the block; if the block raises an exception, the state stays torn."""
        self.torn = True
        yield
        self.torn = False

    @property
    def since(self) -> Mapping[str, int]:
        """By the name of a column: the position from which on the state has the column's values.

        The name "" stands for the rows themselves, whatever columns they have.
        """
        return self._since

    def hold(self, name: str, since: int) -> None:
        """Note that the state has a column from a position on; the name "" stands for the rows themselves."""
        self._since[name] = min(since, self._since.get(name, since))

    def keep(self, names: Collection[str]) -> None:
        """Remove all columns of the rows but those in `names`.

        Must only be called between two tasks: afterwards, `undo` can no longer undo the changes of the last task.
        """
        self._since = {name: since for name, since in self._since.items() if not name or name in names}

    def rewind(self, position: int) -> None:
        """Prepare the state to read the log again from a position on, because a column of these rows is missing."""

    def begin(self) -> None:
        """Begin a task: earlier changes can no longer be undone."""
        self.began, self.complete = self.position, False

    def undo(self) -> None:
        """Undo the changes since the last task began."""
        self.position, self.complete, self.whole = self.began, True, True

    def stored(self) -> bytes:
        """Return the state as bytes. A state that is restored from these bytes cannot undo the last task's changes."""
        raise NotImplementedError

    @classmethod
    def restored(cls, stored: bytes) -> Self:
        """Return the state that `stored` has written as bytes.

        Raises:
            ValueError: The bytes are no complete snapshot of this version.
        """
        raise NotImplementedError

    def changes(self) -> bytes:
        """Return the changes of the last task as bytes for `put_changes`."""
        raise NotImplementedError

    def put_changes(self, stored: bytes) -> bool:
        """Apply the changes of a task, so that the state is as it was after the task.

        The position of the state must be at least `reached` of the state that the task began with.

        Returns:
            Whether the changes were applied; False if they lack a column that the state has.

        Raises:
            ValueError: The bytes are incomplete, or of another version.
        """
        raise NotImplementedError

    @property
    def changed_bytes(self) -> int:
        """An estimate of the bytes that were written into the state since the last snapshot."""
        raise NotImplementedError

    @property
    def count(self) -> int:
        """The number of keys."""
        raise NotImplementedError

    @property
    def rows(self) -> int:
        """The number of rows: one for each key, unless a subclass keeps more."""
        return self.count

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        raise NotImplementedError


State = TypeVar("State", bound=LogState)


class LogOperator(Generic[State]):
    """The methods of `operators.operator.Operator` that only call a method of the operator's state."""

    __slots__ = ()

    def begin(self) -> State:
        """Return the state before the first rows."""
        raise NotImplementedError

    def snapshot(self, state: State) -> bytes:
        """Return the state as bytes that `restore` reads."""
        return state.stored()

    def restore(self, snapshot: bytes) -> State:
        """Return the state that a snapshot holds.

        Raises:
            ValueError: The bytes are no complete snapshot of this version.
        """
        return type(self.begin()).restored(snapshot)

    def size(self, state: State) -> int:
        """Return the memory of the state in bytes; an estimate."""
        return state.nbytes


def packed(form: bytes, rows: pa.Table, about: Mapping[str, Any], compression: str | None) -> bytes:
    """Return rows as bytes: the first bytes `form`, a checksum, and an Arrow stream.

    Args:
        form: The first bytes, which name the format and its version.
        rows: The rows.
        about: Facts about the rows that `unpacked` returns with them; they must be encodable as JSON.
        compression: The name of a compression in Arrow; None for no compression.
    """
    rows = rows.replace_schema_metadata({"state": json.dumps(about)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(rows)
    body: bytes = sink.getvalue().to_pybytes()
    return form + zlib.crc32(body).to_bytes(_CHECKSUM) + body


def unpacked(form: bytes, stored: bytes) -> tuple[pa.Table, dict[str, Any]]:
    """Return the rows and the facts that `packed` has written as bytes.

    Raises:
        ValueError: The bytes are not complete, or do not begin with `form`.

    Example:
        >>> rows, about = unpacked(b"x 1", packed(b"x 1", pa.table({"a": [1]}), {"position": 7}, None))
        >>> rows["a"].to_pylist(), about
        ([1], {'position': 7})
    """
    begin = len(form) + _CHECKSUM
    body = memoryview(stored)[begin:]
    if not stored.startswith(form) or zlib.crc32(body).to_bytes(_CHECKSUM) != stored[len(form) : begin]:
        raise ValueError("no whole snapshot of this version")
    rows = pa.ipc.open_stream(body).read_all().combine_chunks()
    about: dict[str, Any] = json.loads(rows.schema.metadata[b"state"])
    return rows, about
