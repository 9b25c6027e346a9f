"""Values of a column as integers in the same order: NaN is above all numbers, and -0.0 equals 0.0."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from spark_jobs.engine.index import Ints

__all__ = ["of_whole_numbers", "ordered_numbers", "whole_numbers"]

_MASK = np.int64(np.iinfo(np.int64).max)


def whole_numbers(values: pa.Array) -> list[int | None]:
    """Return integers in the order of the values, None for NULL.

    Args:
        values: Integers of up to 64 bits, floating-point numbers, dates or timestamps.

    Example:
        >>> numbers = whole_numbers(pa.array([-1.5, 0.0, -0.0, 2.0, float("nan")]))
        >>> numbers == sorted(numbers), numbers[1] == numbers[2]
        (True, True)
    """
    found: list[int | None] = ordered_numbers(values).tolist()
    if values.null_count:
        for place in np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False)).tolist():
            found[place] = None
    return found


def ordered_numbers(values: pa.Array) -> Ints:
    """Return integers in the order of the values, an arbitrary integer for NULL; `values` is as in `whole_numbers`."""
    kind = values.type
    if not pa.types.is_floating(kind):
        if not pa.types.is_integer(kind):
            values = values.view(pa.int32() if pa.types.is_date32(kind) else pa.int64())
        numbers: Ints = values.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        return numbers
    floats = values.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0
    floats[np.isnan(floats)] = np.nan
    return _turned(floats.view(np.int64))


def of_whole_numbers(numbers: Ints, kind: pa.DataType) -> pa.Array:
    """Return the values for integers that `whole_numbers` returned: its inverse.

    Args:
        numbers: The integers.
        kind: The Arrow type of the values.

    Example:
        >>> of_whole_numbers(np.array(whole_numbers(pa.array([-1.5, 2.0]))), pa.float64()).to_pylist()
        [-1.5, 2.0]
    """
    if pa.types.is_floating(kind):
        return pa.array(_turned(numbers).view(np.float64)).cast(kind)
    if pa.types.is_integer(kind):
        return pa.array(numbers).cast(kind, safe=False)
    return pa.array(numbers.astype(np.int32) if pa.types.is_date32(kind) else numbers).view(kind)


def _turned(bits: Ints) -> Ints:
    """Convert the bits of floating-point numbers to integers in the same order, or back."""
    return np.where(bits < 0, bits ^ _MASK, bits)
