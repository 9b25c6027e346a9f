"""Makes records of a source topic from the rows of a test: encodes the values, and fills in places and times."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from io import BytesIO

import fastavro

from gateway.evaluation.records import PlacedRecord
from gateway.testing.stream import Stream
from schemas.avro_columns import single_object_header
from schemas.avro_writers import id_header, read_writers

__all__ = ["Record", "Row", "json_record", "placed"]

_STEP = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class Record:
    """A record of the source topic, for tests that need more than its value."""

    value: Mapping[str, object] | list[object] | bytes | None
    """The value. A row is encoded in the stream's format; if the stream has several schemas, the schema with the
    largest id is used. A list becomes a JSON array. Bytes stay unchanged. None makes a record without a value."""
    key: str | bytes | None = None
    time: datetime | None = None
    """The record's time, with a zone; by default a millisecond after the previous record."""
    partition: int = 0
    offset: int | None = None
    """The offset in the partition; by default one more than that of the previous record in the partition."""
    headers: Mapping[str, str | bytes] = field(default_factory=dict)
    """The headers, for columns FROM HEADER."""


Row = Mapping[str, object] | list[object] | bytes | Record | None


def placed(rows: Iterable[Row], stream: Stream, begin: datetime) -> list[PlacedRecord]:
    """Return rows as records, in their order.

    Args:
        rows: The rows of the test.
        stream: The stream of the rows.
        begin: The time of the first record, if its row has no time.

    Raises:
        ValueError: A time has no zone, offsets do not ascend, or a row does not fit the Avro or Protobuf schema.
        TypeError: A value in a row has no form in JSON.
    """
    following: dict[int, int] = {}
    at = begin - _STEP
    found = []
    for row in rows:
        record = row if isinstance(row, Record) else Record(row)
        at = at + _STEP if record.time is None else record.time
        if at.tzinfo is None:
            raise ValueError(f"the time {at} needs a zone, for example datetime.UTC")
        first = following.get(record.partition, 0)
        offset = first if record.offset is None else record.offset
        if offset < first:
            raise ValueError(f"offset {offset} of partition {record.partition} does not follow {first - 1}")
        following[record.partition] = offset + 1
        key = None if record.key is None else _bytes(record.key)
        headers = tuple((name, _bytes(text)) for name, text in record.headers.items())
        found.append(PlacedRecord(_written(record.value, stream), key, at, record.partition, offset, headers))
    return found


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def _written(value: Mapping[str, object] | list[object] | bytes | None, stream: Stream) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    declared = stream.declared
    if declared.format not in ("avro", "protobuf"):
        framed = declared.format == "json" and declared.framing == "confluent"
        return (id_header(0) if framed else b"") + json_record(value)
    if isinstance(value, list):
        raise ValueError(f"a list is not a record of stream {stream.name}")
    if declared.descriptor and declared.message:
        return _proto_record(value, stream)
    schema, schema_id = declared.avro_schema or "", 0
    if declared.schemas:
        schema_id, written = max(read_writers(declared.schemas).items())
        schema = json.dumps(written)
    body = BytesIO()
    try:
        fastavro.schemaless_writer(body, fastavro.parse_schema(json.loads(schema)), dict(value))
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise ValueError(f"no Avro record of stream {stream.name} holds {dict(value)}: {error}") from error
    framings = {"single-object": lambda: single_object_header(schema), "confluent": lambda: id_header(schema_id)}
    return framings.get(declared.framing, bytes)() + body.getvalue()


def _proto_record(row: Mapping[str, object], stream: Stream) -> bytes:
    from google.protobuf.json_format import ParseDict, ParseError
    from google.protobuf.message_factory import GetMessageClass

    from schemas.proto_columns import message_path, message_type
    from spark_jobs.engine.decode.proto_events import message_header

    declared = stream.declared
    found = message_type(declared.descriptor or "", declared.message or "")
    try:
        body: bytes = ParseDict(json.loads(json_record(row)), GetMessageClass(found)()).SerializeToString()
    except ParseError as error:
        raise ValueError(f"no Protobuf record of stream {stream.name} holds {dict(row)}: {error}") from error
    return id_header(0) + message_header(message_path(found)) + body if declared.framing == "confluent" else body


def json_record(row: Mapping[str, object] | list[object]) -> bytes:
    """Return a row as JSON.

    NaN and single surrogates are written too, although JSON does not allow them, so that a test can check that the
    decoder refuses them.
    """
    return json.dumps(row if isinstance(row, list) else dict(row), default=_json_value, ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )


def _json_value(value: object) -> object:
    match value:
        case date():
            return value.isoformat()
        case Decimal():
            return str(value)
        case bytes():
            return b64encode(value).decode()
    raise TypeError(f"a row cannot have {value!r}: JSON has no {type(value).__name__}")
