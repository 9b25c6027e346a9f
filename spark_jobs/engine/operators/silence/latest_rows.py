"""The state of `SilentKeys` in one source partition: by key the time, offset and columns of the latest row."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from spark_jobs.engine.index import Ints
from spark_jobs.engine.operators.log_state import packed, unpacked
from spark_jobs.engine.operators.row_before.key_numbers import KeyNumbers
from spark_jobs.engine.operators.row_before.last_values import HeldValues, LastValues, grown
from spark_jobs.engine.operators.timed_state import ELEMENT, NEVER, TimedState

__all__ = ["LatestRows"]

_FORMAT = b"silence 1\n"
"""Names the format of the state as bytes, and its version: other bytes are no snapshot."""
_KEY, _COLUMN, _OFFSET, _TIME = "key.", "column.", "offset", "time"


class _ReplacedRows(NamedTuple):
    """The contents of some places before they were overwritten."""

    numbers: Ints
    times: Ints
    offsets: Ints
    columns: dict[str, HeldValues]
    watermark: int
    late: int


class LatestRows(TimedState):
    """The latest row of each key that is not silent yet, as of a position of the partition's log."""

    def __init__(self, position: int = 0) -> None:
        """Begin without rows, at a position of the log."""
        super().__init__(position)
        self.keys = KeyNumbers()
        self._times: Ints = np.empty(0, np.int64)
        """By number of the key: the event time of the row in epoch milliseconds, `NEVER` without a row."""
        self._offsets: Ints = np.empty(0, np.int64)
        self._columns: dict[str, LastValues] = {}
        self._soonest = NEVER
        """A lower bound for the times of all rows."""
        self._changes: list[_ReplacedRows] = []

    @property
    def columns(self) -> Mapping[str, LastValues]:
        """The columns by stored name."""
        return self._columns

    @property
    def earliest(self) -> int:
        """The earliest time of a row, `NEVER` where no key has a row."""
        return int(self._times.min(initial=NEVER))

    def begin(self) -> None:
        """Begin a task: the changes so far can be undone no more."""
        self._changes.clear()
        super().begin()
        self.tidy()

    def tidy(self) -> None:
        """Take the keys without rows out, where most keys are such."""
        kept = np.flatnonzero(self._times != NEVER)
        if 2 * kept.size < self.keys.count - 1_000:
            self._shrink(kept)

    def keep(self, names: Collection[str]) -> None:
        """Keep some columns alone, since the others get no values of further rows."""
        super().keep(names)
        self._columns = {name: column for name, column in self._columns.items() if name in names or name == ELEMENT}

    def undo(self) -> None:
        """Undo the changes since the last task began."""
        while self._changes:
            change = self._changes.pop()
            self._times[change.numbers], self._offsets[change.numbers] = change.times, change.offsets
            self.watermark, self.late = change.watermark, change.late
            for name, values in change.columns.items():
                self._columns[name].put_back(change.numbers, values)
        self._soonest = self.earliest
        super().undo()

    def times(self, numbers: Ints) -> Ints:
        """Return the times of the rows of some keys, `NEVER` for a key without a row."""
        self._grow()
        return self._times[numbers]

    def offsets(self, numbers: Ints) -> Ints:
        """Return the offsets of the rows of some keys."""
        return self._offsets[numbers]

    def taken(self, names: Iterable[str], numbers: Ints) -> dict[str, pa.Array]:
        """Return columns of the rows of some keys; columns that the state does not have are left out."""
        return {name: self._columns[name].take(numbers) for name in names if name in self._columns}

    def silent(self, latest: int) -> Ints:
        """Return the keys whose row has the time `latest` or an earlier time."""
        if latest < self._soonest:
            return np.empty(0, np.int64)
        found = np.flatnonzero(self._times <= latest)
        self._soonest = int(self._times[self._times > latest].min(initial=NEVER))
        return found

    def move(self, watermark: int, late: int, *, undoable: bool) -> None:
        """Set the watermark, and add events that were late."""
        if undoable:
            nothing = np.empty(0, np.int64)
            self._changes.append(_ReplacedRows(nothing, nothing, nothing, {}, self.watermark, self.late))
        self.watermark, self.late = watermark, self.late + late

    def put(
        self, numbers: Ints, times: Ints, offsets: Ints, columns: Mapping[str, pa.Array], *, undoable: bool
    ) -> None:
        """Set the rows of some distinct keys.

        Args:
            numbers: The keys, which `keys` has numbered.
            times: The event times; `NEVER` leaves a key without a row.
            offsets: The offsets.
            columns: The columns of the rows by stored name; new columns are added to the state.
            undoable: Whether `undo` can undo the change.
        """
        self._grow()
        for name, values in columns.items():
            if name not in self._columns:
                self._columns[name] = LastValues(values.type, self.keys.count)
            self._columns[name].grow(self.keys.count)
        if undoable:
            held = {name: self._columns[name].held(numbers) for name in columns}
            self._changes.append(
                _ReplacedRows(numbers, self._times[numbers], self._offsets[numbers], held, self.watermark, self.late)
            )
        self._times[numbers], self._offsets[numbers] = times, offsets
        for name, values in columns.items():
            self._columns[name].put(numbers, values)
        self._soonest = min(self._soonest, int(times.min(initial=NEVER)))
        self.changed += numbers.size

    def complete_rows(self, numbers: Ints, columns: Mapping[str, pa.Array]) -> None:
        """Set columns of rows that the state has already; the change cannot be undone."""
        self.put(numbers, self._times[numbers], self._offsets[numbers], columns, undoable=False)

    def forget(self, numbers: Ints, *, undoable: bool) -> None:
        """Leave some keys without a row."""
        self.put(numbers, np.full(numbers.size, NEVER), self._offsets[numbers], {}, undoable=undoable)

    def _grow(self) -> None:
        self._times = grown(self._times, self.keys.count, NEVER)
        self._offsets = grown(self._offsets, self.keys.count, 0)
        for column in self._columns.values():
            column.grow(self.keys.count)

    def _shrink(self, kept: Ints) -> None:
        """Keep some keys alone."""
        columns = self.keys.columns(kept) if kept.size else []
        times, offsets, values = self._times[kept], self._offsets[kept], self.taken(self._columns, kept)
        self.keys, self._columns = KeyNumbers(), {}
        self._times, self._offsets = np.empty(0, np.int64), np.empty(0, np.int64)
        if kept.size:
            self.put(self.keys.of(columns), times, offsets, values, undoable=False)

    def stored(self) -> bytes:
        """Return the state as bytes; the state that `restored` makes of them cannot undo changes."""
        self.changed = 0
        return self._packed(np.flatnonzero(self._times != NEVER), "zstd")

    @classmethod
    def restored(cls, stored: bytes) -> LatestRows:
        """Return the state that bytes hold.

        Raises:
            ValueError: The bytes are no whole snapshot of this version.
        """
        rows, about = unpacked(_FORMAT, stored)
        state = cls(about["position"])
        state._since = about["since"]
        state._put_stored(rows)
        state.watermark, state.late, state.changed = about["watermark"], about["late"], 0
        return state

    def changes(self) -> bytes:
        """Return the rows of the keys that the last task changed."""
        numbers = [np.empty(0, np.int64), *(change.numbers for change in self._changes)]
        return self._packed(np.unique(np.concatenate(numbers)), None)

    def put_changes(self, stored: bytes) -> bool:
        """Set the rows that a task has changed."""
        rows, about = unpacked(_FORMAT, stored)
        if not self.since.keys() <= about["since"].keys():
            return False
        self._put_stored(rows)
        self.watermark, self.late, self.position = about["watermark"], about["late"], about["position"]
        return True

    def _packed(self, numbers: Ints, compression: str | None) -> bytes:
        self._grow()
        keys = self.keys.columns(numbers) if numbers.size else []
        columns = {f"{_KEY}{place}": column for place, column in enumerate(keys)}
        columns |= {_OFFSET: pa.array(self._offsets[numbers]), _TIME: pa.array(self._times[numbers])}
        columns |= {f"{_COLUMN}{name}": values for name, values in self.taken(self._columns, numbers).items()}
        about = {
            "position": self.position,
            "since": dict(self.since),
            "watermark": self.watermark,
            "late": self.late,
        }
        return packed(_FORMAT, pa.table(columns), about, compression)

    def _put_stored(self, rows: pa.Table) -> None:
        if not rows.num_rows:
            return
        arrays = {name: rows[name].chunk(0) for name in rows.schema.names}
        numbers = self.keys.of([array for name, array in arrays.items() if name.startswith(_KEY)])
        columns = {name.removeprefix(_COLUMN): array for name, array in arrays.items() if name.startswith(_COLUMN)}
        self.put(numbers, arrays[_TIME].to_numpy(), arrays[_OFFSET].to_numpy(), columns, undoable=False)

    @property
    def changed_bytes(self) -> int:
        """About how many bytes were put since the last snapshot."""
        return self.changed * (16 + 8 * len(self._columns))

    @property
    def count(self) -> int:
        """The number of keys."""
        return self.keys.count

    @property
    def rows(self) -> int:
        """The number of keys that have a row."""
        return int(np.count_nonzero(self._times != NEVER))

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        columns = sum(each.nbytes for each in self._columns.values())
        return int(self.keys.nbytes + self._times.nbytes + self._offsets.nbytes + columns)
