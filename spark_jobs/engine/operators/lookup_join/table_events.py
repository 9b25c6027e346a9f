"""Decodes the records of a stream into events. In a stream of the changes of a table, an event is a change of a row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grouping.model.catalog import Stream, StreamColumn
from grouping.model.change_format import is_change_format
from grouping.model.expression import Reference
from grouping.plan.table_changes import changed_table
from grouping.settings.settings import Settings
from spark_jobs.engine.decode.decode import decode_pieces
from spark_jobs.engine.operators.lookup_join.changes import decode_changes
from spark_jobs.engine.operators.lookup_join.numbers import run_places
from spark_jobs.engine.rows.arrays import Ints
from spark_jobs.engine.rows.events import Events, arrow_type
from spark_jobs.engine.rows.record_fields import repeated_records
from spark_jobs.engine.rows.value_sizes import value_sizes

__all__ = ["TableEvents", "decode_stream"]


def decode_stream(
    batch: pa.RecordBatch, stream: Stream, settings: Settings
) -> Iterator[tuple[Events, pa.RecordBatch | None]]:
    """Decode a batch of source records piece by piece.

    Yields:
        The events of each piece; and the dead letters for bad records of the piece, None if there are none.
    """
    if stream.changes_of:
        yield from _decode_changes(batch, stream, settings)
    else:
        yield from decode_pieces(batch, stream, settings)


def _decode_changes(
    batch: pa.RecordBatch, stream: Stream, settings: Settings
) -> Iterator[tuple[Events, pa.RecordBatch | None]]:
    """Decode records of a table's topic; a record that removes all rows is a piece of its own."""
    table = changed_table(stream)
    changes, letters = decode_changes(batch, table, settings, len(stream.start_offsets))
    offsets = batch["offset"].to_numpy()
    good = np.searchsorted(offsets, changes.offset)
    removed = changes.row < 0
    row = pa.array(changes.row, mask=removed)
    arrays = {name: changes.rows.column(name).take(row) for name in changes.rows.schema.names}
    arrays |= dict(zip(table.key, changes.keys, strict=True))
    unsent = {name: keeps[changes.row] & ~removed for name, keeps in changes.unavailable.items()}
    number = run_places(changes.offset) if is_change_format(stream.format) else None
    source = batch.take(pa.array(good)) if number is None else repeated_records(batch, good)
    events = TableEvents(stream, source, arrays, removed, number=number, unsent=unsent)
    if not changes.emptied:
        yield events, letters
        return
    cuts = np.searchsorted(changes.offset, changes.emptied).tolist()
    emptied = [batch.slice(int(np.searchsorted(offsets, offset)), 1) for offset in changes.emptied]
    for place, (first, last) in enumerate(pairwise((0, *cuts, events.count))):
        yield events.slice(first, last), letters if place == 0 else None
        if place < len(emptied):
            yield TableEvents(stream, emptied[place], _nulls(stream, 1), np.ones(1, np.bool_), empties=True), None


def _nulls(stream: Stream, count: int) -> dict[str, pa.Array]:
    return {column.name: pa.nulls(count, arrow_type(column.type)) for column in stream.columns}


class TableEvents(Events):
    """Changes of a table as events. The removal of a row has values in the PRIMARY KEY columns, and NULL in all others.

    The removal of all rows (`empties`) has NULL in every column.
    """

    def __init__(
        self,
        stream: Stream,
        source: pa.RecordBatch,
        arrays: Mapping[str, pa.Array],
        removals: NDArray[np.bool_],
        sizes: Callable[[], Ints] | None = None,
        *,
        number: Ints | None = None,
        unsent: Mapping[str, NDArray[np.bool_]] | None = None,
        empties: bool = False,
    ) -> None:
        """Keep the changes.

        Args:
            stream: The stream of the table's changes.
            source: As in `Events`.
            arrays: The columns by name.
            removals: Whether each change removes a row.
            sizes: As in `Events`; if None, numbered changes use the bytes of their columns.
            number: The number of each change within its record; None if a record changes at most one row.
            unsent: By column: which changes keep the value of the key's previous row, since the record lacks the value.
            empties: Whether the only change is the removal of all rows of the table.
        """
        if sizes is None and number is not None:
            sizes = self._own_sizes
        super().__init__(stream, source, self._values_of, number=number, sizes=sizes)
        self.removals = removals
        self.unsent = unsent or {}
        self.empties = empties
        self._columns = arrays

    def slice(self, first: int, last: int) -> TableEvents:
        """Return the changes in [first, last)."""
        assert self.removals is not None, "set at the beginning"
        return TableEvents(
            self.stream,
            self.source.slice(first, last - first),
            {name: array.slice(first, last - first) for name, array in self._columns.items()},
            self.removals[first:last],
            number=None if self.number is None else self.number[first:last],
            unsent={name: keeps[first:last] for name, keeps in self.unsent.items()},
        )

    def with_sent(self, kept: Mapping[str, pa.Array]) -> TableEvents:
        """Return the changes with the values that their records lack.

        Args:
            kept: The columns in `unsent`, with the values of all changes.
        """
        assert self.removals is not None, "set at the beginning"
        columns = {**self._columns, **kept}
        return TableEvents(self.stream, self.source, columns, self.removals, number=self.number)

    def removing(self, keys: Sequence[pa.Array]) -> TableEvents:
        """Return a removal for each row of the table, in place of the single change that removes all rows (`empties`).

        Args:
            keys: The PRIMARY KEY columns of all rows of the table; the rows must be ordered by key.
        """
        count = len(keys[0])
        arrays = _nulls(self.stream, count) | dict(zip(self.stream.partition_key, keys, strict=True))
        source = repeated_records(self.source, np.zeros(count, np.int64))
        return TableEvents(self.stream, source, arrays, np.ones(count, np.bool_), number=np.arange(count))

    def _own_sizes(self) -> Ints:
        return sum(map(value_sizes, self._columns.values()), np.zeros(self.count, np.int64))

    def _values_of(self, column: StreamColumn) -> list[object]:
        values: list[object] = self._columns[column.name].to_pylist()
        return values

    def declares(self, name: Reference) -> bool:
        """Tell whether the table declares the column with a type that is not nested.

        Callers read a column that is not declared as an Arrow array (`column`). Nested columns must be read in this
        way, because `values_at` of this class returns maps as lists of entries, not as dicts.
        """
        declared = self._declared.get(name)
        return declared is not None and not declared.type.fields and declared.type.element is None

    def _build(self, name: Reference) -> pa.Array:
        array = self._columns.get(name) if isinstance(name, str) else None
        if array is None:
            return super()._build(name)
        kind = arrow_type(self._declared[name].type)
        return array if array.type == kind else array.cast(kind)
