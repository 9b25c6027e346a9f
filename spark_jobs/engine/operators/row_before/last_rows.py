"""The state of `RowBefore` in one source partition: the offset and the columns of each key's last row."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_jobs.engine.index import Ints
from spark_jobs.engine.operators.log_state import LogState, packed, unpacked
from spark_jobs.engine.operators.partition_clock import PartitionClock
from spark_jobs.engine.operators.row_before.key_numbers import KeyNumbers
from spark_jobs.engine.operators.row_before.last_values import HeldValues, LastValues, grown
from spark_jobs.engine.rows.arrays import distinct_values
from spark_jobs.engine.rows.extremes import is_extremes

__all__ = ["NO_ROW", "LastRows"]

_FORMAT = b"row-before 1\n"
"""The first bytes of each snapshot, which name the format and its version."""
_KEY, _COLUMN, _OFFSET, _MINUTE = "key.", "column.", "offset", "minute"
_MINUTE_MS = 60_000
_UNKNOWN = -1
"""Replaces an unknown minute, as in a snapshot of an earlier version. A row with this minute is never forgotten."""
_LONGEST = 1 << 30
_LOOKS = 64
"""The state looks for forgotten keys this many times within `LastRows.kept_minutes`."""
_LONGEST_LOOK = 43_200
"""If `kept_minutes` is longer than this, the state looks `_LOOKS` times within this number of minutes."""
NO_ROW = -1
"""The offset of a key without a row, such as a key whose row was removed, or whose only row was undone."""


class _Overwritten(NamedTuple):
    """The contents of the rows of some keys before they were overwritten."""

    numbers: Ints
    offsets: Ints
    minutes: NDArray[np.int32]
    clock: PartitionClock
    columns: dict[str, HeldValues]


class LastRows(LogState):
    """The last row of each key, at a position of the partition's log."""

    def __init__(self, position: int = 0) -> None:
        """Begin without rows, at a position of the log."""
        super().__init__(position)
        self.keys = KeyNumbers()
        self._offsets: Ints = np.empty(0, np.int64)
        self._minutes = np.empty(0, np.int32)
        """For each key, by its number: the time of the clock when its last row came, in minutes since 1970."""
        self._columns: dict[str, LastValues] = {}
        self.clock = PartitionClock()
        """The clock of the partition after all rows so far, by their record times."""
        self.kept_minutes = _LONGEST
        """For how many minutes after its last row a key stays known. The operator sets the value."""
        self._looked = _UNKNOWN
        """The time of the clock, in minutes, when the state last looked for forgotten keys."""
        self._changes: list[_Overwritten] = []
        self.ready: frozenset[str] = frozenset()
        """While rows are read again (`rewind`): the columns of extremes that already have these rows."""
        self._before_rewind: tuple[NDArray[np.int32], NDArray[np.bool_]] | None = None
        """While rows are read again: the minute of each key as of before `rewind`, and whether the key had a row."""
        self._again = PartitionClock()
        """While rows are read again: the clock after these rows."""

    @property
    def columns(self) -> Mapping[str, LastValues]:
        """The columns by stored name."""
        return self._columns

    def begin(self) -> None:
        """Begin a task: earlier changes can no longer be undone.

        If more than half of the keys are forgotten, all forgotten keys are removed.
        """
        self._settle()
        self._changes.clear()
        super().begin()
        now = _minute(self.clock)
        if now - self._looked > min(self.kept_minutes, _LONGEST_LOOK) // _LOOKS:
            self._looked = now
            kept = self.present()
            if 2 * kept.size < self.keys.count:
                self._shrink(kept)

    def undo(self) -> None:
        """Undo the changes since the last task began."""
        while self._changes:
            change = self._changes.pop()
            self._offsets[change.numbers] = change.offsets
            self._minutes[change.numbers], self.clock = change.minutes, change.clock
            for name, column in self._columns.items():
                if name in change.columns:
                    column.put_back(change.numbers, change.columns[name])
        super().undo()

    def changed_numbers(self) -> Ints:
        """Return the numbers of the keys that had rows in the last task, ascending."""
        return distinct_values(np.concatenate([np.empty(0, np.int64), *(change.numbers for change in self._changes)]))

    def rewind(self, position: int) -> None:
        """Prepare the state to read rows again from a position on, because a column lacks the values of these rows.

        A column of extremes that lacks some of these rows is removed, and is built again from all rows that are read
        again, since extremes must be added in the order of the rows. Other columns of extremes do not change. While the
        rows are read again, these rows set the minutes of their keys; afterwards, the earlier minutes are restored.
        """
        extremes = filter(is_extremes, self._columns)
        for name in [name for name in extremes if self._since.get(name, position) > position]:
            del self._columns[name], self._since[name]
        self.ready = frozenset(filter(is_extremes, self._columns))
        self._again = PartitionClock()
        self._before_rewind = self._minutes, self._offsets != NO_ROW
        self._minutes = np.full(self._minutes.size, _UNKNOWN, np.int32)

    def _settle(self) -> None:
        """End the second reading of rows (`rewind`): restore the minutes of the keys that had a row before."""
        if self._before_rewind is not None:
            minutes, had_row = self._before_rewind
            known = np.flatnonzero(had_row)
            self._minutes[known] = minutes[known]
            self.ready, self._before_rewind = frozenset(), None

    def clocks(self, times_ms: Ints, offsets: Ints) -> tuple[NDArray[np.int32], PartitionClock]:
        """Return the time of the clock after each of some rows, in minutes, and the clock after the last row.

        For rows that are read again, a new clock starts. At each row, the new clock is never later than the old clock
        was at the first reading, so a key that was forgotten stays forgotten.

        Args:
            times_ms: The record times in epoch milliseconds.
            offsets: The offsets, which must ascend; either all or none of them are below the state's position.
        """
        if offsets.size and offsets[0] < self.position:
            self._again, again = self._again.after(offsets, times_ms)
            return _minutes(np.where(again < 0, np.minimum(times_ms, self.clock.time), again)), self.clock
        self._settle()
        clock, each = self.clock.after(offsets, times_ms)
        return _minutes(each), clock

    def forgotten(self, before: NDArray[np.int32], now: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Tell whether each key is forgotten in the minute `now`, if its last row came in the minute `before`."""
        gone: NDArray[np.bool_] = (before != _UNKNOWN) & (now - before > self.kept_minutes)
        return gone

    def offsets(self, numbers: Ints, minutes: NDArray[np.int32]) -> Ints:
        """Return the offset of the last row of each of some keys; `NO_ROW` for a key without a row.

        Args:
            numbers: The numbers of the keys.
            minutes: For each key, the time of the clock in minutes; a key that is forgotten by then has no row.
        """
        self._grow()
        kept: Ints = np.where(self.forgotten(self._minutes[numbers], minutes), NO_ROW, self._offsets[numbers])
        return kept

    def _grow(self) -> None:
        self._offsets = grown(self._offsets, self.keys.count, NO_ROW)
        self._minutes = grown(self._minutes, self.keys.count, _UNKNOWN)

    def present(self) -> Ints:
        """Return the numbers of the keys that have a row and are not forgotten, ascending."""
        return self._present(np.arange(self.keys.count))

    def _present(self, numbers: Ints) -> Ints:
        """Return those of some keys that have a row and are not forgotten."""
        now = np.full(numbers.size, _minute(self.clock), np.int32)
        present: Ints = numbers[self.offsets(numbers, now) != NO_ROW]
        return present

    def _shrink(self, kept: Ints) -> None:
        """Remove all keys but those in `kept`."""
        keys, before = KeyNumbers(), self._minutes[kept]
        numbers, offsets = keys.of(self.keys.columns(kept)) if kept.size else kept, self._offsets[kept]
        columns = {name: (column.kind, column.take(kept)) for name, column in self._columns.items()}
        self.keys = keys
        self._offsets, self._minutes = np.full(kept.size, NO_ROW), np.full(kept.size, _UNKNOWN, np.int32)
        self._offsets[numbers], self._minutes[numbers] = offsets, before
        self._columns = {name: LastValues(kind, kept.size) for name, (kind, _) in columns.items()}
        for name, (_, values) in columns.items():
            self._columns[name].put(numbers, values)

    def values(self, name: str, numbers: Ints) -> pa.Array | None:
        """Return a column of the last row of some keys, NULL for a key without a row; None if the column is missing."""
        if (column := self._columns.get(name)) is None:
            return None
        self._grow()
        column.grow(self.keys.count)
        return column.take(numbers).take(pa.array(np.arange(numbers.size), mask=self._offsets[numbers] == NO_ROW))

    def taken(self, names: Iterable[str], numbers: Ints) -> dict[str, pa.Array]:
        """Return columns of the last row of some keys; columns that the state does not have are left out."""
        return {name: self._columns[name].take(numbers) for name in names if name in self._columns}

    def put(
        self,
        numbers: Ints,
        offsets: Ints,
        minutes: NDArray[np.int32],
        columns: Mapping[str, pa.Array],
        clock: PartitionClock,
        *,
        undoable: bool = True,
    ) -> None:
        """Set the last row of some distinct keys.

        Args:
            numbers: The numbers of the keys.
            offsets: The offsets of the rows.
            minutes: The time of the clock when each row came, in minutes.
            columns: Columns of the rows by stored name; new columns are added to the state.
            clock: The clock after all of the rows.
            undoable: Whether `undo` can undo the change.
        """
        self.torn = True
        count = self.keys.count
        self._grow()
        for name, values in columns.items():
            if name not in self._columns:
                self._columns[name] = LastValues(values.type, count)
        for column in self._columns.values():
            column.grow(count)
        if undoable:
            held = {name: column.held(numbers) for name, column in self._columns.items() if name in columns}
            before = _Overwritten(numbers, self._offsets[numbers], self._minutes[numbers], self.clock, held)
            self._changes.append(before)
        self._offsets[numbers], self._minutes[numbers] = offsets, minutes
        self.clock = clock
        for name, values in columns.items():
            self._columns[name].put(numbers, values)
        self.changed += int(numbers.size)
        self.torn = False

    def keep(self, names: Collection[str]) -> None:
        """Remove all columns but those in `names`; must only be called between two tasks."""
        self._columns = {name: column for name, column in self._columns.items() if name in names}
        super().keep(names)

    def stored(self) -> bytes:
        """Return the state as bytes.

        Example:
            >>> LastRows.restored(LastRows(7).stored()).position
            7
        """
        return self._packed(self.present(), "zstd")

    @classmethod
    def restored(cls, stored: bytes) -> LastRows:
        """Return the state that `stored` has written as bytes; raises as in the base class."""
        rows, about = unpacked(_FORMAT, stored)
        state = cls(about["position"])
        for name, since in about["since"].items():
            state.hold(name, since)
        state._put_stored(rows)
        state.clock, state.changed = _clock(about), 0
        return state

    def changes(self) -> bytes:
        """Return, as bytes, the last rows of the keys that had rows in the last task.

        A removed row has the offset `NO_ROW`.
        """
        return self._packed(self.changed_numbers(), None)

    def put_changes(self, stored: bytes) -> bool:
        """Set the last rows that a task has changed; returns and raises as in the base class."""
        rows, about = unpacked(_FORMAT, stored)
        if not self.since.keys() <= about["since"].keys():
            return False
        self._put_stored(rows)
        self.clock = _clock(about)
        self.position = about["position"]
        return True

    def _packed(self, numbers: Ints, compression: str | None) -> bytes:
        self._grow()
        columns = {f"{_KEY}{place}": column for place, column in enumerate(self.keys.columns(numbers))}
        columns |= {_OFFSET: pa.array(self._offsets[numbers]), _MINUTE: pa.array(self._minutes[numbers])}
        columns |= {f"{_COLUMN}{name}": values for name, values in self.taken(self.columns, numbers).items()}
        about = {"position": self.position, "since": dict(self.since), "clock": self.clock}
        return packed(_FORMAT, pa.table(columns), about, compression)

    def _put_stored(self, rows: pa.Table) -> None:
        if not rows.num_rows:
            return
        names = rows.schema.names
        arrays = {name: rows[name].chunk(0) for name in names}
        numbers = self.keys.of([arrays[name] for name in names if name.startswith(_KEY)])
        columns = {name.removeprefix(_COLUMN): arrays[name] for name in names if name.startswith(_COLUMN)}
        minutes = arrays[_MINUTE].to_numpy() if _MINUTE in arrays else np.full(numbers.size, _UNKNOWN, np.int32)
        self.put(numbers, arrays[_OFFSET].to_numpy(), minutes, columns, self.clock, undoable=False)

    @property
    def changed_bytes(self) -> int:
        """An estimate of the bytes that were written into the state since the last snapshot."""
        return self.changed * (8 + 8 * len(self._columns))

    @property
    def count(self) -> int:
        """The number of keys."""
        return self.keys.count

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        columns = sum(each.nbytes for each in self._columns.values())
        return int(self.keys.nbytes + self._offsets.nbytes + self._minutes.nbytes + columns)


def _minutes(times_ms: Ints) -> NDArray[np.int32]:
    """Return times of the clock in minutes; `_UNKNOWN` while too few rows have come to set the clock."""
    return np.where(times_ms < 0, _UNKNOWN, np.minimum(times_ms // _MINUTE_MS, _LONGEST)).astype(np.int32)


def _minute(clock: PartitionClock) -> int:
    return int(_minutes(np.array([clock.time]))[0])


def _clock(about: Mapping[str, Any]) -> PartitionClock:
    """Return the clock of a stored state; a new clock for a snapshot of an earlier version, which has no clock."""
    time, recent = about.get("clock", PartitionClock())
    return PartitionClock(time, tuple((offset, at) for offset, at in recent))
