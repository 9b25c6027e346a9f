"""Tables of waiting rows: a key has any number of rows, and each row has integers and the columns of its event."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from spark_jobs.engine.index import Ints
from spark_jobs.engine.operators.placed_rows import PlacedRows
from spark_jobs.engine.operators.timed_state import NEVER

__all__ = ["NO_MATCH", "Exits", "Rises", "WaitingRows"]

NO_MATCH = -1
"""Replaces the offset of a missing row, and of a row that is no match for any constants."""


class Rises(NamedTuple):
    """Rises of the state or of a batch. Each array has an element for each rise."""

    offset: Ints
    time: Ints
    """The event time in epoch milliseconds."""
    before: Ints
    """The value of the key's previous row. For a query with UNTIL, the key's lowest value after `before_offset`."""
    before_offset: Ints
    """The offset of the key's previous row; `NO_MATCH` if that row was no match for any constants.

    For a query with UNTIL, the offset of the key's last earlier row with at least the value of the rise; `NO_MATCH` if
    there is none.
    """
    least: Ints
    """The lowest value of the rise and of the rows within the interval that followed it."""
    young: Ints
    """1 if an entry began after the row at `before_offset` and not after the rise; the entry ignores that row. 0
    otherwise."""
    low: Ints
    """The lowest value of the rise and of all rows that followed: the key is still in for the constants below `low`."""
    is_open: Ints
    """1 while the key is in for some constants; 0 after a row that is no match or whose previous row is too old."""

    def taken(self, places: Ints) -> Rises:
        """Return some of the rises."""
        return Rises(*(field[places] for field in self))


class Exits(NamedTuple):
    """Rows with which stays end, each for the constants from `floor` to below `high`."""

    offset: Ints
    time: Ints
    """The event time less the interval, so that exits and rises with equal times are complete at the same watermark."""
    floor: Ints
    is_floored: Ints
    """1 if `floor` is a bound; 0 if the exit is for all constants below `high`."""
    high: Ints
    """The lowest value that the key had from the begin of the stays until this row, without the value of this row.

    Rows that came later, with event times up to `until`, may have lowered this value.
    """
    begin: Ints
    """The offset of the row with which the stays began. The exit is only for entries that begin at or before this
    offset."""
    after: Ints
    """The exit is only for entries that begin after this offset; -1 for no such bound."""
    until: Ints
    """The event time up to which rows can still end the stays within their interval."""

    def taken(self, places: Ints) -> Exits:
        """Return some of the exits."""
        return Exits(*(field[places] for field in self))


Fields = TypeVar("Fields", Rises, Exits)


class WaitingRows(Generic[Fields]):
    """Rows at numbered places (`operators.placed_rows.PlacedRows`), each with the number of its key."""

    def __init__(self, kind: type[Fields]) -> None:
        """Begin without rows."""
        self.kind: type[Fields] = kind
        """The class whose fields are the integers of a row."""
        self._rows = PlacedRows({"key": -1, **dict.fromkeys(kind._fields, 0), "time": NEVER})
        self._soonest = NEVER
        """A lower bound for the times of all rows."""

    @property
    def owners(self) -> Ints:
        """The number of the key of the row at each place; -1 for a place without a row."""
        return self._rows.numbers("key")

    @property
    def count(self) -> int:
        """The number of rows."""
        return int(np.count_nonzero(self.owners >= 0))

    @property
    def earliest(self) -> int:
        """The earliest time of a row."""
        return int(self._rows.numbers("time").min(initial=NEVER))

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        return self._rows.nbytes

    def begin(self) -> None:
        """Begin a task: earlier changes can no longer be undone."""
        self._rows.begin()

    def undo(self) -> None:
        """Undo the changes since the last task began."""
        self._rows.undo()
        self._soonest = self.earliest

    def keep(self, names: Collection[str]) -> None:
        """Remove all columns but some; must only be called between two tasks."""
        self._rows.keep(names)

    def of_keys(self, index: Ints) -> tuple[Ints, Ints]:
        """Return the places of the rows of some keys, and the index of each row's key.

        Args:
            index: For each key of the state, its index among the wanted keys; -1 for a key that is not wanted.
        """
        owner = self.owners
        places = np.flatnonzero((owner >= 0) & (index[np.maximum(owner, 0)] >= 0)) if index.size else owner[:0]
        return places, index[owner[places]]

    def at(self, places: Ints) -> Fields:
        """Return the integers of the rows at some places."""
        found: Fields = self.kind(*(self._rows.numbers(name)[places] for name in self.kind._fields))
        return found

    def columns(self, places: Ints) -> dict[str, pa.Array]:
        """Return all columns of the rows at some places, by stored name."""
        return self._rows.taken(self._rows.columns, places)

    def ended(self, latest: int) -> Ints:
        """Return the places of the rows whose time is at most `latest`."""
        if latest < self._soonest:
            return np.empty(0, np.int64)
        times = self._rows.numbers("time")
        self._soonest = int(times[times > latest].min(initial=NEVER))
        return np.flatnonzero(times <= latest)

    def add(self, keys: Ints, rows: Fields, columns: Mapping[str, pa.Array], *, undoable: bool) -> None:
        """Add rows.

        Args:
            keys: The number of each row's key.
            rows: The rows.
            columns: The columns of the rows by stored name; a column that is new in the state is NULL for older rows.
            undoable: Whether `undo` can undo the change.
        """
        if not keys.size:
            return
        free = np.flatnonzero(self.owners < 0)
        if free.size < keys.size:
            first = self._rows.room
            self._rows.grow(first + keys.size - free.size)
            free = np.append(free, np.arange(first, self._rows.room))
        numbers = {"key": keys, **rows._asdict()}
        self._rows.put(free[: keys.size], numbers, columns, undoable=undoable)
        self._soonest = min(self._soonest, int(rows.time.min()))

    def put(self, places: Ints, numbers: Mapping[str, Ints], *, undoable: bool) -> None:
        """Set some integers of the rows at some places; `numbers` must not contain the field `time`."""
        self._rows.put(places, numbers, {}, undoable=undoable)

    def remove(self, places: Ints, *, undoable: bool) -> None:
        """Remove the rows at some places."""
        if places.size:
            gone = {"key": np.full(places.size, -1), "time": np.full(places.size, NEVER)}
            self._rows.put(places, gone, {}, undoable=undoable)

    def complete(self, offsets: Ints, columns: Mapping[str, pa.Array]) -> None:
        """Fill columns of the state's rows from the log's rows of the same offsets; the change cannot be undone.

        Args:
            offsets: The offsets of the log's rows, ascending; at least one.
            columns: The columns of the log's rows by stored name.
        """
        held = np.flatnonzero(self.owners >= 0)
        own = self._rows.numbers("offset")[held]
        place = np.minimum(np.searchsorted(offsets, own), offsets.size - 1)
        same = np.flatnonzero(offsets[place] == own)
        rows: Any = pa.array(place[same])
        self._rows.put(held[same], {}, {name: each.take(rows) for name, each in columns.items()}, undoable=False)
