"""The state of `RowBefore` in one source partition: by key, the offset and the columns of its last row."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from spark_jobs.engine.index import Ints
from spark_jobs.engine.operators.log_state import LogState, packed, unpacked
from spark_jobs.engine.operators.row_before.key_numbers import KeyNumbers
from spark_jobs.engine.operators.row_before.last_values import HeldValues, LastValues, grown

__all__ = ["NO_ROW", "LastRows"]

_FORMAT = b"row-before 1\n"
"""Names the format of the state as bytes, and its version: other bytes are no snapshot."""
_KEY, _COLUMN, _OFFSET = "key.", "column.", "offset"
NO_ROW = -1
"""The offset of a key that has no row: the row was removed, or was put by a task that was undone."""


class _Overwritten(NamedTuple):
    """The contents of some places before they were overwritten."""

    numbers: Ints
    offsets: Ints
    columns: dict[str, HeldValues]


class LastRows(LogState):
    """The last row of each key, as of a position of the partition's log."""

    def __init__(self, position: int = 0) -> None:
        """Begin without rows, at a position of the log."""
        super().__init__(position)
        self.keys = KeyNumbers()
        self._offsets: Ints = np.empty(0, np.int64)
        self._columns: dict[str, LastValues] = {}
        self._changes: list[_Overwritten] = []

    @property
    def columns(self) -> Mapping[str, LastValues]:
        """The columns by stored name."""
        return self._columns

    def begin(self) -> None:
        """Begin a task: the changes so far can be undone no more."""
        self._changes.clear()
        super().begin()

    def undo(self) -> None:
        """Undo the changes since the last task began."""
        while self._changes:
            change = self._changes.pop()
            self._offsets[change.numbers] = change.offsets
            for name, column in self._columns.items():
                if name in change.columns:
                    column.put_back(change.numbers, change.columns[name])
        super().undo()

    def changed_numbers(self) -> Ints:
        """Return the keys that the last task met, in the order of their numbers."""
        return np.unique(np.concatenate([np.empty(0, np.int64), *(change.numbers for change in self._changes)]))

    def offsets(self, numbers: Ints) -> Ints:
        """Return the offset of the last row of some keys, `NO_ROW` for a key without a row."""
        self._offsets = grown(self._offsets, self.keys.count, NO_ROW)
        return self._offsets[numbers]

    def taken(self, names: Iterable[str], numbers: Ints) -> dict[str, pa.Array]:
        """Return columns of the last row of some keys; columns that the state does not have are left out."""
        return {name: self._columns[name].take(numbers) for name in names if name in self._columns}

    def put(self, numbers: Ints, offsets: Ints, columns: Mapping[str, pa.Array], *, undoable: bool = True) -> None:
        """Set the last row of some distinct keys.

        Args:
            numbers: The keys, which `keys` has numbered.
            offsets: The offsets of the rows.
            columns: The columns of the rows by stored name; new columns are added to the state.
            undoable: Whether `undo` can undo the change.
        """
        self.torn = True
        count = self.keys.count
        self._offsets = grown(self._offsets, count, NO_ROW)
        for name, values in columns.items():
            if name not in self._columns:
                self._columns[name] = LastValues(values.type, count)
            self._columns[name].grow(count)
        if undoable:
            held = {name: column.held(numbers) for name, column in self._columns.items() if name in columns}
            self._changes.append(_Overwritten(numbers, self._offsets[numbers], held))
        self._offsets[numbers] = offsets
        for name, values in columns.items():
            self._columns[name].put(numbers, values)
        self.changed += int(numbers.size)
        self.torn = False

    def keep(self, names: Collection[str]) -> None:
        """Keep some columns alone; called where no change can be undone."""
        self._columns = {name: column for name, column in self._columns.items() if name in names}
        super().keep(names)

    def stored(self) -> bytes:
        """Return the state as bytes.

        Example:
            >>> LastRows.restored(LastRows(7).stored()).position
            7
        """
        offsets = self.offsets(np.arange(self.keys.count))
        return self._packed(np.flatnonzero(offsets != NO_ROW), "zstd")

    @classmethod
    def restored(cls, stored: bytes) -> LastRows:
        """Return the state that bytes hold; raises as the base class."""
        rows, about = unpacked(_FORMAT, stored)
        state = cls(about["position"])
        for name, since in about["since"].items():
            state.hold(name, since)
        state._put_stored(rows)
        state.changed = 0
        return state

    def changes(self) -> bytes:
        """Return the last row of each key that the last task met; the offset of a removed row is `NO_ROW`."""
        return self._packed(self.changed_numbers(), None)

    def put_changes(self, stored: bytes) -> bool:
        """Set the last rows that a task has changed."""
        rows, about = unpacked(_FORMAT, stored)
        if not self.since.keys() <= about["since"].keys():
            return False
        self._put_stored(rows)
        self.position = about["position"]
        return True

    def _packed(self, numbers: Ints, compression: str | None) -> bytes:
        columns = {f"{_KEY}{place}": column for place, column in enumerate(self.keys.columns(numbers))}
        columns[_OFFSET] = pa.array(self.offsets(numbers))
        columns |= {f"{_COLUMN}{name}": values for name, values in self.taken(self.columns, numbers).items()}
        about = {"position": self.position, "since": dict(self.since)}
        return packed(_FORMAT, pa.table(columns), about, compression)

    def _put_stored(self, rows: pa.Table) -> None:
        if not rows.num_rows:
            return
        names = rows.schema.names
        arrays = {name: rows[name].chunk(0) for name in names}
        numbers = self.keys.of([arrays[name] for name in names if name.startswith(_KEY)])
        columns = {name.removeprefix(_COLUMN): arrays[name] for name in names if name.startswith(_COLUMN)}
        self.put(numbers, arrays[_OFFSET].to_numpy(), columns, undoable=False)

    @property
    def changed_bytes(self) -> int:
        """About how many bytes were put since the last snapshot."""
        return self.changed * (8 + 8 * len(self._columns))

    @property
    def count(self) -> int:
        """The number of keys."""
        return self.keys.count

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        return int(self.keys.nbytes + self._offsets.nbytes + sum(each.nbytes for each in self._columns.values()))
