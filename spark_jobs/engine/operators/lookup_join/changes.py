"""Decodes records of a table's topic into changes of rows, and dead letters.

As in `spark_jobs.engine.decode`, the record and the table alone decide whether a record becomes a dead letter. A record
that removes a missing row is no dead letter, because the row may be missing only through compaction of the topic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from grouping.model.catalog import StreamColumn
from grouping.model.sql_type import STRING
from grouping.model.table import Table
from grouping.settings.settings import Settings
from spark_jobs.engine.decode.decode import FormatReader, record_reader
from spark_jobs.engine.index import Ints
from spark_jobs.engine.operators.lookup_join.debezium import read_envelopes
from spark_jobs.engine.operators.lookup_join.images import Images
from spark_jobs.engine.operators.lookup_join.text_keys import read_text_keys
from spark_jobs.engine.rows.events import arrow_type
from spark_jobs.engine.rows.output import dead_letters

__all__ = ["Changes", "decode_changes"]


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes of a table's rows. The changes of a partition are in the order of their records.

    A record with a changed key makes two changes: the old key's row is removed, then the new one's is set.
    """

    partition: NDArray[np.int32]
    offset: Ints
    keys: tuple[pa.Array, ...]
    """The PRIMARY KEY columns, never NULL."""
    row: NDArray[np.int32]
    """By change: the index of the new row in `rows`; -1 where the change removes a row."""
    rows: pa.RecordBatch
    """The rows that changes set, with all columns."""

    def __len__(self) -> int:
        return int(self.offset.size)

    @classmethod
    def concat(cls, parts: Sequence[Changes]) -> Changes:
        """Return the changes of all parts, in their order."""
        if len(parts) == 1:
            return parts[0]
        before = np.cumsum([0, *(part.rows.num_rows for part in parts)])
        rows = [np.where(part.row < 0, -1, part.row + first) for part, first in zip(parts, before, strict=False)]
        return cls(
            np.concatenate([part.partition for part in parts]),
            np.concatenate([part.offset for part in parts]),
            tuple(pa.concat_arrays(arrays) for arrays in zip(*(part.keys for part in parts), strict=True)),
            np.concatenate(rows).astype(np.int32),
            pa.concat_batches([part.rows for part in parts]),
        )


_OF_KEY = "The record has no value, and its key names no row. "
"""The beginning of a dead letter's detail, for a record that should have removed a row."""


def decode_changes(batch: pa.RecordBatch, table: Table, settings: Settings) -> tuple[Changes, pa.RecordBatch | None]:
    """Decode a batch of a table's records.

    Args:
        batch: Columns key, value, partition and offset of Spark's Kafka source.
        table: The table.
        settings: The evaluator's settings, with the topic of dead letters.

    Returns:
        The changes of the good records, and a dead letter (code ``undecodable``) for each bad record; None when
        all are good.
    """
    wrong: dict[int, str] = {}
    images = _images(batch, table, wrong)
    key_columns = tuple(column for name in table.key for column in table.columns if column.name == name)
    set_at, rows = _decoded(images.set, images.set_at, _row_reader(table), table.columns, wrong)
    key_reader, of_key = _key_reader(table, key_columns), "" if table.format == "debezium-json" else _OF_KEY
    removed_at, removed = _decoded(images.removed, images.removed_at, key_reader, key_columns, wrong, of_key)
    for name in table.key:
        _note_nulls(rows.column(name), set_at, name, wrong)
        _note_nulls(removed.column(name), removed_at, name, wrong, of_key)
    if wrong:
        bad = np.array(list(wrong))
        kept, left = ~np.isin(set_at, bad), ~np.isin(removed_at, bad)
        set_at, rows = set_at[kept], rows.filter(pa.array(kept))
        removed_at, removed = removed_at[left], removed.filter(pa.array(left))
    letters = dead_letters(batch, dict(sorted(wrong.items())), "undecodable", table, settings) if wrong else None
    keys = [rows.column(name) for name in table.key]
    row = np.arange(set_at.size, dtype=np.int32)
    at = set_at
    if removed_at.size:
        at = np.concatenate([removed_at, set_at])  # a record with both changes removes first: the sort is stable
        order = np.argsort(at, kind="stable")
        at = at[order]
        row = np.concatenate([np.full(removed_at.size, -1, np.int32), row])[order]
        places = pa.array(order)
        keys = [pa.concat_arrays([removed.column(name), rows.column(name)]).take(places) for name in table.key]
    partition: NDArray[np.int32] = batch["partition"].to_numpy()[at]
    return Changes(partition, batch["offset"].to_numpy()[at], tuple(keys), row, rows), letters


def _images(batch: pa.RecordBatch, table: Table, wrong: dict[int, str]) -> Images:
    """Return the rows set and the keys removed by records, before they are decoded."""
    if table.format == "debezium-json":
        return read_envelopes(batch["value"], wrong)
    present = batch["value"].is_valid()
    set_at = np.flatnonzero(present.to_numpy(zero_copy_only=False))
    if set_at.size == batch.num_rows:
        return Images(batch["value"], set_at, batch["key"].slice(0, 0), set_at[:0])
    keys, at = [], []
    for row in np.flatnonzero(~present.to_numpy(zero_copy_only=False)).tolist():
        if (key := batch["key"][row].as_py()) is None:
            wrong[row] = "The record has neither a value nor a key."
        else:
            keys.append(key)
            at.append(row)
    return Images(batch["value"].filter(present), set_at, pa.array(keys, pa.binary()), np.array(at, np.int64))


def _row_reader(table: Table) -> FormatReader:
    form = "json" if table.format == "debezium-json" else table.format
    return record_reader(form, table.columns, table.avro_schema or "", table.framing)


def _key_reader(table: Table, columns: tuple[StreamColumn, ...]) -> FormatReader:
    if table.format != "debezium-json" and len(columns) == 1 and columns[0].type == STRING:
        return read_text_keys
    return record_reader("json", columns, "", "")


def _decoded(
    values: pa.Array,
    at: Ints,
    reader: FormatReader,
    columns: Sequence[StreamColumn],
    wrong: dict[int, str],
    of_key: str = "",
) -> tuple[Ints, pa.RecordBatch]:
    """Return the places and columns of the good values; `wrong` gets the detail of each bad value, by record."""
    read, refused = reader(values)
    arrays = {column.name: pa.array(read(column), arrow_type(column.type)) for column in columns}
    if refused:
        wrong.update({int(at[place]): of_key + detail for place, detail in refused.items()})
        at = np.delete(at, list(refused))
    return at, pa.record_batch(arrays)


def _note_nulls(keys: pa.Array, at: Ints, name: str, wrong: dict[int, str], of_key: str = "") -> None:
    if keys.null_count:
        for place in np.flatnonzero(pc.is_null(keys).to_numpy(zero_copy_only=False)).tolist():
            wrong.setdefault(int(at[place]), f'{of_key}Column "{name}" of the PRIMARY KEY is NULL.')
