"""Searches for patterns in steps of bounded time; the CPU time is checked before each step.

The time to find one occurrence grows with the number of the pattern's elements times the number of the text's bytes. A
search for all occurrences may need this time for each place of the text, since the engine may read to the end from
each place (``.*x|.``). Therefore the steps of such a search are bounded by the squares of the texts' sizes in bytes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from spark_jobs.engine.rows.cpu_budget import check_cpu

__all__ = ["in_steps", "searchable"]

_MOST = 300_000_000
"""The largest product of a pattern's elements and the texts' bytes in one step: some seconds in the worst case.

A single text that exceeds this number is not searched.
"""
_MOST_SQUARED = 3_000_000_000
"""The largest product of the elements and the texts' squared bytes in one step of a search for all occurrences.

A text that exceeds this number has a step of its own.
"""


def searchable(texts: pl.Series, sizes: np.ndarray | int) -> pl.Series:
    """Return texts, with NULL for texts too long for their patterns.

    Args:
        texts: By row.
        sizes: The number of elements of the pattern, or of each row's pattern.
    """
    too_long = _bytes(texts) > _MOST // np.maximum(sizes, 1)
    return texts.set(pl.Series(too_long), None) if too_long.any() else texts


def in_steps(
    search: Callable[[pl.Series], pl.Series], texts: pl.Series, size: int, *, throughout: bool = False
) -> pl.Series:
    """Return the results of a search for one pattern in texts.

    Args:
        search: Returns a value for each text.
        texts: By row.
        size: The number of elements of the pattern.
        throughout: Whether all occurrences in a text are searched for.

    Raises:
        CpuExceeded: There is no CPU time left.
    """
    length = _bytes(texts).astype(np.float64)
    total = np.cumsum(length * length if throughout else length) * max(size, 1)
    most = _MOST_SQUARED if throughout else _MOST
    if not total.size or total[-1] <= most:
        return search(texts)
    found, first = [], 0
    while first < total.size:
        check_cpu()
        before = total[first - 1] if first else 0.0
        last = max(first + 1, int(np.searchsorted(total, before + most, side="right")))
        found.append(search(texts[first:last]))
        first = last
    return pl.concat(found)


def _bytes(texts: pl.Series) -> np.ndarray:
    return texts.str.len_bytes().fill_null(0).to_numpy().astype(np.int64)
