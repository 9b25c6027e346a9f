"""Reads Protobuf records by the descriptor in their stream's definition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from operator import attrgetter, itemgetter
from typing import Any

import pyarrow as pa
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from grouping.model.catalog import StreamColumn
from grouping.model.sql_type import STRING, TIMESTAMP, WHOLE_BITS, SqlType
from schemas.avro_writers import CONFLUENT_BYTES
from schemas.proto_columns import TIMESTAMP_MESSAGE, is_map, message_path, message_type, wrapped_field
from spark_jobs.engine.decode.framing import NO_SCHEMA_ID
from spark_jobs.engine.decode.json_exact import WrongRecord
from spark_jobs.engine.decode.misfit import Misfit, checked_part, misfit_detail, whole_check
from spark_jobs.engine.rows.varints import varint

__all__ = ["ProtoReader", "message_header"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NANOS = 10**9
_PER_BYTE = 4
"""The number of values in arrays and maps that a record may have for each of its bytes."""
_BESIDES = 10_000
"""The number of values in arrays and maps that any record may have in addition to `_PER_BYTE` for each byte."""
_FIELD_BITS = {3: 64, 4: 65, 5: 32, 6: 65, 7: 33, 13: 33, 15: 32, 16: 64, 17: 32, 18: 64}
"""By the number of a field's type: the number of bits of a signed number that can hold every value of the field."""

_ReadField = Callable[[Any], Any]


class ProtoReader:
    """Reads the Protobuf records of one stream."""

    def __init__(self, columns: Sequence[StreamColumn], descriptor: str, message: str, framing: str) -> None:
        """Make a reader of the messages of one type.

        Args:
            columns: The columns, each a field of the message.
            descriptor: A FileDescriptorSet in base64.
            message: The full name of the message.
            framing: ``raw`` or ``confluent``.
        """
        found = message_type(descriptor, message)
        self._name = message
        self._parse = GetMessageClass(found).FromString
        self._headers = _headers(found) if framing == "confluent" else ()
        self._left = [0]
        fields = found.fields_by_name
        self._columns = [(column, _reader(fields[column.name], column.type, self._left)) for column in columns]
        self._places = {column.name: place for place, column in enumerate(columns)}

    def __call__(self, values: pa.Array) -> tuple[Callable[[StreamColumn], list[Any]], dict[int, str]]:
        """Decode the values of a batch.

        Returns:
            A function that returns a column of the good records; and by the row of each bad record, its fault.
        """
        records: list[list[Any]] = []
        wrong: dict[int, str] = {}
        for row, value in enumerate(values.to_pylist()):
            try:
                records.append(self._record(value))
            except WrongRecord as exc:
                wrong[row] = str(exc)
            except DecodeError:
                wrong[row] = f"The value is no Protobuf message {self._name}."
        return lambda column: list(map(itemgetter(self._places[column.name]), records)), wrong

    def _record(self, value: bytes | None) -> list[Any]:
        if value is None:
            raise WrongRecord("The record has no value.")
        message = self._parse(self._body(value) if self._headers else value)
        self._left[0] = _PER_BYTE * len(value) + _BESIDES
        found = []
        for column, read in self._columns:
            try:
                found.append(read(message))
            except Misfit as exc:
                raise WrongRecord(misfit_detail(column, exc)) from None
        return found

    def _body(self, value: bytes) -> bytes:
        if len(value) < CONFLUENT_BYTES or value[0]:
            raise WrongRecord(NO_SCHEMA_ID)
        for header in self._headers:
            if value.startswith(header, CONFLUENT_BYTES):
                return value[CONFLUENT_BYTES + len(header) :]
        raise WrongRecord(f"The record is another message of its schema than {self._name}.")


def message_header(path: Sequence[int]) -> bytes:
    r"""Return the bytes that follow the schema id and name a message of the schema.

    Example:
        >>> message_header([0]), message_header([2, 70])
        (b'\x00', b'\x04\x04\x8c\x01')
    """
    return b"\0" if list(path) == [0] else _long_header(path)


def _headers(message: Any) -> tuple[bytes, ...]:
    """Return the two forms of the bytes that name a message."""
    path = message_path(message)
    return message_header(path), _long_header(path)


