"""Decodes records of a table's topic into changes of rows, and dead letters.

As in `spark_jobs.engine.decode`, only the record and the table decide whether a record becomes a dead letter. A record
that removes a missing row is no dead letter, because compaction of the topic may have deleted the record of the row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from grouping.model.catalog import StreamColumn
from grouping.model.table import Table
from grouping.settings.settings import Settings
from spark_jobs.engine.decode.decode import FormatReader, json_reader, record_reader
from spark_jobs.engine.decode.envelopes.row_writer import flat_columns
from spark_jobs.engine.decode.json_lenient import Leniency
from spark_jobs.engine.index import Ints
from spark_jobs.engine.index.key_tuples import KeyTuples
from spark_jobs.engine.operators.lookup_join.images import naming, read_images
from spark_jobs.engine.rows.events import column_array
from spark_jobs.engine.rows.output import dead_letters

__all__ = ["Changes", "decode_changes"]

_NO_PREFIXES: Mapping[int, str] = {}
_WITHOUT_ORDER = (
    "The record removes all rows, and its topic has several partitions: the order of the record among changes in other "
    "partitions is unknown. Give the topic one partition."
)


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes of a table's rows. The changes of a partition are in the order of their records.

    A record with a changed key makes two changes: it removes the row of the old key, and then sets the row of the new
    key. The removals of a record come first. If a record removes and sets the same row, only the row that it sets is a
    change.
    """

    partition: NDArray[np.int32]
    offset: Ints
    keys: tuple[pa.Array, ...]
    """The PRIMARY KEY columns, without NULLs."""
    row: NDArray[np.int32]
    """For each change, the index of the new row in `rows`; -1 if the change removes a row."""
    rows: pa.RecordBatch
    """The rows that changes set, with all columns."""
    unavailable: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    """By column: which of `rows` keep the value of the key's previous row, since their record lacks the value."""
    emptied: tuple[int, ...] = ()
    """The offsets of records that remove all rows. There are such records only if the topic has one partition."""

    def __len__(self) -> int:
        return int(self.offset.size)

    @classmethod
    def concat(cls, parts: Sequence[Changes]) -> Changes:
        """Return the changes of all parts, in their order."""
        if len(parts) == 1:
            return parts[0]
        counts = [part.rows.num_rows for part in parts]
        before = np.cumsum([0, *counts])
        names = {name for part in parts for name in part.unavailable}
        unavailable = {
            name: np.concatenate(
                [
                    part.unavailable.get(name, np.zeros(count, np.bool_))
                    for part, count in zip(parts, counts, strict=True)
                ]
            )
            for name in names
        }
        rows = [np.where(part.row < 0, -1, part.row + first) for part, first in zip(parts, before, strict=False)]
        return cls(
            np.concatenate([part.partition for part in parts]),
            np.concatenate([part.offset for part in parts]),
            tuple(pa.concat_arrays(arrays) for arrays in zip(*(part.keys for part in parts), strict=True)),
            np.concatenate(rows).astype(np.int32),
            pa.concat_batches([part.rows for part in parts]),
            unavailable,
            tuple(offset for part in parts for offset in part.emptied),
        )

    def between(self, begin: int, end: int) -> Changes:
        """Return the changes of the records at offsets in [begin, end); the topic must have one partition."""
        first, last = np.searchsorted(self.offset, [begin, end]).tolist()
        some = slice(first, last)
        keys = tuple(array.slice(first, last - first) for array in self.keys)
        return Changes(self.partition[some], self.offset[some], keys, self.row[some], self.rows, self.unavailable)


def decode_changes(
    batch: pa.RecordBatch, table: Table, settings: Settings, partitions: int = 1
) -> tuple[Changes, pa.RecordBatch | None]:
    """Decode a batch of a table's records.

    Args:
        batch: Records with the columns key, value, partition and offset of Spark's Kafka source.
        table: The table.
        settings: The evaluator's settings, with the topic of dead letters.
        partitions: The number of the topic's partitions. If there are several, a record that removes all rows becomes a
            dead letter, because its order among the changes of other partitions is unknown.

    Returns:
        The changes of the good records; and a dead letter (code ``undecodable``) for each bad record, or None if there
        is no bad record.
    """
    wrong: dict[int, str] = {}
    images = read_images(batch, table, wrong)
    if partitions > 1:
        wrong.update(dict.fromkeys(images.emptied_at, _WITHOUT_ORDER))
    key_columns = tuple(column for name in table.key for column in table.columns if column.name == name)
    of_key = dict.fromkeys(images.named_at, naming(table))
    which, rows = _decoded(images.set, images.set_at, _row_reader(table), table.columns, wrong)
    set_at = images.set_at[which]
    left, removed = _decoded(
        images.removed, images.removed_at, _flat_reader(table, key_columns), key_columns, wrong, of_key
    )
    removed_at = images.removed_at[left]
    for name in table.key:
        _note_nulls(rows.column(name), set_at, name, wrong)
        _note_nulls(removed.column(name), removed_at, name, wrong, of_key)
    if wrong:
        bad = np.array(list(wrong))
        kept, still = ~np.isin(set_at, bad), ~np.isin(removed_at, bad)
        which, set_at, rows = which[kept], set_at[kept], rows.filter(pa.array(kept))
        removed_at, removed = removed_at[still], removed.filter(pa.array(still))
    letters = dead_letters(batch, dict(sorted(wrong.items())), "undecodable", table, settings) if wrong else None
    unavailable = _masks(images.unavailable, which)
    again = _set_again(removed_at, removed, set_at, rows, table.key)
    if again.any():
        removed_at, removed = removed_at[~again], removed.filter(pa.array(~again))
    keys = [rows.column(name) for name in table.key]
    row = np.arange(set_at.size, dtype=np.int32)
    at = set_at
    if removed_at.size:
        at = np.concatenate([removed_at, set_at])  # the sort is stable, so the removals of a record come first
        order = np.argsort(at, kind="stable")
        at = at[order]
        row = np.concatenate([np.full(removed_at.size, -1, np.int32), row])[order]
        places = pa.array(order)
        keys = [pa.concat_arrays([removed.column(name), rows.column(name)]).take(places) for name in table.key]
    partition: NDArray[np.int32] = batch["partition"].to_numpy()[at]
    offsets = batch["offset"].to_numpy()
    emptied = tuple(int(offsets[place]) for place in images.emptied_at if place not in wrong)
    return Changes(partition, offsets[at], tuple(keys), row, rows, unavailable, emptied), letters


