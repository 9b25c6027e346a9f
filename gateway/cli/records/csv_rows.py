"""Reads CSV. The first row names columns. Each further row becomes a JSON record, by the types of these columns."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import msgspec

from gateway.cli.records.input_lines import BrokenLine, InputLine, input_lines, key_text
from grouping.model.catalog import StreamColumn
from grouping.model.column_place import RecordPath
from grouping.model.errors import OperationalError, near_name
from grouping.model.sql_type import BINARY, BOOLEAN, DATE, STRING, TIMESTAMP, VARIANT
from grouping.model.wording import counted

__all__ = ["CsvRows"]

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", re.ASCII)
_TRUTH = {"true": b"true", "false": b"false"}
_SHOWN = 40
"""The largest number of characters of a value that a message shows."""


class CsvRows:
    """Reads the rows of a CSV file as records of a stream.

    An empty field is left out of the record, so its column is NULL. If the stream lacks a column of the file, the
    fields of this column become strings.
    """

    def __init__(self, columns: Sequence[StreamColumn], lenient: bool, timestamps: str, longest: int) -> None:
        """Take the declaration of the stream.

        Args:
            columns: The columns.
            lenient: Whether the stream also reads numbers and booleans from texts such as "7".
            timestamps: The unit of numbers in TIMESTAMP columns; empty if such numbers are not allowed.
            longest: The largest number of bytes of a record's key and value together.
        """
        self._columns = {column.name: column for column in columns}
        self._lenient = lenient
        self._timestamps = timestamps
        self._longest = longest
        self.warnings: list[str] = []
        """Sentences about names in the first row that are not columns of the stream. `read` adds them after it has
        checked the first row."""

    def read(self, source: BinaryIO, key: str | None) -> Iterator[InputLine]:
        """Yield the records of an input.

        Args:
            source: The input.
            key: The column whose value becomes the record's key; None for records without a key.

        Raises:
            OperationalError: The first row cannot be used.
        """
        sizes: list[int] = []

        def texts() -> Iterator[str]:
            for line, size in input_lines(source, self._longest):
                sizes.append(size)
                yield line.decode("utf-8", "surrogateescape")

        csv.field_size_limit(self._longest)
        rows = csv.reader(texts(), strict=True)
        if (names := next(rows, None)) is None:
            return
        self._check(names, key)
        too_long = f"the row is longer than {self._longest:,} bytes, the size of a record"
        while True:
            sizes.clear()
            try:
                row = next(rows)
                if max(sizes, default=0) > self._longest:
                    raise BrokenLine(too_long)
                record = self._record(names, row, key) if row else None
            except StopIteration:
                return
            except (BrokenLine, csv.Error) as error:
                fault = too_long if max(sizes, default=0) > self._longest else str(error)
                yield InputLine(rows.line_num, sum(sizes), fault=fault)
                continue
            if record is not None:
                yield InputLine(rows.line_num, sum(sizes), *record)

    def _check(self, names: Sequence[str], key: str | None) -> None:
        """Check the names of the first row.

        Raises:
            OperationalError: The first row cannot be used.
        """
        if not names or len(set(names)) < len(names) or not all(names):
            raise OperationalError("the first row must name each column once", hint="An example is symbol,price,volume")
        if key is not None and key not in names:
            known = near_name(key, names) or f"The file has {', '.join(names)}."
            raise OperationalError(f'the file has no column "{key}" for the key', hint=known)
        for name in names:
            column = self._columns.get(name)
            if column is None:
                hint = near_name(name, self._columns)
                self.warnings.append(f'"{name}" is not a column of the stream' + (f". {hint}" if hint else ""))
            elif column.place.kind != "value" or not all(isinstance(step, str) for step in column.place.path or (0,)):
                raise OperationalError(
                    f'column "{name}" is FROM {column.from_text}, and CSV can write fields of JSON objects only',
                    hint="Publish JSON lines, or records with a Kafka client.",
                )

    def _record(self, names: Sequence[str], row: Sequence[str], key: str | None) -> tuple[bytes | None, bytes]:
        """Return the key and the value of a row.

        Raises:
            BrokenLine: The row cannot become a record.
        """
        if len(row) != len(names):
            raise BrokenLine(f"the row has {counted(len(row), 'field')}, and the first row has {len(names)}")
        record: dict[str, Any] = {}
        key_value = None
        for name, text in zip(names, row, strict=True):
            if any("\ud800" <= character <= "\udfff" for character in text):
                raise BrokenLine(f'column "{name}" is not valid UTF-8')
            value = self._value(name, text)
            if value is None:
                continue
            path = self._columns[name].place.path if name in self._columns else (name,)
            assert path is not None, "the first row was checked"
            _put(record, path, value, name)
            if name == key:
                key_value = key_text(value)
        if key is not None and key_value is None:
            raise BrokenLine("the key column is empty")
        body = msgspec.json.encode(record)
        if len(body) + len(key_value or b"") > self._longest:
            raise BrokenLine(f"key and value are longer than {self._longest:,} bytes, the size of a record")
        return key_value, body

    def _value(self, name: str, text: str) -> bytes | None:
        """Return a field as JSON, by the type of its column; None for NULL.

        Raises:
            BrokenLine: The text of the field is not a value of this type.
        """
        column = self._columns.get(name)
        if not text:
            return None
        if column is None or column.type in (STRING, DATE, BINARY) or column.type.is_decimal:
            return msgspec.json.encode(text)
        bare = text.strip()
        if column.type.is_nested or column.type == VARIANT:
            return _json(name, bare)
        is_number = _NUMBER.fullmatch(bare) is not None
        if column.type == TIMESTAMP:
            return bare.encode() if is_number and self._timestamps else msgspec.json.encode(bare)
        if column.type == BOOLEAN and bare.lower() in _TRUTH:
            return _TRUTH[bare.lower()]
        if is_number and column.type != BOOLEAN:
            return bare.encode()
        if self._lenient:
            return msgspec.json.encode(bare)
        kind = "boolean" if column.type == BOOLEAN else "number"
        raise BrokenLine(f'column "{name}" of type {column.type} has no {kind}: "{text[:_SHOWN]}"')


def _json(name: str, text: str) -> bytes:
    raw = text.encode()
    try:
        msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BrokenLine(f'column "{name}" is not JSON: {error}') from None
    return raw


def _put(record: dict[str, Any], path: RecordPath, value: bytes, name: str) -> None:
    """Put a value at its path into a record.

    Raises:
        BrokenLine: Another column already has a value at this path, at the beginning of this path, or below this path.
    """
    within: Any = record
    for step in path[:-1]:
        within = within.setdefault(step, {})
        if not isinstance(within, dict):
            break
    if not isinstance(within, dict) or path[-1] in within:
        raise BrokenLine(f'column "{name}" and another column have the same path, or one path is within the other')
    within[path[-1]] = msgspec.Raw(value)