def _long_header(path: Sequence[int]) -> bytes:
    return b"".join(map(varint, (len(path), *path)))


def _reader(field: Any, sql_type: SqlType, left: list[int]) -> _ReadField:
    """Return a function that reads a field of a message.

    Args:
        field: The field's descriptor.
        sql_type: The type of the column, or of a value nested in it.
        left: A list whose only element is the number of further values in arrays and maps that the record may have.
    """
    name, get = field.name, attrgetter(field.name)
    if is_map(field):
        assert sql_type.element is not None
        return _map(get, _value(field.message_type.fields_by_name["value"], sql_type.element, left), sql_type, left)
    if field.is_repeated:
        assert sql_type.element is not None
        return _array(get, _value(field, sql_type.element, left), sql_type, left)
    convert = _value(field, sql_type, left)
    if field.has_presence:
        if convert is None:
            return lambda message: get(message) if message.HasField(name) else None
        return lambda message: convert(get(message)) if message.HasField(name) else None
    return get if convert is None else lambda message: convert(get(message))


def _value(field: Any, sql_type: SqlType, left: list[int]) -> _ReadField | None:
    """Return a function that checks and converts one value of a field; None if the values need neither."""
    if (inner := wrapped_field(field)) is not None:
        get, convert = attrgetter("value"), _value(inner, sql_type, left)
        return get if convert is None else lambda message: convert(get(message))
    if sql_type.name == "STRUCT":
        there = field.message_type.fields_by_name
        return _struct([(name, _reader(there[name], kind, left)) for name, kind in sql_type.fields])
    if field.message_type is not None and field.message_type.full_name == TIMESTAMP_MESSAGE:
        return _time
    if field.enum_type is not None:
        names = {number: each.name for number, each in field.enum_type.values_by_number.items()}
        return lambda number: names.get(number) or str(number)
    if sql_type.is_decimal:
        return Decimal
    if sql_type == STRING:
        return _text
    if WHOLE_BITS.get(sql_type.name, 99) < _FIELD_BITS.get(field.type, 0):
        return whole_check(sql_type)
    return None


def _struct(parts: list[tuple[str, _ReadField]]) -> _ReadField:
    def convert(message: Any) -> dict[str, Any]:
        return {name: checked_part(read, message, name) for name, read in parts}

    return convert


def _array(get: _ReadField, convert: _ReadField | None, sql_type: SqlType, left: list[int]) -> _ReadField:
    width = _width(sql_type)

    def read(message: Any) -> list[Any]:
        values = get(message)
        _count(left, len(values) * width, sql_type)
        if convert is None:
            return list(values)
        return [checked_part(convert, value, place) for place, value in enumerate(values)]

    return read


def _map(get: _ReadField, convert: _ReadField | None, sql_type: SqlType, left: list[int]) -> _ReadField:
    width = _width(sql_type)

    def read(message: Any) -> dict[str, Any]:
        entries = get(message)
        _count(left, len(entries) * width, sql_type)
        if convert is None:
            return dict(entries)
        return {key: checked_part(convert, value, key) for key, value in entries.items()}

    return read


def _width(sql_type: SqlType) -> int:
    """Return the number of values that an element counts for, without the elements of arrays and maps inside it."""
    element = sql_type.element if sql_type.name in ("ARRAY", "MAP") else None
    return _width(element) if element is not None else 1 + sum(_width(field) for _, field in sql_type.fields)


def _count(left: list[int], values: int, sql_type: SqlType) -> None:
    left[0] -= values
    if left[0] < 0:
        raise Misfit("the record holds far more values than bytes", sql_type)


def _text(value: str | bytes) -> str:
    if isinstance(value, bytes):  # proto2 allows texts that are no valid UTF-8
        raise Misfit("the text is no valid UTF-8", STRING)
    return value


def _time(value: Any) -> datetime:
    if not 0 <= value.nanos < _NANOS:
        raise Misfit("its nanoseconds are out of range", TIMESTAMP)
    try:
        return _EPOCH + timedelta(seconds=value.seconds, microseconds=value.nanos // 1_000)
    except OverflowError:
        raise Misfit("the time is beyond the years 1 to 9999", TIMESTAMP) from None
