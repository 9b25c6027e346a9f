"""Rows and keys in the records of a batch, before they are decoded."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from spark_jobs.engine.index import Ints

__all__ = ["Images"]


@dataclass(frozen=True, slots=True)
class Images:
    """The rows set and the keys removed by records. A record that does both removes first."""

    set: pa.Array
    """Binary: rows, in the order of their records."""
    set_at: Ints
    """By row of `set`: the place of its record in the batch."""
    removed: pa.Array
    """Binary: keys, or whole rows, from which only the key is read."""
    removed_at: Ints
    """By key of `removed`: the place of its record in the batch."""
