"""Edges of groups with UNTIL: decides whether a key was in for an entry before a row.

A group with UNTIL has two tables with the same entries: one is looked up by WHERE and the other by UNTIL. With a row
for which WHERE becomes TRUE, the key enters if it was out. With a row for which UNTIL becomes TRUE, the key leaves if
it was in. If WHERE was already TRUE for the key's previous row, the key has been in since that row at the latest, so it
cannot enter with this row. In the same way, a key cannot leave if UNTIL was already TRUE for its previous row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grouping.plan.stay import StayBound
from spark_jobs.engine.index import Ints
from spark_jobs.engine.match.residual import holds
from spark_jobs.engine.match.table_lookup import TableLookup
from spark_jobs.engine.rows.columns import SingleColumn
from spark_jobs.engine.rows.edge_rows import EXIT
from spark_jobs.engine.rows.event_column import EventColumns
from spark_jobs.engine.rows.extremes import Extremes, extremes_name
from spark_jobs.engine.rows.row_source import RowSource
from spark_jobs.engine.rows.rows_before import RowsBefore, StayRows

__all__ = ["StayLookup"]


@dataclass(frozen=True, slots=True)
class StayLookup:
    """Decides for the entries of one part of a table whether keys were in."""

    lookup: TableLookup
    begin: StayBound
    end: StayBound
    extremes: Extremes
    rows: RowSource
    lasting: StayRows | None
    """The stays that began or ended with the rows, for a group with FOR; else None."""

    @classmethod
    def of(cls, lookup: TableLookup | None, rows: RowSource, before: RowsBefore) -> StayLookup | None:
        """Return the look-up for one part of a table; None for a group without UNTIL."""
        stay = None if lookup is None else lookup.part.shape.plan.stay
        if lookup is None or stay is None:
            return None
        extremes = before.extremes[extremes_name(stay.begin.column, above=stay.begin.above)]
        return cls(lookup, stay.begin, stay.end, extremes, rows, before.stays)

    def edges(self, found: Iterable[tuple[Ints, Ints, int]]) -> Iterator[tuple[Ints, Ints, int]]:
        """Yield the edges among rows for which the table's condition becomes TRUE.

        Args:
            found: Rows, the entry of each of these rows, and 0 if the table's condition becomes TRUE for the entry, or
                1 if the condition stops being TRUE. Rows with 1 have no edge, since UNTIL has a table of its own.

        Yields:
            Rows, the entry of each of these rows, and 0 for enters or 1 for exits.
        """
        ending = self.lookup.part.shape.ending
        for row, entry, number in found:
            if number == 0 and row.size:
                kept = self._inside(row, entry) == ending if self.lasting is None else self._lasts(row, entry)
                yield row[kept], entry[kept], int(ending)

    def _lasts(self, row: Ints, entry: Ints) -> NDArray[np.bool_]:
        """Return for each pair of a row and an entry whether the row began or ended a stay for the entry.

        The extremes of each row are those from before the row with which its stays began. If that row is not known,
        because the stays began before all waiting rises, the extremes are those from before the first of these rises.
        """
        lasting, ending = self.lasting, self.lookup.part.shape.ending
        assert lasting is not None, "a group with FOR"
        inside = self._inside(row, entry)
        own = (lasting.kinds[row] == EXIT) == ending
        if not ending:
            lasts: NDArray[np.bool_] = own & ~inside & ~self._is_true(self.end, lasting.least, row, entry)
            return lasts
        begins = self.lookup.rows.begins
        assert begins is not None, "an entry over rows before"
        began = ~inside & self._is_true(self.begin, lasting.entered, row, entry)
        began &= begins.at(entry, self.rows.partitions[row]) <= lasting.begin[row]
        ends: NDArray[np.bool_] = own & np.where(lasting.is_known[row], began, inside)
        return ends

    def _is_true(self, bound: StayBound, values: pa.Array, row: Ints, entry: Ints) -> NDArray[np.bool_]:
        return _Test(self.lookup, bound, values, entry)(np.arange(row.size), row)

    def _inside(self, row: Ints, entry: Ints) -> NDArray[np.bool_]:
        """Return for each pair of a row and an entry whether the row's key was in before the row."""
        begins = self.lookup.rows.begins
        assert begins is not None, "an entry over rows before"
        extremes, end = self.extremes, self.end
        begun = extremes.last_peaks(row, _Test(self.lookup, self.begin, extremes.peak_values, entry))
        inside = begun >= begins.at(entry, self.rows.partitions[row])
        some = np.flatnonzero(inside & (begun >= 0))
        ended = extremes.last_lows(row[some], _Test(self.lookup, end, extremes.low_values, entry[some]))
        result = np.zeros(row.size, np.bool_)
        result[some] = begun[some] > ended
        return result


class _Test:
    """Decides for each pair of an entry and an earlier value whether a bound is TRUE."""

    def __init__(self, lookup: TableLookup, bound: StayBound, values: pa.Array, entry: Ints) -> None:
        self._lookup = lookup
        self._conjuncts = (bound.conjunct,)
        self._values = EventColumns(SingleColumn(values))
        self._entry = entry

    def __call__(self, pairs: Ints, values: Ints) -> NDArray[np.bool_]:
        """Return the answer for each pair of an entry and a value, given as indexes into the entries and the values."""
        part = self._lookup.part
        rows = self._entry[pairs]
        return holds(self._conjuncts, self._values, values, part.shape.types, part.rows.constants, rows)
