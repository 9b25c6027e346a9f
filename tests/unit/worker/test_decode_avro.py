"""Avro records: framings, types, and dead letters; and the check of a schema at CREATE STREAM."""

from __future__ import annotations

import io
import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grouping.model.sql_type import SqlType
from schemas.avro_columns import AvroMismatch, check_avro_columns, single_object_header
from spark_jobs.engine.decode.decode import decode
from tests.unit.matching.event_batches import FIRST_OFFSET, SETTINGS, batch, header, stream
from tests.unit.worker.avro_records import NESTED, record_schema

COLUMNS = (
    "s STRING",
    "e STRING",
    "b BOOLEAN",
    "i INT",
    "l BIGINT",
    "f DOUBLE",
    "d DOUBLE",
    "n DECIMAL(30,2)",
    "m DECIMAL(4,2)",
    "day DATE",
    "ms TIMESTAMP",
    "us TIMESTAMP",
)
FIELDS = {
    "ignored": "string",
    "s": ["null", "string"],
    "e": {"type": "enum", "name": "Side", "symbols": ["buy", "sell"]},
    "b": ["boolean", "null"],
    "i": "int",
    "l": ["null", "long"],
    "f": "float",
    "d": "double",
    "n": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 2}],
    "m": {"type": "fixed", "size": 4, "name": "Money", "logicalType": "decimal", "precision": 4, "scale": 2},
    "day": {"type": "int", "logicalType": "date"},
    "ms": ["null", {"type": "long", "logicalType": "timestamp-millis"}],
    "us": {"type": "long", "logicalType": "timestamp-micros"},
    "later": {"type": "long", "logicalType": "timestamp-micros"},
}


SCHEMA = record_schema(FIELDS)
# The same bytes without logical types, so a test can write values outside their logical type.
PHYSICAL = record_schema(
    {
        **FIELDS,
        "ignored": "bytes",
        "s": ["null", "bytes"],
        "i": "long",
        "n": ["null", "bytes"],
        "m": {"type": "fixed", "size": 4, "name": "Money"},
        "day": "int",
        "ms": ["null", "long"],
        "us": "long",
        "later": "long",
    }
)
RECORD = {
    "ignored": b"",
    "s": b"a",
    "e": "sell",
    "b": None,
    "i": -5,
    "l": 2**63 - 1,
    "f": 0.5,
    "d": math.inf,
    "n": (-(10**30) + 1).to_bytes(13, "big", signed=True),
    "m": (9999).to_bytes(4, "big", signed=True),
    "day": 20_778,
    "ms": -1,
    "us": 1,
    "later": 0,
}


def body(**changes: object) -> bytes:
    """Return the Avro body of the record with some fields changed."""
    sink = io.BytesIO()
    fastavro.schemaless_writer(sink, fastavro.parse_schema(json.loads(PHYSICAL)), {**RECORD, **changes})
    return sink.getvalue()


RAW = stream(*COLUMNS, form="avro", schema=SCHEMA, framing="raw")


def test_every_type():
    """Each Avro type that a column can have gives its exact value."""
    events, dead = decode(batch([body()]), RAW, SETTINGS)

    assert dead is None
    expected = {
        "s": "a",
        "e": "sell",
        "b": None,
        "i": -5,
        "l": 2**63 - 1,
        "f": 0.5,
        "d": math.inf,
        "n": Decimal("-9999999999999999999999999999.99"),
        "m": Decimal("99.99"),
        "day": date(2026, 11, 21),
        "ms": datetime(1969, 12, 31, 23, 59, 59, 999_000, UTC),
        "us": datetime(1970, 1, 1, 0, 0, 0, 1, UTC),
    }
    assert expected == {name: events.column(name).to_pylist()[0] for name in expected}


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        body()[:-1],
        body() + b"\x00",
        body() + body(),
        body(s=b"\xff"),
        body(i=2**31),
        body(i=-(2**31) - 1),
        body(n=(10**30).to_bytes(13, "big", signed=True)),
        body(m=(-10_000).to_bytes(4, "big", signed=True)),
        body(day=-719_163),
        body(day=2_932_897),
        body(ms=253_402_300_800_000),
        body(us=-62_135_596_800_000_001),
        b"\x06ab",
        b"\x01ab",
        b"\xff" * 30,
    ],
    ids=lambda value: repr(value)[:40],
)
def test_hostile_record_is_one_dead_letter(value):
    """An unfitting record is a single dead letter, as received, and its neighbours are untouched."""
    events, dead = decode(batch([body(i=1), value, body(i=3)]), RAW, SETTINGS)

    assert [1, 3] == events.column("i").to_pylist()
    [letter] = dead.to_pylist()
    assert value == letter["value"]
    assert "undecodable" == header(letter, "code")
    assert f"source/3/{FIRST_OFFSET + 1}" == header(letter, "source")


