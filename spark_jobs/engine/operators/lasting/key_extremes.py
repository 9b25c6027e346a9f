"""The extremes of keys for stays with UNTIL: which queries a row enters follows from the extremes before the row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from spark_jobs.engine.index import Ints
from spark_jobs.engine.operators.lasting.lowest_values import BatchRows
from spark_jobs.engine.rows.extremes import ExtremesBuilder
from spark_jobs.engine.rows.silent_rows import CHAIN, ENTERED

__all__ = ["PRIOR", "PRIOR_OFFSET", "SPECIAL", "RiseExtremes", "rise_extremes"]

PRIOR, PRIOR_OFFSET = "#prior", "#prior_offset"
"""Columns of rises with UNTIL: value and offset of the row before."""
SPECIAL = frozenset((CHAIN, ENTERED, PRIOR, PRIOR_OFFSET))
"""All columns that rises and exits have with UNTIL, beside those that groups and SELECT lists read."""


class RiseExtremes(NamedTuple):
    """The extremes before some rows of a batch, and after the batch."""

    packed: pa.Array
    """By row, the extremes before it."""
    offset: Ints
    """By row, the offset of the last row before it with at least its value, -1 without one."""
    lowest: Ints
    """By row, the lowest value behind that offset."""
    after: pa.Array
    """By key of the batch, the extremes after its last row."""


def rise_extremes(batch: BatchRows, known: Sequence[bytes | None], rows: Ints) -> RiseExtremes:
    """Return the extremes before some rows of a batch.

    Args:
        batch: The rows of the batch.
        known: By key of the batch, the extremes before the batch.
        rows: The rows, ascending.
    """
    keyed, builder = batch.values, ExtremesBuilder(batch.offsets.size)
    wanted = np.zeros(batch.offsets.size, np.bool_)
    wanted[rows] = True
    begins = np.zeros(batch.offsets.size, np.bool_)
    begins[keyed.begins] = True
    packed, latest, after = list[bytes](), list[tuple[int, int]](), list[bytes]()
    facts = zip(
        keyed.key.tolist(),
        begins.tolist(),
        keyed.is_renewed.tolist(),
        wanted.tolist(),
        keyed.values.tolist(),
        batch.offsets.tolist(),
        strict=True,
    )
    for row, (key, is_first, is_renewed, is_wanted, value, offset) in enumerate(facts):
        if is_first and row:
            after.append(builder.packed())
        if is_first or is_renewed:
            builder.begin(None if is_renewed else known[key])
        if is_wanted:
            packed.append(builder.packed())
            latest.append(builder.latest(value))
        builder.add(row, value, offset)
    after.append(builder.packed())
    offset_of, lowest = np.array(latest, np.int64).reshape(-1, 2).T
    return RiseExtremes(pa.array(packed, pa.binary()), offset_of, lowest, pa.array(after, pa.binary()))
