"""What the look-up hands to the split: (event, entry) pairs as columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grouping.group import SelectList

__all__ = ["Matches"]


@dataclass(frozen=True, slots=True)
class Matches:
    """The matches of one task's events; every array has one element per match.

    An event is at most once with the same destination. Any order of the matches will do: the split writes the records
    of one destination in the events' order.
    """

    event: NDArray[np.int32]
    """Row of the event in the batch's `Events`."""
    destination: pa.FixedSizeBinaryArray
    """The 12 bytes of the destination's id, without its prefix. (NumPy's ``S12`` would cut zero bytes off the end.)"""
    mode: NDArray[np.int8]
    """Index into `grouping.constant_table.MODES`."""
    partition: NDArray[np.int32]
    """Of the topic that the mode writes to."""
    number: NDArray[np.int32]
    """Where matches of the destination are counted."""
    select: NDArray[np.int32]
    """Index into `selects`."""
    group: NDArray[np.int32]
    """Index into `groups`."""
    selects: tuple[SelectList, ...]
    groups: tuple[str, ...]
    """Group ids."""
