"""The previous rows of the rows of a batch, as columns, with the positions and times of the later rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grouping.model.expression import Reference, stored_reference
from spark_jobs.engine.rows.arrays import Ints
from spark_jobs.engine.rows.columns import TakenPlaces
from spark_jobs.engine.rows.extremes import Extremes
from spark_jobs.engine.rows.row_source import RowSource

__all__ = ["RowsBefore", "StayRows"]


class StayRows(NamedTuple):
    """The stays that began or ended with some rows, for groups with FOR and UNTIL."""

    extremes: Extremes
    """The extremes before the row with which the stays began."""
    kinds: NDArray[np.int8]
    """For each row, whether stays began with it (`rows.edge_rows.ENTER`) or ended (`rows.edge_rows.EXIT`)."""
    entered: pa.Array
    """The value of the row with which the stays began; NULL for stays that began before all waiting rises."""
    begin: Ints
    """The offset of the row with which the stays began."""
    least: pa.Array
    """For an enter, the lowest value within the interval."""

    @property
    def is_known(self) -> NDArray[np.bool_]:
        """Whether the row with which the stays began is known."""
        known: NDArray[np.bool_] = self.entered.is_valid().to_numpy(zero_copy_only=False)
        return known


class RowsBefore(TakenPlaces):
    """Pairs of a row of a batch and the previous row of the same key (`rows.columns.PlacedColumns`).

    Rows without a previous row are left out. The pairs are in the order of the batch. The partition, offset and time of
    a pair are those of the later row, because they decide whether the row can be a match of an entry.
    """

    def __init__(
        self,
        rows: RowSource,
        of: Ints,
        place: Ints,
        own_offsets: Ints,
        kept: Mapping[str, pa.Array],
        equal: Collection[str],
        extremes: Mapping[str, Extremes] | None = None,
        after: Ints | None = None,
        stays: StayRows | None = None,
    ) -> None:
        """Keep the pairs.

        Args:
            rows: The rows of the batch.
            of: The later row of each pair; ascending.
            place: The earlier row of each pair: a row of the batch, or `rows.count` plus the place of a row in `kept`.
            own_offsets: The offset of the earlier row of each pair.
            kept: Columns of those earlier rows that came before the batch, by stored name.
            equal: The stored names of columns that have equal values in both rows of each pair.
            extremes: By name, the extremes before each row of the batch, for groups with UNTIL.
            after: For each row of the batch, an offset. The row's edges are only for entries that begin after this
                offset. None if no row has this bound.
            stays: The stays of the rows of the batch, for groups with FOR and UNTIL.
        """
        super().__init__(rows, of)
        self.count = int(of.size)
        self.of = of
        self.own_offsets = own_offsets
        self._rows = rows
        self._place = place
        self._kept = kept
        self._equal = equal
        self.extremes = extremes or {}
        self.after = after
        self.stays = stays
        self._arrays: dict[Reference, pa.Array] = {}

    def column(self, name: Reference) -> pa.Array:
        """Return the earlier rows' values of a column."""
        array = self._arrays.get(name)
        if array is None:
            array = self._arrays[name] = self._build(name)
        return array

    def encoded(self, name: Reference) -> pa.Array:
        """Return the same array as `column`: no dictionary of repeated values is known here."""
        return self.column(name)

    def _build(self, name: Reference) -> pa.Array:
        column, stored = self._rows.column(name), stored_reference(name)
        kept = self._kept.get(stored)
        if kept is None and stored in self._equal:
            return column.take(pa.array(self.of))
        if kept is None:
            inside = self._place < self._rows.count
            return column.take(pa.array(self._place, mask=~inside))
        return pa.concat_arrays([column, kept]).take(pa.array(self._place))
