"""A table as it was at a pin, in which joins look up rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grouping.model.sql_type import SqlType
from grouping.model.table import Table
from spark_jobs.engine.index import Ints
from spark_jobs.engine.index.key_tuples import KeyTuples, plain
from spark_jobs.engine.index.value_index import SoughtValues
from spark_jobs.engine.operators.lookup_join.table_part import TablePart
from spark_jobs.engine.rows.events import arrow_type

__all__ = ["TableView"]


class TableView:
    """The rows of a table at a pin, numbered from 0; rows that are not visible at the pin leave gaps in the numbers.

    Row numbers are valid only within a single view. A view still shows its pin after the replica has read further
    records, and keeps its parts in memory.
    """

    def __init__(
        self, table: Table, parts: Sequence[TablePart], pins: Ints, *, scattered: bool, count: int | None
    ) -> None:
        """Keep the parts of a replica.

        Args:
            table: The table.
            parts: All parts of the replica.
            pins: The pin: end offsets by partition.
            scattered: Whether a key may have rows in several partitions. Then only the row in the highest partition is
                valid.
            count: The number of rows; None if the number is unknown.
        """
        self.table = table
        self._parts = parts
        self._pins = pins
        self._scattered = scattered
        self._count = count
        self._starts = np.cumsum([0, *(len(part) for part in parts)])
        self._types = {column.name: arrow_type(column.type) for column in table.columns}

    def find(self, columns: tuple[str, ...], keys: Sequence[pa.Array]) -> tuple[Ints, Ints]:
        """Return all pairs of a probe and a row whose columns equal the probe's values.

        NULL equals nothing. The caller must cast its values exactly to the types of the columns. If the type of the
        column cannot hold a value, such as a fraction for a BIGINT, the caller must pass NULL. If values repeat often,
        the caller should pass each distinct value only once.

        Args:
            columns: Names of the table's columns, spelt as declared, in any order, each once.
            keys: For each column, the values of the probes, in the column's Arrow type or dictionary-encoded.

        Returns:
            The places of the pairs' probes, ascending, and the pairs' rows. The rows of a probe are
            ordered by their PRIMARY KEY, so the order is the same in every process and every replay.
        """
        by = self.table.key if set(self.table.key) <= set(columns) else columns
        values = dict(zip(columns, keys, strict=True))
        probes = SoughtValues(KeyTuples([values[name] for name in by]))
        rest = tuple(name for name in columns if name not in by)
        found = [self._found(part, by, rest, probes, values) for part in self._parts]
        hit = [place for place, (_, rows) in enumerate(found) if rows.size]
        if not hit:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        probe = np.concatenate([found[place][0] for place in hit])
        row = np.concatenate([found[place][1] + self._starts[place] for place in hit])
        if self._scattered:
            valid = self._valid(row)
            probe, row = probe[valid], row[valid]
        return self._ordered(probe, row) if len(hit) > 1 else (probe, row)

    def take(self, column: str, rows: Ints) -> pa.Array:
        """Return the values of a column in some rows; NULL for row -1."""
        return plain(self.encoded(column, rows))

    def encoded(self, column: str, rows: Ints) -> pa.Array:
        """Return the values of a column as `take` does, dictionary-encoded if that saves work.

        Encoding saves work if the first part stores the column with a dictionary that is no longer than `rows`.
        """
        missing, stored = rows < 0, [part.columns[column] for part in self._parts]
        if len(stored) == 1:
            taken = stored[0].take(pa.array(rows, mask=missing))
            return taken if _few(stored[0], rows.size) else plain(taken)
        kept = pa.Array.dictionary_encode if stored and _few(stored[0], rows.size) else plain
        pieces = [kept(pa.nulls(int(np.count_nonzero(missing)), self._types[column]))]
        places = [np.flatnonzero(missing)]
        part_of = np.searchsorted(self._starts, rows, side="right") - 1
        for number, array in enumerate(stored):
            at = np.flatnonzero(part_of == number)
            places.append(at)
            pieces.append(kept(array.take(pa.array(rows[at] - self._starts[number]))))
        inverse = np.empty(rows.size, np.int64)
        inverse[np.concatenate(places)] = np.arange(rows.size)
        return pa.chunked_array(pieces).unify_dictionaries().combine_chunks().take(pa.array(inverse))

    def type_of(self, column: str) -> SqlType:
        """Return the SQL type of a column."""
        return next(each.type for each in self.table.columns if each.name == column)

    @property
    def longest_row(self) -> int:
        """An upper bound for the bytes of a row's texts."""
        return max((part.longest for part in self._parts), default=0)

    @property
    def count(self) -> int:
        """The number of rows; a key with rows in several partitions is counted once for each partition."""
        if self._count is None:
            self._count = 0
            for part in self._parts:
                visible = part.visible(np.arange(len(part)), self._pins)
                self._count += len(part) if visible is None else int(np.count_nonzero(visible))
        return self._count

    @property
    def nbytes(self) -> int:
        """Memory of rows and indexes in bytes."""
        return sum(part.nbytes for part in self._parts)

    def _found(
        self,
        part: TablePart,
        by: tuple[str, ...],
        rest: tuple[str, ...],
        probes: SoughtValues,
        values: dict[str, pa.Array],
    ) -> tuple[Ints, NDArray[np.int32]]:
        """Return the pairs with the rows of one part that are visible at the pin.

        The columns `by` are looked up in an index, and the columns `rest` are compared.
        """
        probe, row = part.find(by, probes)
        if (visible := part.visible(row, self._pins)) is not None:
            probe, row = probe[visible], row[visible]
        if rest:
            tuples = KeyTuples([values[name] for name in rest]).take(probe)
            stored = part.values(rest, row)
            both = np.arange(probe.size)
            for known in (tuples.known(), stored.known()):
                both = both if known is None else np.intersect1d(both, known, assume_unique=True)
            both = both[tuples.take(both).same(stored.take(both))]
            probe, row = probe[both], row[both]
        return probe, row

    def _ordered(self, probe: Ints, row: Ints) -> tuple[Ints, Ints]:
        """Order pairs by probe and PRIMARY KEY. Rows of the same part are in this order already."""
        order = np.argsort(probe, kind="stable")
        probe, row = probe[order], row[order]
        again = probe[1:] == probe[:-1]
        part_of = np.searchsorted(self._starts, row, side="right")
        torn = again & (part_of[1:] != part_of[:-1])
        if not torn.any():
            return probe, row
        at = np.flatnonzero(np.isin(probe, probe[1:][torn]))
        distinct, which = np.unique(row[at], return_inverse=True)
        rank = np.empty(distinct.size, np.int64)
        rank[self._keys(distinct).order()] = np.arange(distinct.size)
        row[at] = row[at[np.lexsort((rank[which], probe[at]))]]
        return probe, row

    def _valid(self, row: Ints) -> NDArray[np.bool_]:
        """Return for each row whether no higher partition has a row of the same key."""
        distinct, which = np.unique(row, return_inverse=True)
        probes = SoughtValues(self._keys(distinct))
        highest = np.full(distinct.size, -1)
        for part in self._parts:
            probe, found = self._found(part, self.table.key, (), probes, {})
            np.maximum.at(highest, probe, part.partition[found])
        own = np.concatenate([part.partition for part in self._parts])[distinct]
        valid: NDArray[np.bool_] = (own == highest)[which]
        return valid

    def _keys(self, rows: Ints) -> KeyTuples:
        return KeyTuples([self.take(name, rows) for name in self.table.key])


def _few(stored: pa.Array, taken: int) -> bool:
    return pa.types.is_dictionary(stored.type) and len(stored.dictionary) <= taken
