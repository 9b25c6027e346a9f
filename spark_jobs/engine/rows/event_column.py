"""Columns of events for look-ups: distinct values and their keys, computed once per batch for all groups."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from grouping.model.expression import Reference
from grouping.settings.evaluator_settings import EvaluatorSettings
from spark_jobs.engine.rows.columns import Columns, SingleColumn

__all__ = [
    "VALUE_BYTES",
    "EventColumn",
    "EventColumns",
    "as_plain",
    "hash_strings",
    "longest_text",
    "longest_value",
    "rows_of_elements",
]

_T = TypeVar("_T")

VALUE_BYTES: int = EvaluatorSettings().value_bytes
"""The default of the setting `value_bytes`."""
_SCALAR_BYTES = 64
"""An upper bound for the bytes of a number or a time in a nested value, with its quotes and comma."""
_TEXTS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
_SAMPLE = 1024
_SEED = secrets.randbits(64)


def longest_text(texts: pa.Array) -> int:
    """Return the bytes of the longest of some texts; 0 if there is none."""
    return pc.max(pc.binary_length(texts)).as_py() or 0


def longest_value(values: pa.Array, scalar: int = 0) -> int:
    """Return an upper bound for the bytes that one value of a column takes in a result.

    Args:
        values: The values. For nested values, the bound is computed from the largest number of elements and the longest
            value of each part.
        scalar: The bytes of a value that is neither a text nor nested.
    """
    if any(of(values.type) for of in _TEXTS):
        return longest_text(values)
    if pa.types.is_struct(values.type):
        fields = zip(values.type, values.flatten(), strict=True)
        return sum(len(field.name) + longest_value(part, _SCALAR_BYTES) for field, part in fields)
    if pa.types.is_list(values.type) or pa.types.is_large_list(values.type):
        most = pc.max(pc.list_value_length(values)).as_py() or 0
        return most * (longest_value(values.flatten(), _SCALAR_BYTES) + 1)
    return scalar


def hash_strings(values: pa.Array) -> NDArray[np.uint64]:
    """Return 64-bit hashes of strings. Each process has a random seed, so nobody can prepare strings that collide."""
    hashed: NDArray[np.uint64] = pl.Series(values).hash(_SEED).to_numpy()
    return hashed


class EventColumn:
    """A column of a batch: its distinct values, and for each event the number of its value.

    A column with few repeated values is taken unchanged, because the search for its distinct values would take more
    time than it saves.
    """

    def __init__(self, array: pa.Array) -> None:
        """Take the values of all events; they may be dictionary-encoded."""
        self._codes: NDArray[np.int32] | None = None
        if _hardly_repeats(array):
            self.values = array
        else:
            encoded = array.dictionary_encode()
            self.values = encoded.dictionary
            self._codes = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)
        self._nulls = ~array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None
        self._cache: dict[str, Any] = {}

    @property
    def by_event(self) -> bool:
        """Whether `values` has the value of each event, in the order of events; otherwise it has distinct values."""
        return self._codes is None

    def beginnings(self, length: int) -> pa.Array:
        """Return the first characters of the distinct values, which must be texts."""
        return self.cached(f"first {length}", lambda values: pc.utf8_slice_codeunits(values, 0, length))

    def cached(self, what: str, compute: Callable[[pa.Array], _T]) -> _T:
        """Return `compute(values)`; the result is computed once per batch, and kept under the name `what`."""
        found: _T | None = self._cache.get(what)
        if found is None:
            found = self._cache[what] = compute(self.values)
        return found

    def order(self, what: str | None, keys: NDArray[Any]) -> NDArray[np.intp]:
        """Return the sort order of the keys of the distinct values.

        Args:
            what: The name of the keys; keys with the same name are sorted once per batch. None for keys that no other
                look-up uses.
            keys: The key of each distinct value.
        """
        if what is None:
            return np.argsort(keys)
        return self.cached(f"{what} order", lambda _: np.argsort(keys))

    def among(self, distinct: NDArray[np.intp], selected: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the selected events whose value is one of the given distinct values.

        Args:
            distinct: The places of the distinct values.
            selected: The events, which must ascend.
        """
        if self._codes is not None:
            wanted = np.zeros(len(self.values), np.bool_)
            wanted[distinct] = True
            return selected[wanted[self._codes[selected]]]
        hits = np.sort(distinct)
        return hits if selected.size == len(self.values) else np.intersect1d(hits, selected, assume_unique=True)

    def take(self, keys: NDArray[Any], events: NDArray[np.int64]) -> NDArray[Any]:
        """Return the keys of the values of some events; none of these values may be NULL."""
        return keys[events if self._codes is None else self._codes[events]]

    def spread(self, keys: NDArray[Any], null: int | None = None) -> NDArray[Any]:
        """Return for each event the key of its value. For NULL the key is `null`, or arbitrary without `null`."""
        if self._codes is None:
            spread = keys
        elif keys.size:
            spread = keys[self._codes]
        else:
            spread = np.zeros(self._codes.size, keys.dtype)
        return spread if null is None or self._nulls is None else np.where(self._nulls, keys.dtype.type(null), spread)

    @property
    def nulls(self) -> NDArray[np.bool_] | None:
        """Whether each event's value is NULL; None if no value is NULL."""
        return self._nulls


