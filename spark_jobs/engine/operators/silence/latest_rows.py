"""The state of `SilentKeys` in one source partition: the time, offset and columns of each key's latest row."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import ClassVar

import numpy as np
import pyarrow as pa

from spark_jobs.engine.index import Ints
from spark_jobs.engine.operators.placed_rows import PlacedRows
from spark_jobs.engine.operators.row_before.key_numbers import KeyNumbers
from spark_jobs.engine.operators.timed_state import ELEMENT, NEVER, TimedState

__all__ = ["LatestRows"]

_KEY, _COLUMN, _OFFSET, _TIME = "key.", "column.", "offset", "time"
_EMPTY = {"offset": 0, "time": NEVER}


class LatestRows(TimedState):
    """The latest row of each key that is not silent yet, at a position of the partition's log."""

    form: ClassVar[bytes] = b"silence 1\n"

    def __init__(self, position: int = 0) -> None:
        """Begin without rows, at a position of the log."""
        super().__init__(position)
        self._rows = PlacedRows(_EMPTY)
        """For each key, by its number: the offset, event time (epoch milliseconds) and columns of its latest row."""
        self._soonest = NEVER
        """A lower bound for the times of all rows."""

    @property
    def columns(self) -> Collection[str]:
        """The stored names of the columns."""
        return self._rows.columns

    @property
    def earliest(self) -> int:
        """The earliest time of a row; `NEVER` if no key has a row."""
        return int(self._times.min(initial=NEVER))

    def begin(self) -> None:
        """Begin a task: earlier changes can no longer be undone."""
        self._rows.begin()
        super().begin()
        self.tidy()

    def tidy(self) -> None:
        """Remove the keys without rows, if most keys have no row; up to 1,000 keys without rows are always kept."""
        kept = self._used()
        if 2 * kept.size < self.keys.count - 1_000:
            self._shrink(kept)

    def keep(self, names: Collection[str]) -> None:
        """Remove all columns but those in `names`, since the operator no longer fills the other columns."""
        super().keep(names)
        self._rows.keep({*names, ELEMENT})

    def undo(self) -> None:
        """Undo the changes since the last task began."""
        self._rows.undo()
        self._soonest = self.earliest
        super().undo()

    def times(self, numbers: Ints) -> Ints:
        """Return the times of the rows of some keys; `NEVER` for a key without a row."""
        self._rows.grow(self.keys.count)
        return self._times[numbers]

    def offsets(self, numbers: Ints) -> Ints:
        """Return the offsets of the rows of some keys."""
        return self._rows.numbers("offset")[numbers]

    def taken(self, names: Iterable[str], numbers: Ints) -> dict[str, pa.Array]:
        """Return columns of the rows of some keys; columns that the state does not have are left out."""
        return self._rows.taken(names, numbers)

    def silent(self, latest: int) -> Ints:
        """Return the numbers of the keys whose row has a time of at most `latest`."""
        if latest < self._soonest:
            return np.empty(0, np.int64)
        times = self._times
        self._soonest = int(times[times > latest].min(initial=NEVER))
        return np.flatnonzero(times <= latest)

    def put(
        self, numbers: Ints, times: Ints, offsets: Ints, columns: Mapping[str, pa.Array], *, undoable: bool
    ) -> None:
        """Set the rows of some distinct keys.

        Args:
            numbers: The numbers of the keys.
            times: The event times; `NEVER` leaves a key without a row.
            offsets: The offsets.
            columns: The columns of the rows by stored name; new columns are added to the state.
            undoable: Whether `undo` can undo the change.
        """
        self._rows.grow(self.keys.count)
        self._rows.put(numbers, {"offset": offsets, "time": times}, columns, undoable=undoable)
        self._soonest = min(self._soonest, int(times.min(initial=NEVER)))
        self.changed += numbers.size

    def complete_rows(self, numbers: Ints, columns: Mapping[str, pa.Array]) -> None:
        """Fill columns of rows that are already in the state; the change cannot be undone."""
        self.put(numbers, self._times[numbers], self.offsets(numbers), columns, undoable=False)

    def forget(self, numbers: Ints, *, undoable: bool) -> None:
        """Remove the rows of some keys."""
        self.put(numbers, np.full(numbers.size, NEVER), self.offsets(numbers), {}, undoable=undoable)

    @property
    def _times(self) -> Ints:
        return self._rows.numbers("time")

    def _used(self) -> Ints:
        return np.flatnonzero(self._times != NEVER)

    @property
    def _replaced(self) -> Ints:
        return self._rows.replaced

    def _shrink(self, kept: Ints) -> None:
        """Remove all keys but those in `kept`."""
        rows = self._packed_rows(kept)
        self.keys, self._rows = KeyNumbers(), PlacedRows(_EMPTY)
        self._put_rows(rows)

    def _packed_rows(self, keys: Ints) -> pa.Table:
        self._rows.grow(self.keys.count)
        own = self.keys.columns(keys) if keys.size else []
        columns = {f"{_KEY}{place}": column for place, column in enumerate(own)}
        columns |= {_OFFSET: pa.array(self.offsets(keys)), _TIME: pa.array(self._times[keys])}
        columns |= {f"{_COLUMN}{name}": values for name, values in self.taken(self.columns, keys).items()}
        return pa.table(columns)

    def _put_rows(self, rows: pa.Table) -> None:
        if not rows.num_rows:
            return
        arrays = {name: rows[name].chunk(0) for name in rows.schema.names}
        numbers = self.keys.of([array for name, array in arrays.items() if name.startswith(_KEY)])
        columns = {name.removeprefix(_COLUMN): array for name, array in arrays.items() if name.startswith(_COLUMN)}
        self.put(numbers, arrays[_TIME].to_numpy(), arrays[_OFFSET].to_numpy(), columns, undoable=False)

    @property
    def changed_bytes(self) -> int:
        """An estimate of the bytes that were written into the state since the last snapshot."""
        return self.changed * (16 + 8 * len(self.columns))

    @property
    def rows(self) -> int:
        """The number of keys that have a row."""
        return int(np.count_nonzero(self._times != NEVER))

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        return self.keys.nbytes + self._rows.nbytes
