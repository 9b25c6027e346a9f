"""Declarations of streams and tables in every format and with every option of records, with well-formed records."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import fastavro
import msgspec

from gateway.sources.declarations import declared_columns
from gateway.testing import Stream as CheckedStream
from grouping.model.catalog import Stream
from grouping.model.query import CreateTable
from grouping.model.table import Table
from grouping.statements.command import parse
from schemas.avro_columns import single_object_header
from schemas.avro_writers import id_header
from tests.unit.envelopes.changes import bytes_of, decimal_schema, envelope, field, schema_of, variable_schema
from tests.unit.schemas.test_decode_proto import COLUMNS as PROTO_COLUMNS
from tests.unit.schemas.test_decode_proto import DESCRIPTOR, Trade
from tests.unit.schemas.test_schema_ids import COLUMNS as WRITERS_COLUMNS
from tests.unit.schemas.test_schema_ids import SCHEMAS, written

__all__ = ["KafkaRecord", "RecordKind", "record_kinds"]


class KafkaRecord(NamedTuple):
    """A record of a source topic."""

    value: bytes | None
    key: bytes | None = b"k"
    headers: tuple[tuple[str, bytes | None], ...] = ()


class RecordKind(NamedTuple):
    """A declaration, and records that fit it."""

    source: Stream | Table
    records: tuple[KafkaRecord, ...]
    json_from: int | None
    """The number of bytes before the JSON of a value; None if values are no JSON."""


_SCALARS = (
    "symbol STRING, price DOUBLE, low FLOAT, volume BIGINT, qty INT, small SMALLINT, tiny TINYINT, flag BOOLEAN, "
    "amount DECIMAL(18,4), whole DECIMAL(38,0), day DATE, at TIMESTAMP, raw BINARY"
)
_SCALAR_RECORDS = (
    {
        "symbol": "INTC", "price": 99.5, "low": 1.5, "volume": 2**53 + 1, "qty": -1, "small": 300, "tiny": -128,
        "flag": True, "amount": "12345.6789", "whole": 10**37, "day": "2024-02-29",
        "at": "2024-02-29T23:59:59.999999+02:00", "raw": "AQI=",
    },
    {"symbol": "é\u2028\x00", "price": 1e308, "amount": 5, "other": {"a": [1, {"b": None}]}, "flag": False},
    {"at": "2024-02-29 23:59:59", "day": "1969-12-31", "raw": "", "price": -0.0, "volume": -(2**63)},
    {},
)  # fmt: skip
_LOOSE_RECORDS = (
    *_SCALAR_RECORDS,
    {"price": "1.5", "qty": 1.0, "volume": "7", "flag": "true", "amount": "", "at": 1732000000000, "day": ""},
    {"at": "2024-02-29 23:59:59 +0000 UTC", "price": ".50", "tiny": "1e2", "flag": 1, "symbol": "\udc00"},
)
_NESTED = (
    "who STRUCT<id: BIGINT, name: STRING, born: DATE, owes: DECIMAL(10,2)>, tags ARRAY<STRING>, "
    "more MAP<STRING, DOUBLE>, rows ARRAY<STRUCT<n: INT, at: TIMESTAMP, any: VARIANT>>, any VARIANT"
)
_NESTED_RECORDS = (
    {
        "who": {"id": 7, "name": "Ann", "born": "2001-02-03", "owes": "1.25"}, "tags": ["a", None, "é"],
        "more": {"x": 1.5, "y": None}, "rows": [{"n": 1, "at": "2024-01-01T00:00:00Z", "any": [1.50, {}]}, {}, None],
        "any": {"deep": [1e300, "x", None, True]},
    },
    {"who": {}, "tags": [], "more": {}, "rows": [], "any": None},
)  # fmt: skip
_PLACES = (
    "p DOUBLE FROM '$.data.p', q STRING FROM '$.data.q', host STRING FROM '$[\"id.orig_h\"]', n INT FROM '$.k.v[2].n', "
    "data VARIANT FROM '$.data', kind STRING FROM HEADER 'ce_type', count BIGINT FROM HEADER 'count', "
    "at TIMESTAMP FROM HEADER 'at', id STRING FROM KEY, number BIGINT FROM KEY '$.id', \"_time\" STRING FROM '$._time'"
)
_PLACED_RECORD = {
    "data": {"p": 1.5, "q": "x"}, "id.orig_h": "10.0.0.1", "k": {"v": [{}, [], {"n": 3}]}, "_time": "now",
}  # fmt: skip
_HEADERS = (("ce_type", b"order"), ("count", b"17"), ("at", b"2024-01-01T00:00:00Z"), ("count", b"18"))
_SPANS = {
    "resourceLogs": [
        {
            "resource": {"host": f"h{number}"},
            "scopeLogs": [{"scope": {"name": "s"}, "logRecords": [{"body": "x", "n": at} for at in range(3)]}] * 2,
        }
        for number in range(2)
    ]
}
_SPAN_COLUMNS = (
    "body STRING, n BIGINT, scope STRING FROM '^.scope.name', host STRING FROM '^^.resource.host', "
    "kind STRING FROM HEADER 'ce_type', number BIGINT FROM KEY '$.id'"
)
_AVRO = json.dumps(
    {
        "type": "record", "name": "R", "fields": [
            {"name": "symbol", "type": ["null", "string"]},
            {"name": "price", "type": "double"},
            {"name": "small", "type": "int"},
            {"name": "kind", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}},
            {"name": "day", "type": {"type": "int", "logicalType": "date"}},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
            {"name": "tags", "type": {"type": "array", "items": "string"}},
            {"name": "more", "type": {"type": "map", "values": ["null", "long"]}},
            {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 18, "scale": 4}},
            {"name": "node", "type": ["null", {"type": "record", "name": "Node", "fields": [
                {"name": "n", "type": "long"}, {"name": "next", "type": ["null", "Node"]}]}]},
            {"name": "nothing", "type": {"type": "array", "items": "null"}},
        ],
    }
)  # fmt: skip
_AVRO_COLUMNS = (
    "symbol STRING, price DOUBLE, small TINYINT, kind STRING, day DATE, at TIMESTAMP, tags ARRAY<STRING>, "
    "more MAP<STRING, BIGINT>, amount DECIMAL(18,4), node STRUCT<n: BIGINT, next: STRUCT<n: BIGINT>>"
)
_AVRO_RECORD = {
    "symbol": "é", "price": 1.5, "small": 5, "kind": "A", "day": 20_000, "at": 1_700_000_000_000_000,
    "tags": ["a", "b"], "more": {"x": 1, "y": None}, "amount": b"\x05",
    "node": {"n": 1, "next": {"n": 2, "next": None}}, "nothing": [None] * 3,
}  # fmt: skip
_CHANGE_COLUMNS = (
    "op STRING, old DECIMAL(10,2) FROM '$.before.price', new DECIMAL(10,2) FROM '$.after.price', "
    "v DECIMAL(10,2) FROM '$.after.v', at TIMESTAMP FROM '$.source.ts_ms', name STRING FROM '$.after.name', "
    "day DATE FROM '$.after.day', seen TIMESTAMP FROM '$.after.seen', row_before VARIANT FROM '$.before', "
    "id INT FROM KEY '$.id', kind STRING FROM HEADER 'ce_type'"
)


def _stream(columns: str, options: str = "format = 'json'", **more: Any) -> Stream:
    declared = CheckedStream(f"CREATE STREAM s ({columns}) WITH (topic = 'source', {options})").declared
    return msgspec.structs.replace(declared, **more)


def _table(columns: str, options: str) -> Table:
    statement = parse(f"CREATE TABLE t ({columns}) WITH (topic = 'source', {options})")
    assert isinstance(statement, CreateTable)
    return Table(
        "t_1", "t", declared_columns(statement), statement.key, "source", statement.format, "", statement.schema,
        statement.framing, decimals=statement.decimals or "", timestamps=statement.timestamps or "",
    )  # fmt: skip


def _of_json(source: Stream | Table, *values: object, before: bytes = b"", key: bytes = b'{"id": 7}') -> RecordKind:
    records = [KafkaRecord(before + json.dumps(value).encode(), key, _HEADERS) for value in values]
    return RecordKind(source, tuple(records), len(before))


def _of_bytes(source: Stream, *values: bytes) -> RecordKind:
    return RecordKind(source, tuple(KafkaRecord(value) for value in values), None)


def _avro(options: str, before: bytes, **more: Any) -> RecordKind:
    body = io.BytesIO()
    fastavro.schemaless_writer(body, fastavro.parse_schema(json.loads(_AVRO)), _AVRO_RECORD)
    source = _stream(_AVRO_COLUMNS, f"format = 'avro', schema = '{_AVRO}', {options}", **more)
    return _of_bytes(source, before + body.getvalue())


def _debezium_changes(price: str) -> list[object]:
    schema = schema_of(
        decimal_schema("price", 2), variable_schema("v"), field("name", "string"),
        field("day", "int32", "io.debezium.time.Date"), field("seen", "int64", "io.debezium.time.MicroTimestamp"),
    )  # fmt: skip
    row = {"price": bytes_of(150), "v": {"scale": 1, "value": bytes_of(15)}, "name": "x", "day": 20_000, "seen": 7}
    change = {
        "op": "u", "before": {"price": bytes_of(150)}, "after": row, "source": {"ts_ms": 1_500, "table": "t"}
    }  # fmt: skip
    bare = {"op": "c", "before": None, "after": {"price": price, "name": "__debezium_unavailable_value"}}
    of_text = {"op": "r", "after": json.dumps({"price": price, "name": "x"}), "source": {"ts_ms": 1}}
    removal = {"op": "d", "before": {"price": price}, "after": None}
    return [json.loads(envelope(change, schema)), bare, of_text, removal, {"op": "t"}]


def _proto() -> list[bytes]:
    trade = Trade(symbol="é", i=-5, u=2**64 - 1, l=-(2**63), f=0.5, b=True, raw=b"\xff", side=2, ns=[1, 2])
    trade.leg.inner.price = 1.5
    trade.legs.add(price=0.5)
    trade.tags["a"] = 7
    trade.at.seconds = 1_700_000_000
    trade.maybe.value = 9
    return [trade.SerializeToString(), b""]


@cache
def record_kinds() -> Mapping[str, RecordKind]:
    """Return the kinds by name."""
    framed = id_header(7)
    proto = f"format = 'protobuf', descriptor = '{DESCRIPTOR}', message = 'x.Trade'"
    maxwell = {
        "database": "d", "table": "t", "type": "update", "ts": 1_700_000_000,
        "data": {"id": 7, "price": "1.50", "name": "x"}, "old": {"price": "1.25"},
    }  # fmt: skip
    canal = {
        "type": "UPDATE", "es": 1_700_000_000_000, "isDdl": False, "data": [{"id": "7", "price": "1.50", "name": "x"}],
        "old": [{"price": "1.25"}],
    }  # fmt: skip
    row = "id INT FROM '$.data{0}.id', price DECIMAL(10,2) FROM '$.data{0}.price', name STRING FROM '$.data{0}.name'"
    row_table = "id INT PRIMARY KEY, price DECIMAL(10,2), name STRING"
    explode = "format = 'json', explode = '$.resourceLogs[*].scopeLogs[*].logRecords'"
    return {
        "json": _of_json(_stream(_SCALARS), *_SCALAR_RECORDS),
        "json nested": _of_json(_stream(_NESTED), *_NESTED_RECORDS),
        "json places": _of_json(_stream(_PLACES), _PLACED_RECORD, {}),
        "json places lenient": _of_json(_stream(_PLACES, "format = 'json', lenient = true"), _PLACED_RECORD, {}),
        "json top array": _of_json(_stream("a DOUBLE FROM '$[0]', b STRING FROM '$[3]'"), [1.5, {}, [], "x"], []),
        "json whole": _of_json(_stream("v VARIANT FROM '$', a ARRAY<INT> FROM '$'"), [1, None, 3], None),
        "json framed": _of_json(
            _stream(_SCALARS, "format = 'json', framing = 'confluent'"), *_SCALAR_RECORDS, before=framed
        ),
        **{
            f"json lenient {unit}": _of_json(
                _stream(columns, f"format = 'json', lenient = true, timestamps = '{unit}'"), *records
            )
            for unit, columns, records in (
                ("seconds", _SCALARS, _LOOSE_RECORDS),
                ("millis", _SCALARS, _LOOSE_RECORDS),
                ("micros", _NESTED, _NESTED_RECORDS),
            )
        },
        "json strict millis": _of_json(_stream(_SCALARS, "format = 'json', timestamps = 'millis'"), *_SCALAR_RECORDS),
        "explode": _of_json(_stream(_SPAN_COLUMNS, explode), _SPANS, {}, {"resourceLogs": []}),
        "explode lenient": _of_json(_stream(_SPAN_COLUMNS, f"{explode}, lenient = true"), _SPANS),
        "explode scalars": _of_json(
            _stream(_SCALARS, "format = 'json', explode = '$', lenient = true, timestamps = 'millis'"), _LOOSE_RECORDS
        ),
        "explode framed": _of_json(
            _stream(_NESTED, "format = 'json', explode = '$.rows', framing = 'confluent'"),
            {"rows": _NESTED_RECORDS}, before=framed,
        ),
        "avro": _avro("framing = 'single-object'", single_object_header(_AVRO)),
        "avro raw": _avro("framing = 'raw'", b""),
        "avro first id": _avro("framing = 'confluent'", framed, schema_id=7),
        "avro writers": _of_bytes(
            _stream(WRITERS_COLUMNS, f"format = 'avro', framing = 'confluent', schemas = '{SCHEMAS}'"),
            written(1, {"symbol": "a", "price": 0.5, "n": 7}), written(2, {"symbol": None, "n": 8, "more": [1]}),
            written(70_000, {"price": None, "symbol": b"x", "venue": "v"}),
        ),
        "protobuf": _of_bytes(_stream(PROTO_COLUMNS, proto), *_proto()),
        "protobuf framed": _of_bytes(
            _stream(PROTO_COLUMNS, f"{proto}, framing = 'confluent'"),
            *(framed + b"\x02\x02" + body for body in _proto()),
        ),
        "debezium": _of_json(_stream(_CHANGE_COLUMNS, "format = 'debezium-json'"), *_debezium_changes("1.50")),
        "debezium options": _of_json(
            _stream(
                _CHANGE_COLUMNS, "format = 'debezium-json', decimals = 'base64', timestamps = 'millis', lenient = true"
            ),
            *_debezium_changes(bytes_of(5)),
        ),
        "maxwell": _of_json(
            _stream(f"type STRING, ts TIMESTAMP, {row.format('')}", "format = 'maxwell-json'"), maxwell
        ),
        "canal": _of_json(_stream(f"type STRING, es TIMESTAMP, {row.format('[0]')}", "format = 'canal-json'"), canal),
        "canal lenient": _of_json(
            _stream(f"type STRING, es TIMESTAMP, {row.format('[0]')}", "format = 'canal-json', lenient = true"), canal
        ),
        "table": _of_json(_table(f"{row_table}, at TIMESTAMP", "format = 'json'"), {"id": 7, "price": "1.50"}),
        "table debezium": _of_json(
            _table("price DECIMAL(10,2) PRIMARY KEY, name STRING", "format = 'debezium-json', decimals = 'base64'"),
            *_debezium_changes(bytes_of(5)),
        ),
        "table maxwell": _of_json(_table(row_table, "format = 'maxwell-json'"), maxwell),
        "table canal": _of_json(_table(row_table, "format = 'canal-json'"), canal),
    }  # fmt: skip