def _hardly_repeats(array: pa.Array) -> bool:
    if pa.types.is_dictionary(array.type):
        return False
    sample = array.slice(0, _SAMPLE)
    return pa.types.is_decimal(array.type) or len(array) > _SAMPLE and len(sample.unique()) > _SAMPLE // 2


class Elements:
    """The elements of an array column, which are looked up in the same way as a column of events."""

    def __init__(self, arrays: pa.Array) -> None:
        """Take the arrays of all events."""
        self.event = rows_of_elements(arrays)
        """The event of each element."""
        self.columns = EventColumns(SingleColumn(as_plain(arrays.flatten())))


def rows_of_elements(arrays: pa.Array) -> NDArray[np.int64]:
    """Return the row of each element of ``arrays.flatten()``.

    Polars may keep elements in an array that is NULL. Arrow's `flatten` leaves out such elements, but Arrow's
    `list_parent_indices` does not.
    """
    length = pc.list_value_length(arrays).fill_null(0).to_numpy()
    return np.repeat(np.arange(len(arrays)), length)


def as_plain(values: pa.Array) -> pa.Array:
    """Convert values that Polars computed to the types that events have."""
    if pa.types.is_large_string(values.type) or pa.types.is_string_view(values.type):
        return values.cast(pa.string())
    return values


class EventColumns:
    """The columns of a batch, each made when a group first asks for it."""

    def __init__(self, source: Columns, value_bytes: int = VALUE_BYTES) -> None:
        """Take a batch; its columns are shared by all groups."""
        self.source = source
        self.value_bytes = value_bytes
        """The largest number of bytes of a text that an expression computes; a longer text is NULL."""
        self._columns: dict[Reference, EventColumn] = {}
        self._series: dict[Reference, pl.Series] = {}
        self._longest: dict[Reference, int] = {}
        self._elements: dict[Reference, Elements] = {}

    def series(self, name: Reference) -> pl.Series:
        """Return a column's values as a series of Polars; Polars selects rows of a column much faster than Arrow."""
        found = self._series.get(name)
        if found is None:
            found = self._series[name] = pl.Series(self.source.column(name))
        return found

    def longest(self, name: Reference) -> int:
        """Return the bytes of the longest text of a column; for nested values, an upper bound (`longest_value`)."""
        found = self._longest.get(name)
        if found is None:
            values = self.source.column(name)
            nested = pa.types.is_nested(values.type)
            found = self._longest[name] = longest_value(values) if nested else longest_text(values)
        return found

    def elements(self, name: Reference) -> Elements:
        """Return the elements of a column of arrays."""
        found = self._elements.get(name)
        if found is None:
            found = self._elements[name] = Elements(self.source.column(name))
        return found

    def __getitem__(self, name: Reference) -> EventColumn:
        found = self._columns.get(name)
        if found is None:
            found = self._columns[name] = EventColumn(self.source.encoded(name))
        return found
