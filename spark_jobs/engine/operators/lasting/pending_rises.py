"""The state of `LastingMatches` in one source partition: the last match of each key, and the rises that wait.

A *rise* is a row that is a match for some constants for which the row before it was no match. The state keeps for each
rise the lowest value of its row and of the rows that followed within the interval. For the constants between the value
before the rise and this lowest value, the key entered and stayed in.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_jobs.engine.index import Ints
from spark_jobs.engine.operators.placed_rows import PlacedRows
from spark_jobs.engine.operators.row_before.key_numbers import KeyNumbers
from spark_jobs.engine.operators.timed_state import ELEMENT, NEVER, TimedState

__all__ = ["NO_MATCH", "PendingRises", "Rises"]

_KEY, _COLUMN, _WAITS = "key.", "column.", "waits"
NO_MATCH = -1
"""Stands in place of an offset for a missing row, and for a row that is no match for any constants."""
_LAST = {"offset": NO_MATCH, "time": 0, "value": 0}
_RISE = {"key": -1, "offset": 0, "time": NEVER, "before": 0, "before_offset": NO_MATCH, "least": 0, "young": 0}
_FEW = 1_000
_FIELDS = [name for name in _RISE if name != "key"]


class Rises(NamedTuple):
    """Rises, of the state or of a batch."""

    offset: Ints
    time: Ints
    """The event time in epoch milliseconds."""
    before: Ints
    """The value of the row before."""
    before_offset: Ints
    """The offset of the row before; `NO_MATCH` if the row before was no match for any constants."""
    least: Ints
    """The lowest value of the row and of the rows that followed."""
    young: Ints
    """1 if a query began between the row before and the row, so that the query has no row before; otherwise 0."""

    def taken(self, places: Ints) -> Rises:
        """Return some of the rises."""
        return Rises(*(field[places] for field in self))


class PendingRises(TimedState):
    """The last match of each key and the rises that wait, at a position of the partition's log."""

    form: ClassVar[bytes] = b"lasting 1\n"

    def __init__(self, position: int = 0) -> None:
        """Begin without rows, at a position of the log."""
        super().__init__(position)
        self.kept_ms = 1 << 60
        """The longest event time between a row and the row before it; if the key's last row is older, there is none."""
        self._last = PlacedRows(_LAST)
        """By number of the key: its last row, if the row was a match."""
        self._rises = PlacedRows(_RISE)
        self._soonest = NEVER
        """A lower bound for the times of all rises."""
        self._most_keys = _FEW
        """The number of keys above which the state looks for keys without rows."""

    @property
    def earliest(self) -> int:
        """The earliest time of a rise that waits."""
        return int(self._rises.numbers("time").min(initial=NEVER))

    @property
    def columns(self) -> Collection[str]:
        """The stored names of the columns of the rises."""
        return self._rises.columns

    def begin(self) -> None:
        """Begin a task: the changes so far can no longer be undone."""
        self._last.begin()
        self._rises.begin()
        super().begin()
        self.tidy()

    def tidy(self) -> None:
        """Remove the keys without rows, if most keys have none."""
        if self.keys.count > self._most_keys:
            used = self._used()
            if 2 * used.size < self.keys.count:
                self._shrink(used)
            self._most_keys = max(_FEW, 2 * used.size)

    def keep(self, names: Collection[str]) -> None:
        """Remove all other columns, since they would lack the values of further rows."""
        super().keep(names)
        self._rises.keep({*names, ELEMENT})

    def undo(self) -> None:
        """Undo the changes since the last task began."""
        self._last.undo()
        self._rises.undo()
        self._soonest = self.earliest
        super().undo()

    def last(self, keys: Ints) -> tuple[Ints, Ints, Ints]:
        """Return offset, time and value of the last row of some keys; the offset is `NO_MATCH` if there is no match."""
        self._last.grow(self.keys.count)
        offset, time, value = (self._last.numbers(name)[keys] for name in _LAST)
        return offset, time, value

    def put_last(self, keys: Ints, offset: Ints, time: Ints, value: Ints, *, undoable: bool) -> None:
        """Set the last rows of some distinct keys; the offset of a row that is no match must be `NO_MATCH`."""
        self._last.grow(self.keys.count)
        self._last.put(keys, {"offset": offset, "time": time, "value": value}, {}, undoable=undoable)
        self.changed += keys.size

    def of_keys(self, keys: Ints) -> tuple[Ints, Ints]:
        """Return the places of the rises of some keys, and for each rise the index of its key in `keys`."""
        index = np.full(self.keys.count, -1, np.int64)
        index[keys] = np.arange(keys.size)
        owner = self._rises.numbers("key")
        places = np.flatnonzero((owner >= 0) & (index[np.maximum(owner, 0)] >= 0)) if index.size else owner[:0]
        return places, index[owner[places]]

    def rises(self, places: Ints) -> Rises:
        """Return the rises at some places."""
        return Rises(*(self._rises.numbers(name)[places] for name in _FIELDS))

    def taken(self, names: Collection[str], places: Ints) -> dict[str, pa.Array]:
        """Return columns of the rises at some places; columns that the state does not have are left out."""
        return self._rises.taken(names, places)

    def ended(self, latest: int) -> Ints:
        """Return the places of the rises whose time is at most `latest`."""
        if latest < self._soonest:
            return np.empty(0, np.int64)
        times = self._rises.numbers("time")
        self._soonest = int(times[times > latest].min(initial=NEVER))
        return np.flatnonzero(times <= latest)

    def add(self, keys: Ints, rises: Rises, columns: Mapping[str, pa.Array], *, undoable: bool) -> None:
        """Add rises.

        Args:
            keys: The number of each rise's key.
            rises: The rises.
            columns: The columns of the rises by stored name; new columns are added to the state.
            undoable: Whether `undo` can undo the change.
        """
        if not keys.size:
            return
        free = np.flatnonzero(self._rises.numbers("key") < 0)
        if free.size < keys.size:
            first = self._rises.room
            self._rises.grow(first + keys.size - free.size)
            free = np.append(free, np.arange(first, self._rises.room))
        numbers = {"key": keys, **dict(zip(_FIELDS, rises, strict=True))}
        self._rises.put(free[: keys.size], numbers, columns, undoable=undoable)
        self._soonest = min(self._soonest, int(rises.time.min()))
        self.changed += keys.size

    def lower(self, places: Ints, least: Ints, *, undoable: bool) -> None:
        """Set the lowest values of some rises."""
        self._rises.put(places, {"least": least}, {}, undoable=undoable)

    def remove(self, places: Ints, *, undoable: bool) -> None:
        """Remove some rises."""
        if places.size:
            gone = {"key": np.full(places.size, -1), "time": np.full(places.size, NEVER)}
            self._rises.put(places, gone, {}, undoable=undoable)

    def complete_rises(self, offsets: Ints, columns: Mapping[str, pa.Array]) -> None:
        """Fill columns of the rises from rows of the log; the change cannot be undone.

        Args:
            offsets: The offsets of the rows, ascending.
            columns: The columns of the rows by stored name.
        """
        held = np.flatnonzero(self._rises.numbers("key") >= 0)
        own = self._rises.numbers("offset")[held]
        place = np.minimum(np.searchsorted(offsets, own), offsets.size - 1)
        same = np.flatnonzero(offsets[place] == own)
        rows = pa.array(place[same])
        self._rises.put(held[same], {}, {name: each.take(rows) for name, each in columns.items()}, undoable=False)

    def _has_last(self) -> NDArray[np.bool_]:
        self._last.grow(self.keys.count)
        found: NDArray[np.bool_] = self._last.numbers("offset")[: self.keys.count] != NO_MATCH
        return found

    def _used(self) -> Ints:
        """Return the numbers of the keys that have a rise, or a last match that is not too old."""
        used = self._has_last() & (self._last.numbers("time")[: self.keys.count] >= self.watermark - self.kept_ms)
        owner = self._rises.numbers("key")
        used[owner[owner >= 0]] = True
        return np.flatnonzero(used)

    def _shrink(self, used: Ints) -> None:
        """Remove all other keys."""
        kept = self._packed_rows(used)
        self.keys, self._last, self._rises, self._soonest = KeyNumbers(), PlacedRows(_LAST), PlacedRows(_RISE), NEVER
        self._put_rows(kept)

    @property
    def _replaced(self) -> Ints:
        """The keys that the last task had events of. Rises that ended are not included: the watermark tells them."""
        return self._last.replaced

    def _packed_rows(self, keys: Ints) -> pa.Table:
        """Return the rows of some keys, whose numbers must ascend: first the last row of each key, then all rises."""
        places, index = self.of_keys(keys)
        offset, time, value = self.last(keys)
        lasts, rises = np.full(keys.size, -1), self.rises(places)
        arrays = {_WAITS: pa.array(np.repeat([False, True], [keys.size, places.size]))}
        order = np.concatenate([np.arange(keys.size), index])
        if keys.size:
            columns = self.keys.columns(keys)
            arrays |= {f"{_KEY}{at}": column.take(pa.array(order)) for at, column in enumerate(columns)}
        known = {"offset": offset, "time": time, "least": value}
        for name, field in zip(_FIELDS, rises, strict=True):
            arrays[name] = pa.array(np.concatenate([known.get(name, lasts), field]))
        for name, values in self.taken(self.columns, places).items():
            arrays[_COLUMN + name] = pa.concat_arrays([pa.nulls(keys.size, values.type), values])
        return pa.table(arrays)

    def _put_rows(self, rows: pa.Table) -> None:
        """Set rows in place of all rows of their keys."""
        if not rows.num_rows:
            return
        arrays = {name: rows[name].chunk(0) for name in rows.schema.names}
        waits = arrays[_WAITS].to_numpy(zero_copy_only=False)
        keys = self.keys.of([array for name, array in arrays.items() if name.startswith(_KEY)])
        found = Rises(*(arrays[name].to_numpy() for name in _FIELDS))
        last = np.flatnonzero(~waits)
        self.remove(self.of_keys(keys[last])[0], undoable=False)
        self.put_last(keys[last], found.offset[last], found.time[last], found.least[last], undoable=False)
        some = np.flatnonzero(waits)
        places, begin = pa.array(some), len(_COLUMN)
        columns = {name[begin:]: array.take(places) for name, array in arrays.items() if name.startswith(_COLUMN)}
        self.add(keys[some], found.taken(some), columns, undoable=False)

    @property
    def changed_bytes(self) -> int:
        """An estimate of the bytes that were put since the last snapshot."""
        return self.changed * (48 + 8 * len(self.columns))

    @property
    def rows(self) -> int:
        """The number of last matches and of rises."""
        return int(np.count_nonzero(self._has_last()) + np.count_nonzero(self._rises.numbers("key") >= 0))

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        return self.keys.nbytes + self._last.nbytes + self._rises.nbytes