@pytest.mark.parametrize("changes", [{"ignored": b"\xff"}, {"later": 2**62}], ids=str)
def test_fields_that_are_no_columns_do_no_harm(changes):
    """Broken UTF-8 or an impossible time in a field that is no column is nobody's concern."""
    events, dead = decode(batch([body(**changes)]), RAW, SETTINGS)

    assert dead is None
    assert ["a"] == events.column("s").to_pylist()


@pytest.mark.parametrize(
    ("framing", "value", "good"),
    [
        ("single-object", single_object_header(SCHEMA) + body(), True),
        ("single-object", b"\xc3\x01" + b"\0" * 8 + body(), False),
        ("single-object", body(), False),
        ("single-object", b"\xc3\x01", False),
        ("confluent", b"\0\0\0\0\x07" + body(), True),
        ("confluent", b"\0\xff\xff\xff\xff" + body(), True),
        ("confluent", b"\x01\0\0\0\x07" + body(), False),
        ("confluent", b"\0\0\0\0", False),
        ("raw", body(), True),
    ],
)
def test_framing(framing, value, good):
    """The bytes before the body must fit the stream's framing."""
    events, _ = decode(batch([value]), stream(*COLUMNS, form="avro", schema=SCHEMA, framing=framing), SETTINGS)

    assert int(good) == events.count


def test_fingerprint_is_the_specification_s():
    """The single-object header agrees with an encoder of the Avro specification's CRC-64 written out here."""
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0xC15D213AA4D7A795 if crc & 1 else 0)
        table.append(crc)
    canonical = b'{"name":"a.B","type":"record","fields":[{"name":"x","type":"long"}]}'
    crc = 0xC15D213AA4D7A795
    for byte in canonical:
        crc = (crc >> 8) ^ table[(crc ^ byte) & 0xFF]
    text = (
        '{"namespace": "a", "doc": "…", "type": "record", "name": "B",'
        ' "fields": [{"name": "x", "type": {"type": "long", "logicalType": "timestamp-micros"}, "default": 0}]}'
    )

    assert b"\xc3\x01" + crc.to_bytes(8, "little") == single_object_header(text)


DURATION = {"type": "fixed", "name": "Span", "size": 20, "logicalType": "duration"}
LOCAL = {"type": "long", "logicalType": "local-timestamp-millis"}


def test_matching_columns_are_accepted():
    """Columns that the schema gives in their types, nullable or not, in any order and number, are accepted."""
    check_avro_columns(SCHEMA, [tuple(column.split(" ", 1)) for column in reversed(COLUMNS)])
    check_avro_columns(SCHEMA, [("n", "DECIMAL(30, 2)")])


@pytest.mark.parametrize(
    ("schema", "column", "detail"),
    [
        (SCHEMA, ("S", "STRING"), "The schema has the fields:"),
        (SCHEMA, ("i", "BIGINT"), "The field is of type INT there."),
        (SCHEMA, ("n", "DECIMAL(30,3)"), "The field is of type DECIMAL(30,2) there."),
        (SCHEMA, ("day", "TIMESTAMP"), "The field is of type DATE there."),
        (record_schema({"x": "bytes"}), ("x", "STRING"), "The field is of type BINARY there."),
        (record_schema({"x": DURATION}), ("x", "STRING"), "The field is of type BINARY there."),
        (
            record_schema({"x": ["null", "int", LOCAL]}),
            ("x", "BIGINT"),
            "The field has a type that no column can hold there. The union is of int and local-timestamp-millis.",
        ),
        (
            record_schema({"x": ["null", LOCAL]}),
            ("x", "TIMESTAMP"),
            "The field is of type BIGINT there. timestamp_millis(x) is its time.",
        ),
        (
            record_schema({"x": {"type": "array", "items": "int"}}),
            ("x", "INT"),
            "The field is of type ARRAY<INT> there.",
        ),
        (NESTED, ("who", SqlType.of("STRUCT<id: BIGINT, nick: STRING>")), "The field is of type STRUCT<id: BIGINT> "),
        (NESTED, ("who", SqlType.of("STRUCT<Id: BIGINT>")), "The field is of type STRUCT<> there."),
        (NESTED, ("tags", SqlType.of("ARRAY<INT>")), "The field is of type ARRAY<STRING> there."),
        (NESTED, ("times", SqlType.of("MAP<STRING, DATE>")), "The field is of type MAP<STRING, TIMESTAMP> there."),
        (NESTED, ("who", "STRING"), "The field is of type STRUCT<> there. The record's fields are "),
        (record_schema({"x": "nothing"}), ("x", "INT"), "The schema does not parse:"),
        ('{"type":"record"', ("x", "INT"), "The schema does not parse:"),
        ("7", ("x", "INT"), "The schema does not parse:"),
        ('"long"', ("x", "BIGINT"), "The schema is not of a record."),
        ("[]", ("x", "BIGINT"), "The schema is not of a record."),
        (
            '{"type":"record","name":"R","fields":[{"name":"x","type":"int"},{"name":"x","type":"int"}]}',
            ("x", "INT"),
            "The schema has two fields of one name.",
        ),
    ],
)
def test_other_columns_are_refused(schema, column, detail):
    """A column missing in the schema or of a different type, or a malformed schema, is reported in full."""
    with pytest.raises(AvroMismatch) as caught:
        check_avro_columns(schema, [column])

    assert caught.value.detail.startswith(detail)


