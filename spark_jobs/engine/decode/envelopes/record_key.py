"""The key of a record as JSON: a plain text, a quoted text, or an object of the key's columns.

Kafka Connect may wrap each of these forms in an object with ``schema`` and ``payload``.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from grouping.model.catalog import StreamColumn
from grouping.model.change_format import ValueEncoding
from grouping.model.sql_type import BINARY, DATE, STRING, TIMESTAMP
from spark_jobs.engine.decode.envelopes.column_values import converter
from spark_jobs.engine.decode.envelopes.connect_schema import read_schema
from spark_jobs.engine.decode.envelopes.envelope_fault import json_fault
from spark_jobs.engine.decode.envelopes.json_parts import JsonParts, object_parts
from spark_jobs.engine.decode.json_exact import WrongRecord
from spark_jobs.engine.decode.misfit import Misfit, misfit_detail

__all__ = ["KeyWriter"]

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_REFUSALS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class KeyWriter:
    """Writes columns of a record's key as the fields of a flat JSON object, each under the column's name."""

    def __init__(self, columns: Sequence[StreamColumn], encoding: ValueEncoding) -> None:
        """Make a writer of columns; each is declared FROM KEY, or is a field of the key with the column's name.

        Args:
            columns: The columns.
            encoding: The format of the records, and its options.
        """
        self._encoding = encoding
        self._whole = [column for column in columns if column.place.kind == "key" and column.place.path is None]
        self._placed = [column for column in columns if column not in self._whole]
        paths = [(each.place.path or () if each.place.kind == "key" else (each.name,)) for each in self._placed]
        self._parts = JsonParts(paths)
        self._paths = paths
        self._inner = not any(path[:1] in (("payload",), ("schema",)) for path in paths)
        only = columns[0] if len(columns) == 1 else None
        self._text = only if only is not None and only.type == STRING and only.place.kind != "key" else None

    def row_key(self, key: bytes) -> bytes:
        """Return the JSON object of a key that names a row. If no object can be made, the key is returned unchanged.

        Raises:
            WrongRecord: A value does not fit its column, or the key is broken.

        Example:
            >>> writer = KeyWriter([StreamColumn("id", "STRING")], ValueEncoding("json"))
            >>> [writer.row_key(key) for key in (b"abc", b'"abc"', b'{"id": "abc"}')] == [b'{"id":"abc"}'] * 3
            True
        """
        if self._text is not None:
            inner, _ = _without_schema(key)
            if inner[:1] == b'"' and _is_json(inner):
                return b"{" + _named(self._text.name, inner) + b"}"
            if self._text.name not in (object_parts(inner) or ()):
                return b"{" + _named(self._text.name, _text(key)) + b"}"
        if not self._whole and object_parts(_without_schema(key)[0]) is None:
            return key  # the reader of JSON objects says what is wrong
        return b"{" + b",".join(self.fields(key)) + b"}"

    def fields(self, key: bytes, misfits: dict[str, int] | None = None) -> list[bytes]:
        """Return the fields of the columns; a column that is not in the key is left out.

        Args:
            key: The record's key.
            misfits: By column, the number of values that do not fit and are left out; the method adds to these numbers.
                If None, a value that does not fit makes the record wrong.

        Raises:
            WrongRecord: A value does not fit its column and `misfits` is None, or a column has a path in the key and
                the key is no JSON.
        """
        found: list[bytes] = []
        if self._placed:
            inner, schema_text = _without_schema(key) if self._inner else (key, b"")
            schema = read_schema(schema_text) if schema_text else None
            try:
                parts = self._parts.find(inner)
            except _REFUSALS:
                raise WrongRecord(f"The record's key is no JSON: {json_fault(inner)}") from None
            for column, path, part in zip(self._placed, self._paths, parts, strict=True):
                if part is None:
                    continue
                of_part = None if schema is None else schema.at(path)
                convert = converter(column.type, of_part, self._encoding)
                try:
                    raw = part if convert is None or part == b"null" else convert(part)
                    found.append(_named(column.name, raw))
                except ValueError as exc:
                    _count(column, exc, misfits)
        for column in self._whole:
            try:
                found.append(_named(column.name, _whole_key(key, column)))
            except ValueError as exc:
                _count(column, exc, misfits)
        return found


def _count(column: StreamColumn, exc: ValueError, misfits: dict[str, int] | None) -> None:
    if misfits is None:
        if isinstance(exc, WrongRecord):
            raise exc
        misfit = exc if isinstance(exc, Misfit) else Misfit(str(exc), column.type)
        raise WrongRecord(misfit_detail(column, misfit)) from None
    misfits[column.name] = misfits.get(column.name, 0) + 1


def _whole_key(key: bytes, column: StreamColumn) -> bytes:
    """Return a whole key as the JSON text of a column's value."""
    if column.type == BINARY:
        return _encode(key)
    if column.type in (STRING, DATE, TIMESTAMP) or column.type.is_decimal:
        return _text(key)
    if not _is_json(key):
        raise Misfit("the text is no JSON", column.type)
    return key


def _without_schema(key: bytes) -> tuple[bytes, bytes]:
    """Return a key without Kafka Connect's wrapping, and the JSON text of its schema; empty if the key has none."""
    parts = object_parts(key)
    if parts is not None and parts.keys() == {"schema", "payload"}:
        return parts["payload"], parts["schema"]
    return key, b""


def _text(key: bytes) -> bytes:
    try:
        return _encode(key.decode())
    except UnicodeDecodeError:
        raise WrongRecord("The key is no valid UTF-8.") from None


def _is_json(text: bytes) -> bool:
    try:
        _decode(text)
    except _REFUSALS:
        return False
    return True


def _named(name: str, raw: bytes) -> bytes:
    return _encode(name) + b":" + raw
