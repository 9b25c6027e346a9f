"""The rows before the rows of a batch, as columns, with the positions and times of the later rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pyarrow as pa

from grouping.model.expression import Reference, stored_reference
from spark_jobs.engine.rows.arrays import Ints
from spark_jobs.engine.rows.columns import TakenPlaces
from spark_jobs.engine.rows.extremes import Extremes
from spark_jobs.engine.rows.row_source import RowSource

__all__ = ["RowsBefore"]


class RowsBefore(TakenPlaces):
    """Pairs of a row of a batch and the row before it of the same key (`rows.columns.PlacedColumns`).

    Rows without a row before are left out. The pairs are in the order of the batch. Partition, offset and time of a
    pair are those of the later row, because they decide whether the row can be a match of an entry.
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
    ) -> None:
        """Keep the pairs.

        Args:
            rows: The rows of the batch.
            of: By pair, the later row; ascending.
            place: By pair, the earlier row: a row of the batch, or `rows.count` plus the place of a row in `kept`.
            own_offsets: By pair, the offset of the earlier row.
            kept: Columns of the earlier rows that came before the batch, by stored name.
            equal: The stored names of columns in which both rows of each pair are the same.
            extremes: By name, the extremes before each row of the batch, for groups with UNTIL.
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
        self._arrays: dict[Reference, pa.Array] = {}

    def column(self, name: Reference) -> pa.Array:
        """Return the earlier rows' values of a column."""
        array = self._arrays.get(name)
        if array is None:
            array = self._arrays[name] = self._build(name)
        return array

    def encoded(self, name: Reference) -> pa.Array:
        """Return a column as `column` does, not dictionary-encoded."""
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
