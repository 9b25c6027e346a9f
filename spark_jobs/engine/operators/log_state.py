"""The state of an operator that is a function of a source partition's log, and its form as bytes.

A worker may lose such a state at any time: the runtime reads the log again (`spark_jobs/runtime/states`).
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
    """A state as of a position of the log. The changes of the last task can be undone."""

    def __init__(self, position: int = 0) -> None:
        """Begin without rows.

        Args:
            position: The position of the first event that is not in the state.
        """
        self.position = self.began = position
        """`began` is the position when the changes that can be undone began."""
        self.complete = True
        """Whether the last task that changed the state took all of its events in."""
        self.whole = True
        """Whether the state has all events that the task was given so far; False while a step takes events in."""
        self.torn = False
        """Whether a change failed midway, which makes the state useless."""
        self.changed = 0
        """How many rows were put since the last snapshot."""
        self.restore_seconds = 0.0
        """How long the worker took to bring the state to its first batch."""
        self._since: dict[str, int] = {}

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Change the state within the block; a block that raises leaves the state torn."""
        self.torn = True
        yield
        self.torn = False

    @property
    def since(self) -> Mapping[str, int]:
        """By name of a part of the rows, such as a column: the position from which on rows have the part.

        The name "" stands for the rows as such.
        """
        return self._since

    def hold(self, name: str, since: int) -> None:
        """Note that rows have a part from a position on; the name "" stands for the rows as such."""
        self._since[name] = min(since, self._since.get(name, since))

    def keep(self, names: Collection[str]) -> None:
        """Keep some parts of the rows alone; called where no change can be undone."""
        self._since = {name: since for name, since in self._since.items() if not name or name in names}

    def rewind(self, position: int) -> None:
        """Prepare the state for events from a position on, some of which are in the state without a new part."""

    def begin(self) -> None:
        """Begin a task: the changes so far can be undone no more."""
        self.began, self.complete = self.position, False

    def undo(self) -> None:
        """Undo the changes since the last task began."""
        self.position, self.complete, self.whole = self.began, True, True

    def stored(self) -> bytes:
        """Return the state as bytes; the state that `restored` makes of them cannot undo changes."""
        raise NotImplementedError

    @classmethod
    def restored(cls, stored: bytes) -> Self:
        """Return the state that bytes hold.

        Raises:
            ValueError: The bytes are no whole snapshot of this version.
        """
        raise NotImplementedError

    def changes(self) -> bytes:
        """Return the changes of the last task as bytes for `put_changes`."""
        raise NotImplementedError

    def put_changes(self, stored: bytes) -> bool:
        """Bring the state to the end of a task, given the task's changes; the state is not before the task's beginning.

        Returns:
            Whether the changes were put. Changes that lack a part that the state has are not put.

        Raises:
            ValueError: The bytes are no whole changes of this version.
        """
        raise NotImplementedError

    @property
    def changed_bytes(self) -> int:
        """About how many bytes were put since the last snapshot."""
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
    """The part of an operator (`operators.operator.Operator`) that its state carries out."""

    __slots__ = ()

    def begin(self) -> State:
        """Return the state before the first rows."""
        raise NotImplementedError

    def snapshot(self, state: State) -> bytes:
        """Return the state as bytes that `restore` reads."""
        return state.stored()

    def restore(self, snapshot: bytes) -> State:
        """Return the state of a snapshot.

        Raises:
            ValueError: The bytes are no whole snapshot of this version.
        """
        return type(self.begin()).restored(snapshot)

    def size(self, state: State) -> int:
        """Return about how many bytes of memory the state takes."""
        return state.nbytes


def packed(form: bytes, rows: pa.Table, about: Mapping[str, Any], compression: str | None) -> bytes:
    """Return rows as bytes: the form, a checksum, and an Arrow stream.

    Args:
        form: Names the format and its version.
        rows: The rows.
        about: Facts that `unpacked` returns with the rows; JSON.
        compression: As Arrow names it.
    """
    rows = rows.replace_schema_metadata({"state": json.dumps(about)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(rows)
    body: bytes = sink.getvalue().to_pybytes()
    return form + zlib.crc32(body).to_bytes(_CHECKSUM) + body


def unpacked(form: bytes, stored: bytes) -> tuple[pa.Table, dict[str, Any]]:
    """Return the rows that `packed` has packed, and the facts about them.

    Raises:
        ValueError: The bytes are no whole rows of this form.

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
