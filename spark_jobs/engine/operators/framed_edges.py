"""The state of edges over frames: the rows of the frames, and each key's last row with its window functions."""

from __future__ import annotations

from collections.abc import Collection
from typing import Self

import numpy as np
import pyarrow as pa

from spark_jobs.engine.operators.extended_rows import ExtendedRows
from spark_jobs.engine.operators.frames.frame_rows import FrameRows
from spark_jobs.engine.operators.frames.operator import FrameOperator
from spark_jobs.engine.operators.log_state import LogState, packed, unpacked
from spark_jobs.engine.operators.row_before.key_numbers import KeyNumbers
from spark_jobs.engine.operators.row_before.last_rows import LastRows
from spark_jobs.engine.operators.row_before.operator import RowBeforeOperator
from spark_jobs.engine.rows.row_source import RowSource

__all__ = ["FramedEdges", "fold_framed_edges"]

_FORMAT = b"framed-edges 1\n"
"""The first bytes of each snapshot, which name the format and its version."""
_PARTS = "parts"


class FramedEdges(LogState):
    """Two states at the same position of the partition's log.

    All queries over the computation read the same columns (`RowBefore.reads`, `Frames.apart`). So the state never lacks
    a column of its own rows.
    """

    def __init__(self, position: int = 0, frames: FrameRows | None = None, before: LastRows | None = None) -> None:
        """Begin without rows at a position of the log, or take two states at this position."""
        self.frames = frames or FrameRows(position)
        self.before = before or LastRows(position)
        super().__init__(position)

    @property
    def position(self) -> int:
        """The position of the first event that is not in the state."""
        return self.before.position

    @position.setter
    def position(self, position: int) -> None:
        self.frames.position = self.before.position = position

    @property
    def torn(self) -> bool:
        """Whether a change failed midway, so that the state must not be used any more."""
        return self.frames.torn or self.before.torn

    @torn.setter
    def torn(self, torn: bool) -> None:
        self.frames.torn = self.before.torn = torn

    @property
    def changed(self) -> int:
        """The number of rows that were written into the state since the last snapshot."""
        return self.frames.changed + self.before.changed

    @changed.setter
    def changed(self, changed: int) -> None:
        self.frames.changed = self.before.changed = changed

    def hold(self, name: str, since: int) -> None:
        """Note that the state has a column from a position on."""
        super().hold(name, since)
        self.frames.hold(name, since)
        self.before.hold(name, since)

    def keep(self, names: Collection[str]) -> None:
        """Remove all columns but those in `names`; must only be called between two tasks."""
        super().keep(names)
        self.frames.keep(names)
        self.before.keep(names)

    def rewind(self, position: int) -> None:
        """Prepare the state to read the log from a position on.

        If the state lacks earlier rows, since a query that begins earlier was resumed, the state begins anew there.
        """
        if position < self.position:
            frames, self.frames, self.before = self.frames, FrameRows(position), LastRows(position)
            self.frames.reach, self.frames.visible = frames.reach, frames.visible

    def begin(self) -> None:
        """Begin a task."""
        self.frames.begin()
        self.before.begin()
        super().begin()

    def undo(self) -> None:
        """Undo the changes since the last task began."""
        self.frames.undo()
        self.before.undo()
        super().undo()

    def stored(self) -> bytes:
        """Return the state as bytes.

        Example:
            >>> FramedEdges.restored(FramedEdges(7).stored()).position
            7
        """
        return _joined(self.frames.stored(), self.before.stored())

    @classmethod
    def restored(cls, stored: bytes) -> Self:
        """Return the state that `stored` has written as bytes; raises as in the base class."""
        frames, before = _parted(stored)
        last = LastRows.restored(before)
        state = cls(last.position, FrameRows.restored(frames), last)
        for name, since in last.since.items():
            state.hold(name, since)
        return state

    def changes(self) -> bytes:
        """Return the changes of the last task as bytes."""
        return _joined(self.frames.changes(), self.before.changes())

    def put_changes(self, stored: bytes) -> bool:
        """Apply the changes of a task; returns and raises as in the base class."""
        frames, before = _parted(stored)
        return self.frames.put_changes(frames) and self.before.put_changes(before)

    @property
    def changed_bytes(self) -> int:
        """An estimate of the bytes that were written into the state since the last snapshot."""
        return self.frames.changed_bytes + self.before.changed_bytes

    @property
    def keys(self) -> KeyNumbers:
        """The keys of the edges."""
        return self.before.keys

    @property
    def count(self) -> int:
        """The number of keys of the edges."""
        return self.before.count

    @property
    def rows(self) -> int:
        """The number of rows: those of the frames, and the last row of each key."""
        return self.frames.rows + self.before.rows

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        return self.frames.nbytes + self.before.nbytes


def fold_framed_edges(frames: FrameOperator, edges: RowBeforeOperator, state: FramedEdges, rows: RowSource) -> None:
    """Take rows of the log into a state, without results; the change cannot be undone.

    Rows that the state already has change nothing.

    Args:
        frames: Computes the window functions of the rows; the last rows of keys keep the results.
        edges: Keeps the last rows.
        state: The state.
        rows: The rows.
    """
    later = np.flatnonzero(rows.offsets >= state.position)
    if not later.size:
        return
    _, framed = frames.step(state.frames, ExtendedRows(rows, later, {}))
    state.frames.merge()
    for each in framed:
        if (kept := edges.prepared(each)).count:
            edges.fold(state.before, kept)


def _joined(frames: bytes, before: bytes) -> bytes:
    return packed(_FORMAT, pa.table({_PARTS: pa.array([frames, before], pa.large_binary())}), {}, None)


def _parted(stored: bytes) -> tuple[bytes, bytes]:
    """Return what `_joined` was given; raises as `unpacked`, before any of the two is used."""
    rows, _ = unpacked(_FORMAT, stored)
    frames, before = rows[_PARTS].to_pylist()
    return frames, before
