"""Records that name their schema by an id: Avro with several writer schemas, the first id of a stream, framed JSON."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import fastavro
import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.sources.streams import describe_stream
from gateway.testing import Stream as CheckedStream
from gateway.testing import evaluate
from grouping.model.catalog import Stream
from grouping.model.errors import InputError
from schemas.avro_columns import AvroMismatch
from schemas.avro_writers import MOST_SCHEMAS, check_writers, id_header, read_writers
from spark_jobs.engine.decode.decode import decode, decode_pieces
from spark_jobs.engine.decode.framing import bodies, schema_ids
from tests.unit.matching.event_batches import SETTINGS, batch, header
from tests.unit.worker.avro_records import record_schema

FIRST = {"symbol": "string", "price": "float", "n": "int"}
SECOND = {"n": "long", "more": {"type": "array", "items": "int"}, "symbol": ["null", "string"]}
THIRD = {"price": ["null", "double"], "symbol": "bytes", "venue": "string"}
WRITERS = {1: FIRST, 2: SECOND, 70_000: THIRD}
SCHEMAS = json.dumps({schema_id: json.loads(record_schema(fields)) for schema_id, fields in WRITERS.items()})
COLUMNS = "symbol STRING, price DOUBLE, n BIGINT, venue STRING, more ARRAY<BIGINT>"


def avro_stream(columns: str = COLUMNS, options: str = f"schemas = '{SCHEMAS}'") -> Stream:
    """Return an Avro stream with the five bytes."""
    return CheckedStream(
        f"CREATE STREAM q ({columns}) WITH (topic = 't', format = 'avro', framing = 'confluent', {options})"
    ).declared


def written(schema_id: int, record: dict[str, Any], fields: dict[str, Any] | None = None) -> bytes:
    """Return a record's value."""
    body = io.BytesIO()
    schema = fastavro.parse_schema(json.loads(record_schema(fields or WRITERS[schema_id])))
    fastavro.schemaless_writer(body, schema, record)
    return id_header(schema_id) + body.getvalue()


