"""The state of `RowBefore` in one source partition: by key, the offset and the columns of its last row."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from spark_jobs.engine.index import Ints
from spark_jobs.engine.operators.row_before.key_numbers import KeyNumbers
from spark_jobs.engine.operators.row_before.last_values import HeldValues, LastValues, grown

__all__ = ["NO_ROW", "LastRows"]

NO_ROW = -1
"""The offset of a key that has no row: the row was put by a task that was undone."""


class _Overwritten(NamedTuple):
    """The contents of some places before they were overwritten."""

    numbers: Ints
    offsets: Ints
    columns: dict[str, HeldValues]


class LastRows:
    """The last row of each key, as of a position of the partition's log."""

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
        self.keys = KeyNumbers()
        self._offsets: Ints = np.empty(0, np.int64)
        self._columns: dict[str, LastValues] = {}
        self._since: dict[str, int] = {}
        self._changes: list[_Overwritten] = []
        self.changed = 0
        """How many rows were put since the last snapshot."""

    @property
    def columns(self) -> Mapping[str, LastValues]:
        """The columns by stored name."""
        return self._columns

    @property
    def since(self) -> Mapping[str, int]:
        """By stored name of a column: the position from which on rows have the column. "" is for the rows as such."""
        return self._since

    def hold(self, name: str, since: int) -> None:
        """Note that rows have a column from a position on; "" notes it of the rows as such."""
        self._since[name] = min(since, self._since.get(name, since))

    def begin(self) -> None:
        """Begin a task: the changes so far can be undone no more."""
        self._changes.clear()
        self.began, self.complete = self.position, False

    def undo(self) -> None:
        """Undo the changes since the last task began."""
        while self._changes:
            change = self._changes.pop()
            self._offsets[change.numbers] = change.offsets
            for name, column in self._columns.items():
                if name in change.columns:
                    column.put_back(change.numbers, change.columns[name])
        self.position, self.complete, self.whole = self.began, True, True

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
        self._since = {name: since for name, since in self._since.items() if not name or name in names}

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
