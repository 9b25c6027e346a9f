"""Checks pairs of an event's value and a constant row's set; equal values and elements have equal codes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spark_jobs.engine.index import Ints, KeyDirectory, mix
from spark_jobs.engine.rows.arrays import distinct_values

__all__ = ["in_sets"]

_SHORT = 16
"""If sets have at most this many elements on average, each element of a pair's set is compared with the value.

Otherwise, the pairs are looked up by hash.
"""


def in_sets(
    values: NDArray[np.int32], sets: NDArray[np.intp], codes: NDArray[np.int32], offsets: Ints
) -> NDArray[np.bool_]:
    """Return for each pair whether its value is in its set.

    Args:
        values: The code of each pair's value; -1 for a value that is in no set.
        sets: The number of each pair's set.
        codes: The codes of the elements of all sets, one set after the other; -1 for NULL.
        offsets: Where the elements of each set begin, and where the last set's elements end.
    """
    length = offsets[sets + 1] - offsets[sets]
    if int(length.sum()) > _SHORT * values.size:
        return _by_directory(values, sets, codes, offsets)
    before = np.cumsum(length) - length
    elements = np.arange(int(length.sum())) + np.repeat(offsets[sets] - before, length)
    equal = codes[elements] == np.repeat(np.where(values < 0, np.int32(-2), values), length)
    found = np.zeros(values.size, np.bool_)
    found[np.repeat(np.arange(values.size), length)[equal]] = True
    return found


def _by_directory(
    values: NDArray[np.int32], sets: NDArray[np.intp], codes: NDArray[np.int32], offsets: Ints
) -> NDArray[np.bool_]:
    """Look up each pair (set, value) by hash among all pairs (set, element); the size of the sets does not matter."""
    owner = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    elements = distinct_values((owner << 32 | codes)[codes >= 0])
    wanted = mix(sets.astype(np.int64) << 32 | values)
    found: NDArray[np.bool_] = (KeyDirectory(mix(elements)).find(wanted) >= 0) & (values >= 0)
    return found