def rows(stream: Stream, values: list[bytes | None]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the events of records, and the details of the dead letters."""
    events, letters = decode(batch(values), stream, SETTINGS)
    columns = [column.name for column in stream.columns]
    found = [dict(zip(columns, each, strict=True)) for each in zip(*(events.values(c) for c in columns), strict=True)]
    return found, [] if letters is None else [header(row, "detail") for row in letters.to_pylist()]


def test_fields_are_found_by_name_and_promoted() -> None:
    """Each record is read by its own schema; a column that the schema lacks is NULL."""
    found, letters = rows(
        avro_stream(),
        [
            written(1, {"symbol": "a", "price": 0.5, "n": 7}),
            written(2, {"symbol": None, "n": 2**40, "more": [1]}),
            written(70_000, {"symbol": b"c", "price": None, "venue": "x"}),
        ],
    )
    assert [
        {"symbol": "a", "price": 0.5, "n": 7, "venue": None, "more": None},
        {"symbol": None, "price": None, "n": 2**40, "venue": None, "more": [1]},
        {"symbol": "c", "price": None, "n": None, "venue": "x", "more": None},
    ] == found
    assert [] == letters


def test_an_unknown_id_is_named() -> None:
    """The record is a dead letter, and its neighbours are events."""
    good = written(1, {"symbol": "a", "price": 0.5, "n": 7})
    found, letters = rows(avro_stream(), [good, id_header(9) + good[5:], b"\1" + good[1:], b"\0\0", None, good + b"!"])
    assert 1 == len(found)
    assert [
        "The record has the schema id 9, and the stream has schemas for 1, 2, 70000.",
        "The value does not begin with a zero byte and four bytes of a schema id.",
        "The value does not begin with a zero byte and four bytes of a schema id.",
        "The record has no value.",
        "There is 1 byte after the Avro body.",
    ] == letters


@pytest.mark.parametrize(
    ("kind", "value", "column", "expected"),
    [
        ("int", 7, "BIGINT", 7),
        ("int", 7, "DOUBLE", 7.0),
        ("int", 7, "FLOAT", 7.0),
        ("int", 7, "SMALLINT", 7),
        ("long", 2**53 + 1, "DOUBLE", float(2**53)),
        ("float", 0.5, "DOUBLE", 0.5),
        ("string", "é", "BINARY", "é".encode()),
        ("bytes", "é".encode(), "STRING", "é"),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
            Decimal("1.25"),
            "DECIMAL(9,2)",
            None,
        ),
        ({"type": "long", "logicalType": "timestamp-millis"}, datetime(2026, 1, 1, tzinfo=UTC), "TIMESTAMP", None),
        ({"type": "map", "values": "int"}, {"a": 1}, "MAP<STRING, DOUBLE>", {"a": 1.0}),
    ],
)
def test_promotions(kind: Any, value: Any, column: str, expected: Any) -> None:
    """A type of the writer becomes the wider type of the column, at the top and within a STRUCT."""
    wanted = value if expected is None else expected
    inner = {"type": "record", "name": "Inner", "fields": [{"name": "x", "type": kind}]}
    fields = {"x": kind, "s": ["null", inner]}
    declared = f"x {column}, s STRUCT<x: {column}, later: STRING>"
    schemas = json.dumps({"5": json.loads(record_schema(fields))})
    found, letters = rows(
        avro_stream(declared, f"schemas = '{schemas}'"), [written(5, {"x": value, "s": {"x": value}}, fields)]
    )
    assert [] == letters
    assert [{"x": wanted, "s": {"x": wanted, "later": None}}] == found


@pytest.mark.parametrize(
    ("kind", "column"),
    [("long", "INT"), ("double", "FLOAT"), ("string", "INT"), ("long", "TIMESTAMP"), ("boolean", "INT")]
    + [({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, each) for each in ("DECIMAL(4,2)",)]
    + [({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1}, each) for each in ("DECIMAL(9,2)",)],
)
def test_no_other_conversions(kind: Any, column: str) -> None:
    """A type that Avro's rules do not promote is refused when the stream is created."""
    schemas = json.dumps({"5": json.loads(record_schema({"x": kind}))})
    with pytest.raises(InputError, match="is not a") as refused:
        avro_stream(f"x {column}", f"schemas = '{schemas}'")
    assert "stream-mismatch" == refused.value.code
    assert str(refused.value.detail).startswith("Schema 5: The field is of type")


def test_a_misfit_of_a_promoted_value_is_a_dead_letter() -> None:
    """Bytes that are no UTF-8 fit no STRING."""
    value = written(70_000, {"symbol": b"\xff", "price": None, "venue": "x"})
    assert ['Column "symbol" of type STRING cannot hold the value: the bytes are no valid UTF-8.'] == rows(
        avro_stream(), [value]
    )[1]


@pytest.mark.parametrize(
    ("schemas", "words"),
    [
        ("", "The JSON does not parse"),
        ("[]", "no JSON object of schemas"),
        ("{}", "no JSON object of schemas"),
        ("{" * 100_000, "The JSON does not parse"),
        ('{"a":' * 100_000, "The JSON does not parse"),
        ('{"1": {}, "1": {}}', "a name is given twice"),
        ('{"01": {}}', "is no id"),
        ('{"-1": {}}', "is no id"),
        ('{"2147483648": {}}', "is no id"),
        ('{"²": {}}', "is no id"),
        (json.dumps({each: {} for each in range(MOST_SCHEMAS + 1)}), "are the most"),
        ('{"1": null}', "Schema 1: The schema "),
        ('{"1": "string"}', "Schema 1: The schema is not of a record."),
        (json.dumps({"1": json.loads(record_schema({"y": "int"}))}), "The schemas have the fields"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_refused_schemas(schemas: str, words: str) -> None:
    """A value of the option that gives no schemas is refused in full."""
    with pytest.raises(AvroMismatch) as refused:
        check_writers(schemas, [("x", "INT")])
    assert words in refused.value.detail


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("format = 'avro', framing = 'raw', schemas = '{}'", "is for framing = 'confluent' only"),
        ("format = 'avro', framing = 'confluent', schema = '{}', schemas = '{}'", "contradict each other"),
        ("format = 'json', framing = 'confluent', schemas = '{}'", '"schemas" is for Avro only'),
        ("format = 'json', framing = 'single-object'", "is not for format = 'json'"),
    ],
)
def test_options_that_contradict_each_other(options: str, words: str) -> None:
    """The refusal names the option."""
    with pytest.raises(InputError, match=words):
        CheckedStream(f"CREATE STREAM q (x INT) WITH (topic = 't', {options})")


def test_the_first_id_is_the_streams() -> None:
    """With a single schema, records of another id are dead letters; a noted id counts before that of the batch."""
    stream = avro_stream("symbol STRING", f"schema = '{record_schema(FIRST)}'")
    values = [written(1, {"symbol": "a", "price": 0.5, "n": 7})[5:] for _ in range(3)]
    framed = [b"", id_header(4) + values[0], id_header(5) + values[1], id_header(4) + values[2]]
    found, letters = rows(stream, framed)
    assert (["a", "a"], 2) == ([row["symbol"] for row in found], len(letters))
    assert letters[1].startswith("The record has the schema id 5, and the stream's schema has the id 4, which")
    noted = msgspec.structs.replace(stream, schema_id=5)
    assert 1 == len(rows(noted, framed)[0])
    assert 5 == describe_stream(noted)["schema_id"]
    assert ([], []) == rows(stream, [])


FRAMED = "WITH (topic = 't', format = 'json', framing = 'confluent')"


def test_framed_json() -> None:
    """JSON behind the five bytes is JSON, whatever the id; `_value` is the JSON alone."""
    stream = CheckedStream(f"CREATE STREAM q (a INT, b STRING FROM '$.c.d') {FRAMED}").declared
    values = [id_header(7) + b'{"a": 1, "c": {"d": "x"}}', b'{"a": 2}', None, bytes(4), id_header(1) + b"[]", bytes(5)]
    events, letters = decode(batch(values), stream, SETTINGS)
    assert ([1], ["x"], ['{"a":1,"c":{"d":"x"}}']) == tuple(
        events.column(name).to_pylist() for name in ("a", "b", "_value")
    )
    details = [header(row, "detail") for row in letters.to_pylist()]
    assert 2 == details.count("The value does not begin with a zero byte and four bytes of a schema id.")
    assert (5, "The record has no value.") == (len(details), details[1])
    assert values[1] == letters["value"][0].as_py()


def test_framed_json_with_elements() -> None:
    """Elements of an array behind the five bytes are events."""
    options = FRAMED.replace(")", ", explode = '$.r[*]')")
    stream = CheckedStream(f"CREATE STREAM q (a INT, n INT FROM '^.n') {options}").declared
    values = [id_header(7) + b'{"n": 5, "r": [{"a": 1}, {"a": 2}]}', b'{"n": 5, "r": [{"a": 3}]}']
    [(events, letters)] = decode_pieces(batch(values), stream, SETTINGS)
    assert ([1, 2], [5, 5]) == (events.column("a").to_pylist(), events.column("n").to_pylist())
    assert ['{"a":1}', '{"a":2}'] == events.column("_value").to_pylist()
    assert ["The value does not begin with a zero byte and four bytes of a schema id."] == [
        header(row, "detail") for row in letters.to_pylist()
    ]


def test_the_test_kit_frames_rows() -> None:
    """Rows are written as the stream declares them."""
    framed = CheckedStream(f"CREATE STREAM q (a INT) {FRAMED}")
    assert [{"a": 1}] == [row.result for row in evaluate("SELECT a FROM q WHERE a = 1", framed, [{"a": 1}])]
    several = CheckedStream(
        f"CREATE STREAM q ({COLUMNS}) WITH (topic = 't', format = 'avro', framing = 'confluent', schemas = '{SCHEMAS}')"
    )
    row = {"price": 1.5, "symbol": b"a", "venue": "x"}
    assert [{"venue": "x"}] == [each.result for each in evaluate("SELECT venue FROM q WHERE price > 1", several, [row])]


@given(st.lists(st.none() | st.binary(max_size=9) | st.binary(max_size=3).map(lambda more: bytes(4) + more)))
def test_bodies_and_ids_are_those_of_single_values(values: list[bytes | None]) -> None:
    """The columns of a batch are cut as each value by itself would be."""
    found, faults = bodies(pa.array(values, pa.binary()))
    framed = [value is not None and len(value) >= 5 and value[0] == 0 for value in values]
    assert [value[5:] if good else None for value, good in zip(values, framed, strict=True)] == found.to_pylist()
    assert [row for row, value in enumerate(values) if value is not None and not framed[row]] == list(faults)
    ids = [int.from_bytes(value[:5], "big") for value, good in zip(values, framed, strict=True) if good]
    assert list(dict.fromkeys(ids)) == schema_ids(pa.array(values, pa.binary()))


def test_hostile_schemas_take_linear_time() -> None:
    """A schema of many fields, and many schemas, are read as text is."""
    fields = {f"f{number}": ["null", "int"] for number in range(3_000)}
    one = json.loads(record_schema(fields))
    check_writers(json.dumps({"1": one}), [("f7", "INT")])
    many = json.dumps({each: json.loads(record_schema({"x": "int"})) for each in range(MOST_SCHEMAS)})
    check_writers(many, [("x", "BIGINT")])
    assert MOST_SCHEMAS == len(read_writers(many))
