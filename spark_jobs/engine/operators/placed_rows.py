"""Rows at numbered places. Their integers and Arrow values are overwritten in place; the changes can be undone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from spark_jobs.engine.index import Ints
from spark_jobs.engine.operators.row_before.last_values import HeldValues, LastValues, grown
from spark_jobs.engine.rows.arrays import distinct_values

__all__ = ["PlacedRows"]


class _Replaced(NamedTuple):
    """The contents of some places before they were overwritten."""

    places: Ints
    numbers: dict[str, Ints]
    columns: dict[str, HeldValues]


class PlacedRows:
    """Rows by place. A new place has the numbers of `empty`, and NULL in each Arrow column."""

    def __init__(self, empty: Mapping[str, int]) -> None:
        """Begin without rows.

        Args:
            empty: The name of each integer field, and the field's number in a new place.
        """
        self._empty = dict(empty)
        self._numbers: dict[str, Ints] = {name: np.empty(0, np.int64) for name in empty}
        self._columns: dict[str, LastValues] = {}
        self._replaced: list[_Replaced] = []

    def numbers(self, name: str) -> Ints:
        """Return an integer field by place; the caller must not change the array."""
        return self._numbers[name]

    @property
    def room(self) -> int:
        """The number of places, including places without a row."""
        return next(iter(self._numbers.values())).size

    @property
    def columns(self) -> Collection[str]:
        """The names of the Arrow columns."""
        return self._columns.keys()

    @property
    def replaced(self) -> Ints:
        """The places that were overwritten since `begin`."""
        nothing: Ints = np.empty(0, np.int64)
        return distinct_values(np.concatenate([nothing, *(each.places for each in self._replaced)]))

    def grow(self, count: int) -> None:
        """Make room for places below `count`."""
        self._numbers = {name: grown(values, count, self._empty[name]) for name, values in self._numbers.items()}
        for column in self._columns.values():
            column.grow(self.room)

    def put(
        self, places: Ints, numbers: Mapping[str, Ints], columns: Mapping[str, pa.Array], *, undoable: bool
    ) -> None:
        """Set some fields and columns of some distinct places; all other fields, columns and places stay as they are.

        Args:
            places: The places, which must be less than `room`.
            numbers: By name, the values of integer fields.
            columns: By name, the Arrow values; new columns are added.
            undoable: Whether `undo` can undo the change.
        """
        for name, values in columns.items():
            if name not in self._columns:
                self._columns[name] = LastValues(values.type, self.room)
        if undoable:
            held = {name: self._columns[name].held(places) for name in columns}
            self._replaced.append(_Replaced(places, {name: self._numbers[name][places] for name in numbers}, held))
        for name, values in numbers.items():
            self._numbers[name][places] = values
        for name, values in columns.items():
            self._columns[name].put(places, values)

    def taken(self, names: Iterable[str], places: Ints) -> dict[str, pa.Array]:
        """Return Arrow columns of some places; columns that do not exist are left out."""
        return {name: self._columns[name].take(places) for name in names if name in self._columns}

    def keep(self, names: Collection[str]) -> None:
        """Remove all other Arrow columns; must only be called between two tasks."""
        self._columns = {name: column for name, column in self._columns.items() if name in names}

    def begin(self) -> None:
        """Make the changes so far final: they can no longer be undone."""
        self._replaced.clear()

    def undo(self) -> None:
        """Undo the changes since `begin`."""
        while self._replaced:
            change = self._replaced.pop()
            for name, values in change.numbers.items():
                self._numbers[name][change.places] = values
            for name, held in change.columns.items():
                self._columns[name].put_back(change.places, held)

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        numbers = sum(values.nbytes for values in self._numbers.values())
        return int(numbers + sum(column.nbytes for column in self._columns.values()))
