"""Commands, replies and events as docs/ describes them, in JSON and Avro, without the product's code."""

from __future__ import annotations

import io
import json
import random
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import fastavro
from fastavro.schema import to_parsing_canonical_form

from tests.queries import Event, Stream

__all__ = [
    "avro_event",
    "avro_schema",
    "decode_single_object",
    "encode_single_object",
    "fingerprint",
    "json_event",
    "wire_schema",
]

_SCHEMAS = Path(__file__).parents[1] / "schemas"
_AVRO_TYPES: dict[str, object] = {
    "STRING": "string",
    "BOOLEAN": "boolean",
    "INT": "int",
    "BIGINT": "long",
    "DOUBLE": "double",
    "DECIMAL(18,4)": {"type": "bytes", "logicalType": "decimal", "precision": 18, "scale": 4},
    "DATE": {"type": "int", "logicalType": "date"},
    "TIMESTAMP": {"type": "long", "logicalType": "timestamp-micros"},
}


def fingerprint(schema: object) -> bytes:
    """Return a schema's CRC-64-AVRO as single-object encoding writes it (Avro specification, "Schema Fingerprints")."""
    empty = 0xC15D213AA4D7A795
    crc = empty
    for byte in to_parsing_canonical_form(schema).encode():
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (empty & -(crc & 1))
    return crc.to_bytes(8, "little")


def wire_schema(name: str) -> dict[str, object]:
    """Return the published schema of that name (`command`, `reply`, …)."""
    return json.loads((_SCHEMAS / f"{name}.avsc").read_text())


def encode_single_object(schema: object, record: object) -> bytes:
    """Return the record behind the two magic bytes and the fingerprint."""
    return b"\xc3\x01" + fingerprint(schema) + _body(schema, record)


def decode_single_object(schema: object, data: bytes) -> dict[str, object]:
    """Return the record; it must have the encoding and the given schema."""
    assert data[:10] == b"\xc3\x01" + fingerprint(schema), data[:10].hex()
    return fastavro.schemaless_reader(io.BytesIO(data[10:]), schema, None)  # type: ignore[return-value,arg-type]


def json_event(event: Event, rng: random.Random) -> bytes:
    """Return the event as a JSON object, in some form accepted by docs/expressions.md."""
    members = [f"{json.dumps(name)}: {_json(value, rng)}" for name, value in event.values.items()]
    if rng.random() < 0.2:
        members.append('"no column": {"nested": [1, "x", null]}')
    rng.shuffle(members)
    if members and rng.random() < 0.05:
        name = next(iter(event.values))
        members.insert(0, f"{json.dumps(name)}: null")
    before, after = rng.choice((("{", "}"), (" { ", " }\n")))
    return (before + ", ".join(members) + after).encode()


def avro_schema(stream: Stream) -> dict[str, object]:
    """Return a writer's schema with one nullable field per column."""
    fields = [{"name": column.name, "type": ["null", _AVRO_TYPES[column.type]]} for column in stream.columns]
    return {"type": "record", "name": "Event", "fields": fields}


def avro_event(schema: dict[str, object], event: Event, framing: str) -> bytes:
    """Return the event in Avro behind that framing's prefix."""
    prefixes = {"single-object": b"\xc3\x01" + fingerprint(schema), "confluent": b"\x00\x00\x00\x00\x2a", "raw": b""}
    names = [field["name"] for field in schema["fields"]]  # type: ignore[attr-defined]
    return prefixes[framing] + _body(schema, {name: event.values.get(name) for name in names})


def _body(schema: object, record: object) -> bytes:
    sink = io.BytesIO()
    fastavro.schemaless_writer(sink, fastavro.parse_schema(schema), record)  # type: ignore[arg-type]
    return sink.getvalue()


def _json(value: object, rng: random.Random) -> str:
    if isinstance(value, datetime):
        return json.dumps(rng.choice((value.isoformat(), value.isoformat()[:-6] + "Z", value.isoformat()[:-6])))
    if isinstance(value, date):
        return json.dumps(value.isoformat())
    if isinstance(value, Decimal):
        return rng.choice((f'"{value:f}"', f"{value:f}"))
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15 and str(value) != "-0.0":
        return rng.choice((repr(value), str(int(value))))
    return json.dumps(value, ensure_ascii=rng.random() < 0.5)
