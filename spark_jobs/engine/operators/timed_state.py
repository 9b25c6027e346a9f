"""The base of states of event-time computations, with the watermark of their source partition."""

from __future__ import annotations

from typing import ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_jobs.engine.index import Ints
from spark_jobs.engine.operators.log_state import LogState, packed, unpacked
from spark_jobs.engine.operators.row_before.key_numbers import KeyNumbers

__all__ = ["BEGINNING", "ELEMENT", "NEVER", "NO_MARKS", "PassedTimes", "TimedState"]

BEGINNING = -(1 << 60)
"""The watermark before the first event."""
ELEMENT = "#"
"""The name of the column with the number of an event among the elements of its record."""
NEVER: int = np.iinfo(np.int64).max
"""The time of a row that does not exist."""
NO_MARKS: tuple[Ints, Ints] = (np.empty(0, np.int64), np.empty(0, np.int64))


class PassedTimes(NamedTuple):
    """The watermark after each of some events of a partition, and which of the events are late."""

    after: Ints
    """The watermark after each event, in epoch milliseconds; never descends."""
    late: NDArray[np.bool_]
    """Whether the time of each event is earlier than the watermark before the event."""


class _Missed(NamedTuple):
    """Events that a step left out."""

    places: Ints
    """Two rows of numbers: the position of each event, and the number of the event within its record."""
    future: NDArray[np.bool_]
    """Whether the event was left out because its time is too far ahead."""


class TimedState(LogState):
    """A state of rows that wait for the watermark of their partition, by key."""

    form: ClassVar[bytes]
    """The first bytes of each snapshot, which name the format and its version."""

    def __init__(self, position: int = 0) -> None:
        """Begin at a position of the log."""
        super().__init__(position)
        self.keys = KeyNumbers()
        self.watermark = BEGINNING
        """The time up to which the partition's events are assumed to be complete, in epoch milliseconds."""
        self.late = 0
        """The number of events so far that were left out: late, too far in the future, or without an event time."""
        self.marks = NO_MARKS
        """The marks of the clock that a fold of the log must apply: their positions, ascending, and their watermarks.

        A mark sets the watermark while the partition is idle. A mark takes effect before the event at its position.
        """
        self.missed: list[_Missed] = []
        """The events that the present task has left out."""
        self._moves: list[tuple[int, int]] = []
        """For each change that can be undone: the watermark and the number of late events before the change."""

    @property
    def earliest(self) -> int:
        """The earliest time of a row that waits; `NEVER` if no row waits."""
        raise NotImplementedError

    def move(self, watermark: int, late: int, *, undoable: bool) -> None:
        """Set the watermark, and add to the number of late events."""
        if undoable:
            self._moves.append((self.watermark, self.late))
        self.watermark, self.late = watermark, self.late + late

    def tidy(self) -> None:
        """Remove the keys without rows, if most keys have none; must only be called between two tasks."""
        raise NotImplementedError

    def passed(self, times: Ints, offsets: Ints, delay_ms: int) -> PassedTimes:
        """Return how events and the marks between them move the watermark; the state does not change.

        Args:
            times: The event times in epoch milliseconds; at least one.
            offsets: The offsets, ascending.
            delay_ms: The number of milliseconds by which the watermark is earlier than the latest event time.
        """
        marked = self._marked(offsets)
        after = np.maximum.accumulate(np.maximum(np.maximum(times - delay_ms, marked), self.watermark))
        before = np.maximum(np.concatenate([[self.watermark], after[:-1]]), marked)
        return PassedTimes(after, times < before)

    def miss(self, offsets: Ints, number: Ints | None, future: NDArray[np.bool_]) -> None:
        """Note events that the task leaves out.

        Args:
            offsets: The positions of the events.
            number: The number of each event within its record; None if a record is one event.
            future: Whether the event time of each event is too far ahead.
        """
        places = np.stack([offsets, np.zeros(offsets.size, np.int64) if number is None else number])
        self.missed.append(_Missed(places, future))

    def begin(self) -> None:
        """Begin a task: earlier changes can no longer be undone."""
        self.missed.clear()
        self._moves.clear()
        super().begin()

    def undo(self) -> None:
        """Undo the changes since the last task began."""
        self.missed.clear()
        if self._moves:
            self.watermark, self.late = self._moves[0]
            self._moves.clear()
        super().undo()

    # -- the state as bytes --------------------------------------------------------------------------------------------

    def stored(self) -> bytes:
        """Return the state as bytes. A state that is restored from these bytes cannot undo the last task's changes."""
        self.changed = 0
        return packed(self.form, self._packed_rows(self._used()), self._about, "zstd")

    @classmethod
    def restored(cls, stored: bytes) -> Self:
        """Return the state that `stored` has written as bytes.

        Raises:
            ValueError: The bytes are no complete snapshot of this version.
        """
        rows, about = unpacked(cls.form, stored)
        state = cls(about["position"])
        state._since = about["since"]
        state._put_rows(rows)
        state.watermark, state.late, state.changed = about["watermark"], about["late"], 0
        return state

    def changes(self) -> bytes:
        """Return the rows of the keys that the last task changed, as bytes for `put_changes`."""
        return packed(self.form, self._packed_rows(self._replaced), self._about, None)

    def put_changes(self, stored: bytes) -> bool:
        """Set the rows of the keys that a task changed; returns and raises as in the base class."""
        rows, about = unpacked(self.form, stored)
        if not self.since.keys() <= about["since"].keys():
            return False
        self._put_rows(rows)
        self.watermark, self.late, self.position = about["watermark"], about["late"], about["position"]
        return True

    @property
    def _about(self) -> dict[str, object]:
        return {"position": self.position, "since": dict(self.since), "watermark": self.watermark, "late": self.late}

    def _used(self) -> Ints:
        """Return the numbers of the keys that have rows, ascending."""
        raise NotImplementedError

    @property
    def _replaced(self) -> Ints:
        """The numbers of the keys that the last task changed, ascending."""
        raise NotImplementedError

    def _packed_rows(self, keys: Ints) -> pa.Table:
        """Return the rows of some keys for `_put_rows`."""
        raise NotImplementedError

    def _put_rows(self, rows: pa.Table) -> None:
        """Set rows in place of all rows of their keys; the change cannot be undone."""
        raise NotImplementedError

    @property
    def count(self) -> int:
        """The number of keys."""
        return self.keys.count

    def _marked(self, offsets: Ints) -> Ints:
        """Return for each event the watermark that the marks before the event have set; `BEGINNING` without a mark."""
        positions, watermarks = self.marks
        place = np.searchsorted(positions, offsets, side="right")
        highest: Ints = np.concatenate([[BEGINNING], np.maximum.accumulate(watermarks)])
        return highest[place]
