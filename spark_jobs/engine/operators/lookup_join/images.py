"""Finds the rows that the records of a batch set, and the keys that the records remove. No value is decoded yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import pyarrow as pa

from grouping.model.catalog import StreamColumn
from grouping.model.change_format import is_change_format
from grouping.model.table import Table
from spark_jobs.engine.decode.envelopes.canal import canal_changes
from spark_jobs.engine.decode.envelopes.change import RowChange, RowChanges
from spark_jobs.engine.decode.envelopes.debezium import debezium_changes
from spark_jobs.engine.decode.envelopes.maxwell import maxwell_changes
from spark_jobs.engine.decode.envelopes.record_key import KeyWriter
from spark_jobs.engine.decode.envelopes.row_writer import RowWriter
from spark_jobs.engine.decode.json_exact import WrongRecord
from spark_jobs.engine.index import Ints

__all__ = ["Images", "naming", "read_images"]

_READERS = {"debezium-json": debezium_changes, "maxwell-json": maxwell_changes, "canal-json": canal_changes}


@dataclass(slots=True)
class Images:
    """The rows that records set, and the keys that they remove. The removals of a record come before its rows."""

    set: pa.Array
    """Rows as binary values, in the order of their records."""
    set_at: Ints
    """For each row of `set`, the place of its record in the batch."""
    removed: pa.Array
    """Keys as binary values; a value may be a whole row, of which only the key is read."""
    removed_at: Ints
    """For each key of `removed`, the place of its record in the batch."""
    named_at: frozenset[int] = frozenset()
    """The places of records that remove a row by the record's key, not by a row in the value."""
    unavailable: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """By index of a row in `set`: the columns that keep the value of the key's previous row."""
    emptied_at: tuple[int, ...] = ()
    """The places of records that remove all rows."""


def read_images(batch: pa.RecordBatch, table: Table, wrong: dict[int, str]) -> Images:
    """Return the rows and keys of a batch.

    Args:
        batch: Records with the columns key and value.
        table: The table.
        wrong: By place of a record: what is wrong with it. Bad records are added.
    """
    if is_change_format(table.format) or any(column.from_text for column in table.columns):
        return _read_changes(batch, table, wrong)
    values = batch["value"]
    present = values.is_valid()
    set_at = np.flatnonzero(present.to_numpy(zero_copy_only=False))
    if set_at.size == batch.num_rows:
        return Images(values, set_at, batch["key"].slice(0, 0), set_at[:0])
    writer = _key_writer(table)
    keys, at = [], []
    for row in np.flatnonzero(~present.to_numpy(zero_copy_only=False)).tolist():
        if (key := _removal(batch["key"][row].as_py(), table, writer, row, wrong)) is not None:
            keys.append(key)
            at.append(row)
    removed, removed_at = pa.array(keys, pa.binary()), np.array(at, np.int64)
    return Images(values.filter(present), set_at, removed, removed_at, frozenset(at))


def _read_changes(batch: pa.RecordBatch, table: Table, wrong: dict[int, str]) -> Images:
    """Return the rows and keys of records whose values are changes, or whose keys contain columns of the table."""
    row_writer, before_writer = _row_writers(table)
    key_writer = _key_writer(table)
    read = _READERS.get(table.format, _plain_change)
    rows: list[bytes] = []
    set_at: list[int] = []
    removed: list[bytes] = []
    removed_at: list[int] = []
    named_at: set[int] = set()
    unavailable: dict[int, tuple[str, ...]] = {}
    emptied: list[int] = []
    for place, (value, key) in enumerate(zip(batch["value"].to_pylist(), batch["key"].to_pylist(), strict=True)):
        try:
            found = read(value)
            for change in found.changes:
                if change.empties:
                    emptied.append(place)
                if change.removed is not None:
                    removed.append(before_writer.write(change.removed, found.schema, key).text)
                    removed_at.append(place)
                elif change.by_key and (named := _removal(key, table, key_writer, place, wrong)) is not None:
                    removed.append(named)
                    removed_at.append(place)
                    named_at.add(place)
                if change.set is not None:
                    row = row_writer.write(change.set, found.schema, key)
                    if row.unavailable:
                        unavailable[len(rows)] = tuple(row.unavailable)
                    rows.append(row.text)
                    set_at.append(place)
        except WrongRecord as exc:
            wrong[place] = str(exc)
    return Images(
        pa.array(rows, pa.binary()),
        np.array(set_at, np.int64),
        pa.array(removed, pa.binary()),
        np.array(removed_at, np.int64),
        frozenset(named_at),
        unavailable,
        tuple(emptied),
    )


def _plain_change(value: bytes | None) -> RowChanges:
    return RowChanges([RowChange(by_key=True) if value is None else RowChange(set=value)])


def naming(table: Table) -> str:
    """Return the beginning of a dead letter's detail for a record whose key should name the removed row."""
    lacks = '"before"' if table.format == "debezium-json" else "value"
    return f"The record has no {lacks}, and its key names no row. "


def _removal(key: bytes | None, table: Table, writer: KeyWriter, place: int, wrong: dict[int, str]) -> bytes | None:
    """Return the PRIMARY KEY that a record's key contains. Without one, add the reason to `wrong`, and return None."""
    if key is None:
        lacks = 'a "before"' if table.format == "debezium-json" else "a value"
        wrong[place] = f"The record has neither {lacks} nor a key."
        return None
    try:
        return writer.row_key(key)
    except WrongRecord as exc:
        wrong[place] = f"{naming(table)}{exc}"
        return None


@lru_cache(maxsize=1024)
def _key_writer(table: Table) -> KeyWriter:
    return KeyWriter(_key_columns(table), table.encoding)


@lru_cache(maxsize=1024)
def _row_writers(table: Table) -> tuple[RowWriter, RowWriter]:
    """Return the writer of rows after a change, and the writer of the keys of rows before it."""
    after, before = (("after",), ("before",)) if table.format == "debezium-json" else ((), ())
    rows = RowWriter(table.columns, table.encoding, base=after)
    return rows, RowWriter(_key_columns(table), table.encoding, base=before)


def _key_columns(table: Table) -> tuple[StreamColumn, ...]:
    return tuple(column for name in table.key for column in table.columns if column.name == name)
