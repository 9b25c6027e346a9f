"""The extremes of keys for queries with UNTIL: the extremes before a row decide for which queries the row enters."""

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
"""Columns of rises of queries with UNTIL: the value and the offset of the key's previous row."""
SPECIAL = frozenset((CHAIN, ENTERED, PRIOR, PRIOR_OFFSET))
"""The columns that rises and exits have for UNTIL, in addition to the columns that groups and SELECT lists read."""


class RiseExtremes(NamedTuple):
    """The extremes before some rows of a batch, and after the batch."""

    packed: pa.Array
    """The extremes before each row."""
    offset: Ints
    """For each row, the offset of its key's last earlier row with at least the same value; -1 if there is none."""
    lowest: Ints
    """For each row, the lowest value of the key after `offset`."""
    after: pa.Array
    """For each key of the batch, the extremes after its last row."""


def rise_extremes(batch: BatchRows, known: Sequence[bytes | None], rows: Ints) -> RiseExtremes:
    """Return the extremes before some rows of a batch.

    Args:
        batch: The rows of the batch.
        known: The extremes of each key of the batch before the batch.
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
