"""Rows of keys that wait: a key has any number of rows, each of which has whole numbers, and columns of its event."""

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
"""Stands in place of an offset for a missing row, and for a row that is no match for any constants."""


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
    """The lowest value within the interval, of the row itself included."""
    young: Ints
    """1 if a query began between the row before and the row, so that the query has no row before; otherwise 0."""
    low: Ints
    """The lowest value since, of the row itself included: the key is still in for the constants below."""
    is_open: Ints
    """0 once the key is in for no constants: by a row that is no match, or a row before that is too old."""

    def taken(self, places: Ints) -> Rises:
        """Return some of the rises."""
        return Rises(*(field[places] for field in self))


class Exits(NamedTuple):
    """Rows with which stays end, each for the constants from `floor` to below `high`."""

    offset: Ints
    time: Ints
    """The event time less the interval: an exit is complete by the same watermark as a rise of this time."""
    floor: Ints
    is_floored: Ints
    """0 where each constant below `high` counts."""
    high: Ints
    """The lowest value between the begin of the stays and this row, and later within the stays' interval."""
    begin: Ints
    """The offset of the row with which the stays began: only queries that began before it count."""
    after: Ints
    """Only queries that began behind this offset count; -1 for all queries."""
    until: Ints
    """The event time up to which rows can still end the stays within their interval."""

    def taken(self, places: Ints) -> Exits:
        """Return some of the exits."""
        return Exits(*(field[places] for field in self))


Fields = TypeVar("Fields", Rises, Exits)


class WaitingRows(Generic[Fields]):
    """Rows at numbered places (`operators.placed_rows.PlacedRows`) by key."""

    def __init__(self, kind: type[Fields]) -> None:
        """Begin without rows."""
        self.kind: type[Fields] = kind
        """Names the whole numbers of a row."""
        self._rows = PlacedRows({"key": -1, **dict.fromkeys(kind._fields, 0), "time": NEVER})
        self._soonest = NEVER
        """A lower bound for the times of all rows."""

    @property
    def owners(self) -> Ints:
        """The key of each place, -1 for a place without a row."""
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
        """Begin a task: the changes so far can no longer be undone."""
        self._rows.begin()

    def undo(self) -> None:
        """Undo the changes since the last task began."""
        self._rows.undo()
        self._soonest = self.earliest

    def keep(self, names: Collection[str]) -> None:
        """Keep some columns alone; called where no change can be undone."""
        self._rows.keep(names)

    def of_keys(self, index: Ints) -> tuple[Ints, Ints]:
        """Return the places of the rows of some keys, and the index of each row's key.

        Args:
            index: By key, its index; -1 for other keys.
        """
        owner = self.owners
        places = np.flatnonzero((owner >= 0) & (index[np.maximum(owner, 0)] >= 0)) if index.size else owner[:0]
        return places, index[owner[places]]

    def at(self, places: Ints) -> Fields:
        """Return the whole numbers of the rows at some places."""
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
            columns: Their columns by stored name; further columns are NULL for the rows so far.
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
        """Set some whole numbers of some rows; the times stay."""
        self._rows.put(places, numbers, {}, undoable=undoable)

    def remove(self, places: Ints, *, undoable: bool) -> None:
        """Remove some rows."""
        if places.size:
            gone = {"key": np.full(places.size, -1), "time": np.full(places.size, NEVER)}
            self._rows.put(places, gone, {}, undoable=undoable)

    def complete(self, offsets: Ints, columns: Mapping[str, pa.Array]) -> None:
        """Fill columns of the rows from rows of the log; the change cannot be undone.

        Args:
            offsets: The offsets of the rows of the log, ascending.
            columns: The columns of the rows of the log by stored name.
        """
        held = np.flatnonzero(self.owners >= 0)
        own = self._rows.numbers("offset")[held]
        place = np.minimum(np.searchsorted(offsets, own), offsets.size - 1)
        same = np.flatnonzero(offsets[place] == own)
        rows: Any = pa.array(place[same])
        self._rows.put(held[same], {}, {name: each.take(rows) for name, each in columns.items()}, undoable=False)
