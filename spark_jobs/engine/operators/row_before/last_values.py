"""A column of the last rows of all keys: an array in which a key's number is the index of the key's value.

The values are overwritten in place.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_jobs.engine.index import Ints

__all__ = ["HeldValues", "LastValues", "grown"]

_SAMPLE = 500
"""The approximate number of values that are measured to estimate the memory of all values."""
_NUMBERS: tuple[tuple[Any, Any, pa.DataType], ...] = (
    (pa.types.is_date32, np.int32, pa.int32()),
    (pa.types.is_timestamp, np.int64, pa.int64()),
)
"""For types that are kept as integers: a test for the type, the NumPy type, and the Arrow type of the integers."""


class HeldValues(NamedTuple):
    """Some values of a column, in the form in which the column keeps them."""

    values: NDArray[Any]
    valid: NDArray[np.bool_] | None
    """Which values are not NULL; None for a column of Python objects, in which NULL is None."""


class LastValues:
    """Values of one Arrow type, each at the number of its key; NULL for a key without a value.

    Integers, floating-point numbers, booleans, dates and times are kept in NumPy arrays. All other values, such as
    texts and DECIMALs, are kept as Python objects; equal texts of one batch are one object.
    """

    def __init__(self, kind: pa.DataType, count: int) -> None:
        """Begin with NULLs.

        Args:
            kind: The Arrow type.
            count: The number of keys.
        """
        self.kind = kind
        self._as: pa.DataType | None = next((stored for test, _, stored in _NUMBERS if test(kind)), None)
        plain = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
        self._number = plain or self._as is not None
        if self._number:
            wide = next((kept for test, kept, _ in _NUMBERS if test(kind)), None) or kind.to_pandas_dtype()
            self._values: NDArray[Any] = np.zeros(count, wide)
            self._valid: NDArray[np.bool_] | None = np.zeros(count, np.bool_)
        else:
            self._values, self._valid = np.full(count, None, object), None

    def grow(self, count: int) -> None:
        """Make room for keys with numbers below `count`."""
        self._values = grown(self._values, count, None if self._valid is None else 0)
        if self._valid is not None:
            self._valid = grown(self._valid, count, False)

    def put(self, numbers: Ints, values: pa.Array) -> None:
        """Set the values of some distinct keys."""
        self.put_back(numbers, self._held(values))

    def held(self, numbers: Ints) -> HeldValues:
        """Return the values of some keys for `put_back`."""
        return HeldValues(self._values[numbers], None if self._valid is None else self._valid[numbers])

    def put_back(self, numbers: Ints, held: HeldValues) -> None:
        """Set the values of some keys to values that `held` returned."""
        self._values[numbers] = held.values
        if self._valid is not None:
            self._valid[numbers] = held.valid

    def take(self, numbers: Ints) -> pa.Array:
        """Return the values of some keys."""
        if self._valid is None:
            return pa.array(self._values[numbers].tolist(), self.kind)
        found = pa.array(self._values[numbers], mask=~self._valid[numbers])
        return found.cast(self.kind) if found.type != self.kind else found

    def _held(self, values: pa.Array) -> HeldValues:
        if not self._number:
            return HeldValues(_objects(values), None)
        valid = values.is_valid().to_numpy(zero_copy_only=False)
        numbers = values if self._as is None else values.view(self._as)
        if values.null_count:
            numbers = numbers.fill_null(False if pa.types.is_boolean(values.type) else 0)
        return HeldValues(numbers.to_numpy(zero_copy_only=False), valid)

    @property
    def nbytes(self) -> int:
        """Memory in bytes; estimated from a sample for values that are Python objects."""
        if self._valid is not None:
            return int(self._values.nbytes + self._valid.nbytes)
        sample = self._values[:: max(1, self._values.size // _SAMPLE)].tolist()
        each = sum(map(sys.getsizeof, sample)) // max(len(sample), 1)
        return int(self._values.nbytes + each * self._values.size)


def grown(values: NDArray[Any], count: int, empty: object) -> NDArray[Any]:
    """Return the array, enlarged if it has fewer than `count` places; new places have the value `empty`.

    An enlarged array has at least twice as many places as before.
    """
    if count <= values.size:
        return values
    larger = np.full(max(count, 2 * values.size), empty, values.dtype)
    larger[: values.size] = values
    return larger


def _objects(values: pa.Array) -> NDArray[Any]:
    """Return values as Python objects; equal texts are one object."""
    if pa.types.is_string(values.type):
        encoded = values.dictionary_encode()
        distinct = [*encoded.dictionary.to_pylist(), None]
        codes = encoded.indices.fill_null(len(distinct) - 1).to_numpy(zero_copy_only=False)
        texts: NDArray[Any] = np.fromiter(distinct, object, len(distinct))[codes]
        return texts
    return np.fromiter(values.to_pylist(), object, len(values))