def _row_reader(table: Table) -> FormatReader:
    """Return the reader of rows. A row is a flat JSON object with each column under its name, except in Avro."""
    if table.format == "avro":
        return record_reader(table.format, table.columns, table.avro_schema or "", table.framing)
    return _flat_reader(table, table.columns)


def _flat_reader(table: Table, columns: tuple[StreamColumn, ...]) -> FormatReader:
    return json_reader(flat_columns(columns), Leniency(timestamps=table.encoding.timestamps))


def _decoded(
    values: pa.Array,
    at: Ints,
    reader: FormatReader,
    columns: Sequence[StreamColumn],
    wrong: dict[int, str],
    of_key: Mapping[int, str] = _NO_PREFIXES,
) -> tuple[Ints, pa.RecordBatch]:
    """Return the places of the good values, and their columns; the detail of each bad value is added to `wrong`.

    Args:
        values: The values to read.
        at: The place of each value's record in the batch.
        reader: The reader of the values.
        columns: The columns to read.
        wrong: By place of a record: what is wrong with the record.
        of_key: By place of a record, the beginning of the detail if the record's key is wrong.
    """
    read, refused = reader(values)
    arrays = {column.name: column_array(read(column), column.type) for column in columns}
    which = np.arange(at.size)
    if refused:
        found = ((int(at[place]), detail) for place, detail in refused.items())
        wrong.update({record: of_key.get(record, "") + detail for record, detail in found})
        which = np.delete(which, list(refused))
    return which, pa.record_batch(arrays)


def _note_nulls(
    keys: pa.Array, at: Ints, name: str, wrong: dict[int, str], of_key: Mapping[int, str] = _NO_PREFIXES
) -> None:
    if keys.null_count:
        for record in at[pc.is_null(keys).to_numpy(zero_copy_only=False)].tolist():
            wrong.setdefault(record, f'{of_key.get(record, "")}Column "{name}" of the PRIMARY KEY is NULL.')


def _masks(unavailable: Mapping[int, tuple[str, ...]], which: Ints) -> dict[str, NDArray[np.bool_]]:
    """Return by column which rows keep the value of their key's previous row.

    Args:
        unavailable: By index of a row in `Images.set`, the columns that keep their value.
        which: The index of each row in `Images.set`; ascending.
    """
    masks: dict[str, NDArray[np.bool_]] = {}
    for number, names in unavailable.items():
        place = int(np.searchsorted(which, number))
        if place < which.size and which[place] == number:
            for name in names:
                masks.setdefault(name, np.zeros(which.size, np.bool_))[place] = True
    return masks


def _set_again(
    removed_at: Ints, removed: pa.RecordBatch, set_at: Ints, rows: pa.RecordBatch, key: Sequence[str]
) -> NDArray[np.bool_]:
    """Return for each removal whether the same record also sets the key's row, so that the row is only changed."""
    again = np.zeros(removed_at.size, np.bool_)
    left, right = (np.flatnonzero(np.isin(*pair)) for pair in ((removed_at, set_at), (set_at, removed_at)))
    if left.size:
        parts = [(removed, pa.array(left)), (rows, pa.array(right))]
        columns = [pa.concat_arrays([part.column(name).take(places) for part, places in parts]) for name in key]
        keys = KeyTuples([pa.array(np.concatenate([removed_at[left], set_at[right]])), *columns])
        order = keys.order()
        run = np.cumsum(np.append([0], ~keys.take(order).repeats()))
        sets = np.bincount(run, weights=order >= left.size) > 0
        own = order < left.size
        again[left[order[own]]] = sets[run[own]]
    return again
