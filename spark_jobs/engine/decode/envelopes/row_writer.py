"""Writes the columns of a change as one flat JSON object, by column name, for the reader of plain JSON records."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import msgspec

from grouping.model.catalog import StreamColumn
from grouping.model.change_format import ValueEncoding
from grouping.model.column_place import RecordPath
from grouping.model.sql_type import STRING
from spark_jobs.engine.decode.envelopes.column_values import converter
from spark_jobs.engine.decode.envelopes.connect_schema import read_schema
from spark_jobs.engine.decode.envelopes.connect_values import Convert
from spark_jobs.engine.decode.envelopes.envelope_fault import json_fault
from spark_jobs.engine.decode.envelopes.json_parts import BLANKS, JsonParts, opened
from spark_jobs.engine.decode.envelopes.record_key import KeyWriter
from spark_jobs.engine.decode.json_exact import NOT_ONE_OBJECT, WrongRecord, read_json, takes_any_json
from spark_jobs.engine.decode.misfit import Misfit, misfit_detail

__all__ = ["RowWriter", "WrittenRow", "flat_columns"]

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_REFUSALS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)

_TEXT = "__debezium_unavailable_value"
_BYTES = b64encode(_TEXT.encode()).decode()
_UNAVAILABLE = (
    _TEXT, _BYTES, [_TEXT], [_BYTES], list(_TEXT.encode()), {_TEXT: _TEXT}, f'{{"{_TEXT}":"{_TEXT}"}}',
)  # fmt: skip
"""Placeholders of Debezium for values that the database did not send: texts, bytes, arrays (also of numbers), maps."""
_MARKS = (_TEXT.encode(), _BYTES.encode(), b"95,95,100,101", b"95, 95, 100, 101")
"""Texts of which every placeholder contains at least one; so a row with none of these texts has no placeholder.

The numbers are the bytes of ``__de``, with and without blanks.
"""
_LONGEST_MARK = 300
"""A number of bytes above the length of every placeholder's JSON text."""
_MOST_SCHEMAS = 256


def flat_columns(columns: Sequence[StreamColumn]) -> tuple[StreamColumn, ...]:
    """Return the columns as they are in a written row, each under its name."""
    return tuple(StreamColumn(column.name, column.type_text) for column in columns)


class WrittenRow(NamedTuple):
    """A flat JSON object."""

    text: bytes
    unavailable: Sequence[str] = ()
    """Columns with a value that the database did not send."""


class RowWriter:
    """Writes rows of one stream or table."""

    def __init__(
        self,
        columns: Sequence[StreamColumn],
        encoding: ValueEncoding,
        *,
        base: RecordPath = (),
        opens: Collection[RecordPath] = (),
        times: Mapping[RecordPath, int] | None = None,
    ) -> None:
        """Make a writer of rows.

        Args:
            columns: The columns, each at a path in the row, or FROM KEY.
            encoding: The format of the records, and its options.
            base: The path from the top of the record's schema to the schema of the row.
            opens: Paths to values that may be JSON strings that hold JSON.
            times: The format's own fields with a time since 1970, and the number of each field's units in a second.
        """
        self._columns = [column for column in columns if column.place.kind == "value"]
        of_key = [column for column in columns if column.place.kind == "key"]
        self._key = KeyWriter(of_key, encoding) if of_key else None
        self._encoding = encoding
        self._has_placeholders = encoding.form == "debezium-json"
        self._base = base
        self._times = times or {}
        self._paths: list[RecordPath] = [column.place.path or () for column in self._columns]
        self._is_object = bool(self._columns) and not takes_any_json(self._columns)
        self._parts = JsonParts(self._paths, opens)
        self._opened = {
            number for number, path in enumerate(self._paths) if path in opens and self._columns[number].type != STRING
        }
        self._names = [_encode(column.name) + b":" for column in self._columns]
        own = all(path == (column.name,) for path, column in zip(self._paths, self._columns, strict=True))
        self._is_flat = own and not of_key and not self._opened
        self._by_schema: dict[bytes, list[Convert | None]] = {}

    def write(
        self, row: bytes, schema: bytes = b"", key: bytes | None = None, misfits: dict[str, int] | None = None
    ) -> WrittenRow:
        """Write a row.

        Args:
            row: The JSON text of the row.
            schema: The JSON text of the record's schema; empty if the record has none.
            key: The record's key.
            misfits: By column, the number of values that do not fit and become NULL; the method adds to these numbers.
                If None, a value that does not fit makes the record wrong.

        Raises:
            WrongRecord: The row is no JSON, or a value does not fit its column and `misfits` is None.
        """
        converters = self._converters(schema)
        marked = self._has_placeholders and any(mark in row for mark in _MARKS)
        if self._is_flat and not marked and not any(converters):
            return WrittenRow(row)
        row = row.strip(BLANKS)
        if self._is_object and row[:1] != b"{":
            read_json(row, any_json=False)  # raises the error that tells what the row is
        try:
            found = self._parts.find(row)
        except _REFUSALS:
            raise WrongRecord(f"{NOT_ONE_OBJECT}{json_fault(row)}") from None
        fields: list[bytes] = []
        unavailable: list[str] = []
        for number, raw in enumerate(found):
            if raw is None:
                continue
            if marked and _is_unavailable(raw):
                unavailable.append(self._columns[number].name)
                continue
            text = opened(raw) if number in self._opened else raw
            convert = converters[number]
            if convert is not None and text != b"null":
                try:
                    text = convert(text)
                except ValueError as exc:
                    self._count(number, exc, misfits)
                    continue
            fields.append(self._names[number] + text)
        if self._key is not None and key is not None:
            fields += self._key.fields(key, misfits)
        return WrittenRow(b"{" + b",".join(fields) + b"}", unavailable)

    def _count(self, number: int, exc: ValueError, misfits: dict[str, int] | None) -> None:
        column = self._columns[number]
        if misfits is None:
            misfit = exc if isinstance(exc, Misfit) else Misfit(str(exc), column.type)
            raise WrongRecord(misfit_detail(column, misfit)) from None
        misfits[column.name] = misfits.get(column.name, 0) + 1

    def _converters(self, schema_text: bytes) -> list[Convert | None]:
        """Return the converter of each column; the converters are made once for all records with equal schemas."""
        found = self._by_schema.get(schema_text)
        if found is None:
            schema = read_schema(schema_text) if schema_text else None
            found = []
            for column, path in zip(self._columns, self._paths, strict=True):
                of_value = None if schema is None else schema.at((*self._base, *path))
                found.append(converter(column.type, of_value, self._encoding, self._times.get(path, 0)))
            if len(self._by_schema) >= _MOST_SCHEMAS:
                self._by_schema.clear()
            self._by_schema[schema_text] = found
        return found


def _is_unavailable(raw: bytes) -> bool:
    if len(raw) > _LONGEST_MARK:
        return False
    try:
        return _decode(raw) in _UNAVAILABLE
    except _REFUSALS:
        return False
