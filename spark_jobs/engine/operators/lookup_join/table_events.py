"""Records of a stream → events: those of a declared stream, or the changes of a table's rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grouping.model.catalog import Stream, StreamColumn
from grouping.model.expression import Reference
from grouping.plan.table_changes import changed_table
from grouping.settings.settings import Settings
from spark_jobs.engine.decode.decode import decode_pieces
from spark_jobs.engine.operators.lookup_join.changes import decode_changes
from spark_jobs.engine.rows.arrays import Ints
from spark_jobs.engine.rows.events import Events, arrow_type

__all__ = ["TableEvents", "decode_stream"]


def decode_stream(
    batch: pa.RecordBatch, stream: Stream, settings: Settings
) -> Iterator[tuple[Events, pa.RecordBatch | None]]:
    """Decode a batch of source records piece by piece; a piece is as `decode.decode` returns it."""
    if stream.changes_of:
        yield _decode_changes(batch, stream, settings)
    else:
        yield from decode_pieces(batch, stream, settings)


def _decode_changes(batch: pa.RecordBatch, stream: Stream, settings: Settings) -> tuple[Events, pa.RecordBatch | None]:
    """Decode records of a table's topic, each of which sets a row or removes one."""
    table = changed_table(stream)
    changes, letters = decode_changes(batch, table, settings)
    offsets = batch["offset"].to_numpy()
    good = pa.array(np.searchsorted(offsets, changes.offset))
    removed = changes.row < 0
    row = pa.array(changes.row, mask=removed)
    arrays = {name: changes.rows.column(name).take(row) for name in changes.rows.schema.names}
    arrays |= dict(zip(table.key, changes.keys, strict=True))
    return TableEvents(stream, batch.take(good), arrays, removed), letters


class TableEvents(Events):
    """Changes of a table as events. A removal has the columns of the PRIMARY KEY, and NULL in the others."""

    def __init__(
        self,
        stream: Stream,
        source: pa.RecordBatch,
        arrays: Mapping[str, pa.Array],
        removals: NDArray[np.bool_],
        sizes: Callable[[], Ints] | None = None,
    ) -> None:
        """Keep the changes.

        Args:
            stream: The stream of the table's changes.
            source: The good records.
            arrays: The columns by name.
            removals: Whether each record removes the row.
            sizes: As in `Events`.
        """
        super().__init__(stream, source, self._values_of, sizes=sizes)
        self.removals = removals
        self._columns = arrays

    def _values_of(self, column: StreamColumn) -> list[object]:
        values: list[object] = self._columns[column.name].to_pylist()
        return values

    def declares(self, name: Reference) -> bool:
        """Tell whether the table declares the column, and its type is not nested: nested values have Arrow's form."""
        declared = self._declared.get(name)
        return declared is not None and not declared.type.fields and declared.type.element is None

    def _build(self, name: Reference) -> pa.Array:
        array = self._columns.get(name) if isinstance(name, str) else None
        if array is None:
            return super()._build(name)
        kind = arrow_type(self._declared[name].type)
        return array if array.type == kind else array.cast(kind)
