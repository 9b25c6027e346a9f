"""The state of frames in one source partition: the rows that may still be in a frame of a later row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from spark_jobs.engine.index import Ints
from spark_jobs.engine.operators.frames.frame_part import FramePart
from spark_jobs.engine.operators.frames.key_rows import lateness
from spark_jobs.engine.operators.log_state import LogState, packed, unpacked
from spark_jobs.engine.operators.partition_clock import PartitionClock
from spark_jobs.engine.operators.row_before.key_numbers import KeyNumbers
from spark_jobs.engine.rows.arrays import distinct_values

__all__ = ["FrameRows", "Reach"]

_FORMAT = b"frame-rows 1\n"
"""The first bytes of each snapshot, which name the format and its version."""
_KEY, _COLUMN = "key.", "column."
_RATIO = 4
"""The last two parts are merged unless the earlier one has more than `_RATIO` times the rows of the later one."""


class Reach:
    """The reach of the longest frames: how far back from its row a frame may begin."""

    def __init__(self, rows: int = 0, milliseconds: int | None = None) -> None:
        """Take the reach.

        Args:
            rows: The largest number of rows of a frame before its own row.
            milliseconds: The largest length of a frame by time; None if no frame is by time.
        """
        self.rows = rows
        self.milliseconds = milliseconds


class FrameRows(LogState):
    """The rows of each key, at a position of the partition's log."""

    def __init__(self, position: int = 0) -> None:
        """Begin without rows, at a position of the log."""
        super().__init__(position)
        self.keys = KeyNumbers()
        self.parts: tuple[FramePart, ...] = ()
        """The rows. All rows of a part came before those of the next part."""
        self.clock = PartitionClock()
        self.reach: Reach | None = None
        """The reach of the window functions that queries use now. Rows that are farther back are forgotten.

        None while the reach is unknown; then no row is forgotten.
        """
        self.visible: Mapping[str, int] = {}
        """Stored name of a window function's column → the offset of the first row that the function's frames may
        contain.

        The offset is 0 for a window function that is missing here.
        """
        self._settled: tuple[tuple[FramePart, ...], PartitionClock] = self.parts, self.clock
        """The rows and the clock when the task began."""
        self._has_dropped = False
        """Whether rows were forgotten since the state last looked for keys without rows."""

    def add(self, part: FramePart, clock: PartitionClock) -> None:
        """Add rows that came after all rows of the state, and set the clock after them."""
        if part.size:
            self.parts = (*self.parts, part)
            self.changed += part.size
        self.clock = clock

    def of_keys(self, keys: Ints) -> list[FramePart]:
        """Return the rows of some keys; the numbers of the keys must ascend."""
        return [part.of_keys(keys) for part in self.parts]

    def begin(self) -> None:
        """Begin a task: `undo` will keep the rows that the state has now.

        Parts are merged, and rows out of reach are forgotten. If most keys have no row, the keys without rows are
        forgotten.
        """
        self.merge()
        if self._has_dropped:
            self._has_dropped = False
            self._forget_keys()
        self._settled = self.parts, self.clock
        super().begin()

    def merge(self) -> None:
        """Merge parts, and forget rows out of reach.

        Must not be called between a step of a task and `changes`. `changes` takes all parts after those from before the
        task, so the task's rows must not be merged with older rows.
        """
        parts = [*self.parts]
        while len(parts) > 1 and parts[-2].size <= parts[-1].size * _RATIO:
            merged = FramePart.joined(parts[-2:])
            parts[-2:] = [merged if len(parts) > 2 else self._within_reach(merged)]
        self.parts = tuple(parts)

    def undo(self) -> None:
        """Remove the rows that were added since the last task began."""
        self.parts, self.clock = self._settled
        super().undo()

    def rewind(self, position: int) -> None:
        """Remove the rows from a position on. They will be read again, with more columns or for a longer reach."""
        if position < self.position:
            kept = (part.take(np.flatnonzero(part.offsets < position)) for part in self.parts)
            self.parts = tuple(part for part in kept if part.size)
            self.position = position
            self.clock = self.clock.without(position)

    def _within_reach(self, part: FramePart) -> FramePart:
        """Return the rows that may still be in a frame of a later row; `part` must have all rows of the state."""
        if self.reach is None:
            return part
        ends = np.searchsorted(part.numbers, part.numbers, side="right")
        kept = ends - np.arange(part.size) <= self.reach.rows
        if (milliseconds := self.reach.milliseconds) is not None:
            kept |= part.times >= self.clock.time - milliseconds - lateness(milliseconds)
        if kept.all():
            return part
        self._has_dropped = True
        return part.take(np.flatnonzero(kept))

    def _forget_keys(self) -> None:
        """If most keys have no row, forget the keys without rows, and give the other keys new numbers."""
        kept = distinct_values(np.concatenate([np.empty(0, np.int64), *(part.numbers for part in self.parts)]))
        if 2 * kept.size >= self.keys.count:
            return
        keys = KeyNumbers()
        numbers = keys.of(self.keys.columns(kept)) if kept.size else kept
        self.parts = tuple(part.numbered(numbers[np.searchsorted(kept, part.numbers)]) for part in self.parts)
        self.keys = keys

    def stored(self) -> bytes:
        """Return the state as bytes."""
        return self._packed(self.parts, "zstd")

    @classmethod
    def restored(cls, stored: bytes) -> FrameRows:
        """Return the state that `stored` has written as bytes; raises as in the base class."""
        rows, about = unpacked(_FORMAT, stored)
        state = cls(about["position"])
        for name, since in about["since"].items():
            state.hold(name, since)
        state._put_stored(rows, about)
        state.changed = 0
        state.begin()
        state.complete = True
        return state

    def changes(self) -> bytes:
        """Return the rows that the last task added, as bytes."""
        return self._packed(self.parts[len(self._settled[0]) :], None)

    def put_changes(self, stored: bytes) -> bool:
        """Add those rows of a task that the state does not have yet; returns and raises as in the base class."""
        rows, about = unpacked(_FORMAT, stored)
        if not self.since.keys() <= about["since"].keys():
            return False
        self._put_stored(rows, about)
        self.position = about["position"]
        return True

    def _packed(self, parts: tuple[FramePart, ...], compression: str | None) -> bytes:
        about = {"position": self.position, "since": dict(self.since), "clock": self.clock}
        columns: dict[str, pa.Array] = {}
        if parts:
            part = FramePart.joined(parts)
            columns = {f"{_KEY}{place}": column for place, column in enumerate(self.keys.columns(part.numbers))}
            columns |= {"offset": pa.array(part.offsets), "time": pa.array(part.times)}
            columns |= {f"{_COLUMN}{name}": column for name, column in part.columns.items()}
        return packed(_FORMAT, pa.table(columns), about, compression)

    def _put_stored(self, rows: pa.Table, about: Mapping[str, Any]) -> None:
        time, recent = about["clock"]
        self.clock = PartitionClock(time, tuple((offset, at) for offset, at in recent))
        if not rows.num_rows:
            return
        arrays = {name: rows[name].chunk(0) for name in rows.schema.names}
        numbers = self.keys.of([column for name, column in arrays.items() if name.startswith(_KEY)])
        columns = {name.removeprefix(_COLUMN): each for name, each in arrays.items() if name.startswith(_COLUMN)}
        offsets, times = arrays["offset"].to_numpy(), arrays["time"].to_numpy()
        part = FramePart.of(numbers, offsets, times, columns)
        self.add(part.take(np.flatnonzero(part.offsets >= self.position)) if self.parts else part, self.clock)

    @property
    def changed_bytes(self) -> int:
        """An estimate of the bytes that were added to the state since the last snapshot."""
        return self.changed * (24 + 8 * max((len(part.columns) for part in self.parts), default=0))

    @property
    def count(self) -> int:
        """The number of keys, including keys without rows that are not forgotten yet."""
        return self.keys.count

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(part.size for part in self.parts)

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        return self.keys.nbytes + sum(part.nbytes for part in self.parts)