@pytest.mark.parametrize(
    "avro",
    [
        DURATION,
        {"type": "fixed", "name": "U", "size": 20, "logicalType": "uuid"},
        {"type": "fixed", "name": "D", "size": 20, "logicalType": "decimal", "precision": 40, "scale": 2},
    ],
)
def test_a_logical_type_without_a_column_type_is_its_bytes(avro):
    """As in Avro, a reader that does not know a logical type reads the type below; also within an array."""
    schema = record_schema({"x": avro, "xs": {"type": "array", "items": avro["name"]}})
    value = bytes(range(20)) + b"\x02" + bytes(20) + b"\0"
    source = stream("x BINARY", "xs ARRAY<BINARY>", form="avro", schema=schema, framing="raw")
    events, letters = decode(batch([value]), source, SETTINGS)

    assert letters is None
    assert [events.values(name) for name in ("x", "xs")] == [[bytes(range(20))], [[bytes(20)]]]


@pytest.mark.parametrize(
    ("logical", "column", "detail"),
    [
        ("timestamp-micros", "TIMESTAMP", "the time is beyond the years 1 to 9999"),
        ("timestamp-millis", "TIMESTAMP", "the time is beyond the years 1 to 9999"),
        ("date", "DATE", "the date is beyond the years 1 to 9999"),
    ],
)
def test_a_time_beyond_the_years_names_its_column(logical, column, detail):
    """The dead letter has no words of the library."""
    kind = "int" if logical == "date" else "long"
    schema = record_schema({"a": "string", "x": ["null", {"type": kind, "logicalType": logical}]})
    far = b"\xfe\xff\xff\xff\x0f" if kind == "int" else b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"
    source = stream("a STRING", f"x {column}", form="avro", schema=schema, framing="raw")
    _, letters = decode(batch([b"\x02a\x02" + far]), source, SETTINGS)

    [letter] = letters.to_pylist()
    assert header(letter, "detail") == f'Column "x" of type {column} cannot hold the value: {detail}.'


def test_named_type_that_a_field_before_defines():
    """A column may refer to a type that an ignored field defines."""
    schema = record_schema({"first": FIELDS["m"], "second": "test.Money", "third": ["null", "Money"]})
    check_avro_columns(schema, [("second", "DECIMAL(4,2)"), ("third", "DECIMAL(4,2)")])
    value = b"\0\0\0\x01" + b"\0\0\0\x02" + b"\x02\0\0\0\x03"
    source = stream("second DECIMAL(4,2)", "third DECIMAL(4,2)", form="avro", schema=schema, framing="raw")
    events, _ = decode(batch([value]), source, SETTINGS)

    assert [Decimal("0.02")] == events.column("second").to_pylist()
    assert [Decimal("0.03")] == events.column("third").to_pylist()


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "s": st.none() | st.text(st.characters(exclude_categories=["Cs"])).map(str.encode),
                "l": st.none() | st.integers(-(2**63), 2**63 - 1),
                "d": st.floats(),
                "us": st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999),
            }
        ),
        max_size=5,
    )
)
def test_values_come_back(records):
    """Whatever fastavro writes is read back, NaN and infinities included."""
    events, dead = decode(batch([body(**record) for record in records]), RAW, SETTINGS)

    assert dead is None
    assert [record["s"] for record in records] == [
        text if text is None else text.encode() for text in events.column("s").to_pylist()
    ]
    assert [record["l"] for record in records] == events.column("l").to_pylist()
    assert repr([record["d"] for record in records]) == repr(events.column("d").to_pylist())
    assert [record["us"] for record in records] == events.column("us").cast("int64").to_pylist()
