"""States of edges, silences and stays over frames: the rows of the frames, and the state of the node above them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, ClassVar, Generic, Self, TypeVar, cast

import numpy as np
import pyarrow as pa

from spark_jobs.engine.operators.extended_rows import ExtendedRows
from spark_jobs.engine.operators.frames.frame_rows import FrameRows
from spark_jobs.engine.operators.frames.operator import FrameOperator
from spark_jobs.engine.operators.lasting.pending_rises import PendingRises
from spark_jobs.engine.operators.log_state import LogState, packed, unpacked
from spark_jobs.engine.operators.row_before.key_numbers import KeyNumbers
from spark_jobs.engine.operators.row_before.last_rows import LastRows
from spark_jobs.engine.operators.silence.latest_rows import LatestRows
from spark_jobs.engine.operators.timed_state import TimedState
from spark_jobs.engine.rows.row_source import RowSource

__all__ = ["FramedEdges", "FramedSilences", "FramedState", "FramedStays", "fold_framed", "missed_events", "timed_state"]

_PARTS = "parts"

Above = TypeVar("Above", bound=LastRows | TimedState)


class FramedState(LogState, Generic[Above]):
    """Two states at the same position of the partition's log.

    All queries over the computation read the same columns (`RowBefore.reads`, `Frames.apart`). So the state never lacks
    a column of its own rows.
    """

    form: ClassVar[bytes]
    """The first bytes of each snapshot, which name the format and its version."""
    kind: type[Above]
    """The class of the state above the frames."""

    def __init__(self, position: int = 0, frames: FrameRows | None = None, above: Above | None = None) -> None:
        """Begin without rows at a position of the log, or take two states at this position."""
        self.frames = frames or FrameRows(position)
        self.above: Above = above or self.kind(position)
        super().__init__(position)

    @property
    def position(self) -> int:
        """The position of the first event that is not in the state."""
        return self.above.position

    @position.setter
    def position(self, position: int) -> None:
        self.frames.position = self.above.position = position

    @property
    def torn(self) -> bool:
        """Whether a change failed midway, so that the state must not be used any more."""
        return self.frames.torn or self.above.torn

    @torn.setter
    def torn(self, torn: bool) -> None:
        self.frames.torn = self.above.torn = torn

    @property
    def changed(self) -> int:
        """The number of rows that were written into the state since the last snapshot."""
        return self.frames.changed + self.above.changed

    @changed.setter
    def changed(self, changed: int) -> None:
        self.frames.changed = self.above.changed = changed

    def hold(self, name: str, since: int) -> None:
        """Note that the state has a column from a position on."""
        super().hold(name, since)
        self.frames.hold(name, since)
        self.above.hold(name, since)

    def keep(self, names: Collection[str]) -> None:
        """Remove all columns but those in `names`; must only be called between two tasks."""
        super().keep(names)
        self.frames.keep(names)
        self.above.keep(names)

    def rewind(self, position: int) -> None:
        """Prepare the state to read the log from a position on.

        If the state lacks earlier rows, since a query that begins earlier was resumed, the state begins anew there.
        """
        if position < self.position:
            frames, self.frames, self.above = self.frames, FrameRows(position), self.kind(position)
            self.frames.reach, self.frames.visible = frames.reach, frames.visible

    def begin(self) -> None:
        """Begin a task."""
        self.frames.begin()
        self.above.begin()
        super().begin()

    def undo(self) -> None:
        """Undo the changes since the last task began."""
        self.frames.undo()
        self.above.undo()
        super().undo()

    def stored(self) -> bytes:
        """Return the state as bytes.

        Example:
            >>> FramedEdges.restored(FramedEdges(7).stored()).position
            7
        """
        return self._joined(self.frames.stored(), self.above.stored())

    @classmethod
    def restored(cls, stored: bytes) -> Self:
        """Return the state that `stored` has written as bytes; raises as in the base class."""
        frames, own = cls._parted(stored)
        above = cast(Above, cls.kind.restored(own))
        state = cls(above.position, FrameRows.restored(frames), above)
        for name, since in above.since.items():
            state.hold(name, since)
        return state

    def changes(self) -> bytes:
        """Return the changes of the last task as bytes."""
        return self._joined(self.frames.changes(), self.above.changes())

    def put_changes(self, stored: bytes) -> bool:
        """Apply the changes of a task; returns and raises as in the base class."""
        frames, own = self._parted(stored)
        return self.frames.put_changes(frames) and self.above.put_changes(own)

    def _joined(self, frames: bytes, above: bytes) -> bytes:
        return packed(self.form, pa.table({_PARTS: pa.array([frames, above], pa.large_binary())}), {}, None)

    @classmethod
    def _parted(cls, stored: bytes) -> tuple[bytes, bytes]:
        """Return what `_joined` was given; raises as `unpacked`, before any of the two is used."""
        rows, _ = unpacked(cls.form, stored)
        frames, above = rows[_PARTS].to_pylist()
        return frames, above

    @property
    def changed_bytes(self) -> int:
        """An estimate of the bytes that were written into the state since the last snapshot."""
        return self.frames.changed_bytes + self.above.changed_bytes

    @property
    def keys(self) -> KeyNumbers:
        """The keys of the node above the frames."""
        return self.above.keys

    @property
    def count(self) -> int:
        """The number of keys of the node above the frames."""
        return self.above.count

    @property
    def rows(self) -> int:
        """The number of rows of both states."""
        return self.frames.rows + self.above.rows

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        return self.frames.nbytes + self.above.nbytes


class FramedEdges(FramedState[LastRows]):
    """The state of edges over frames."""

    form = b"framed-edges 1\n"
    kind = LastRows


class FramedSilences(FramedState[LatestRows]):
    """The state of silences over frames."""

    form = b"framed-silences 1\n"
    kind = LatestRows


class FramedStays(FramedState[PendingRises]):
    """The state of stays of an interval over frames."""

    form = b"framed-stays 1\n"
    kind = PendingRises


def timed_state(state: LogState | None) -> TimedState | None:
    """Return the state of the rows that wait for the watermark; None if a state has no such rows."""
    own = state.above if isinstance(state, FramedState) else state
    return own if isinstance(own, TimedState) else None


def missed_events(states: Iterable[LogState]) -> tuple[int, int]:
    """Return the number of late events and of future events of a task.

    An event that several states have left out is counted once.
    """
    missed = [each for state in states if (timed := timed_state(state)) is not None for each in timed.missed]
    if not missed:
        return 0, 0
    places, firsts = np.unique(np.concatenate([each.places for each in missed], axis=1), axis=1, return_index=True)
    future = int(np.count_nonzero(np.concatenate([each.future for each in missed])[firsts]))
    return places.shape[1] - future, future


def fold_framed(
    frames: FrameOperator, state: FramedState[Any], rows: RowSource, fold: Callable[[RowSource], None]
) -> None:
    """Take rows of the log into a state, without results; the change cannot be undone.

    Rows that the state already has change nothing.

    Args:
        frames: Computes the window functions of the rows.
        state: The state.
        rows: The rows.
        fold: Takes the rows with their window functions into the state above the frames.
    """
    later = np.flatnonzero(rows.offsets >= state.position)
    if not later.size:
        return
    _, framed = frames.step(state.frames, ExtendedRows(rows, later, {}))
    state.frames.merge()
    for each in framed:
        fold(each)
