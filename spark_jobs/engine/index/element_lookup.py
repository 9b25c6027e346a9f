"""The index for arrays that must contain a constant: each element of an event's array is looked up."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from grouping.model.expression import Expression
from grouping.model.sql_type import SqlType
from spark_jobs.engine.index import EqualityIndex, Ints
from spark_jobs.engine.index.key_codes import KeyCodes
from spark_jobs.engine.index.lookup import AliveRows, Candidates, comparison
from spark_jobs.engine.rows.arrays import distinct_values
from spark_jobs.engine.rows.event_column import EventColumns

__all__ = ["ElementLookup"]


class ElementLookup:
    """The index of ``array_contains(column, :c)``. The index does not change after it is built."""

    def __init__(self, conjunct: Expression, types: Sequence[SqlType], constants: Sequence[pa.Array]) -> None:
        """Index the rows.

        Args:
            conjunct: The conjunct of the group that the index decides.
            types: The types of the slots.
            constants: For each slot, its constant in each row. A row with NULL is never found: no array contains NULL.
        """
        _, self._column, slot = comparison(conjunct)
        element = self._column.type.element
        assert element is not None, "array_contains is of an ARRAY"
        values = constants[slot]
        self._keys = KeyCodes(self._column.reference, element, types[slot], values)
        codes = self._keys.constants(values)
        rows = np.flatnonzero(codes >= 0).astype(np.int32)
        self._index = EqualityIndex(codes[rows], self._keys.count, rows)
        self._alive = AliveRows(self._index.rows)

    def find(self, events: EventColumns, selected: Ints) -> Candidates:
        """Return the candidates of the events at the positions `selected`."""
        elements = events.elements(self._column.reference)
        codes = self._keys.find(elements.columns)
        wanted = np.zeros(events.source.count, np.bool_)
        wanted[selected] = True
        places = np.flatnonzero((codes >= 0) & wanted[elements.event])
        # An event must find a row only once, even if its array has the value twice.
        once = distinct_values(elements.event[places] << 32 | codes[places])
        found = self._index.find((once & 0xFFFFFFFF).astype(np.int32))
        return Candidates(once >> 32, found, self._alive, repeated=True)

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        return self._keys.nbytes + self._index.nbytes
