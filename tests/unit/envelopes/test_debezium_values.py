"""Debezium's spellings of decimals and times: each is read right, or refused with the form to write."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grouping.model.table import Table
from spark_jobs.engine.operators.lookup_join.changes import decode_changes
from tests.unit.envelopes.changes import bytes_of, decimal_schema, envelope, field, schema_of, variable_schema
from tests.unit.matching.event_batches import header
from tests.unit.replica.table_records import SETTINGS, batch_of, table

Refused = str

_BOTH = "decimals = 'string' or 'base64'"
_BASE64 = "decimals = 'base64' with the scale of the database"


def _read(of: Table, value: object, schema: dict[str, Any] | None) -> Any:
    """Return the column "v" of a row that a record sets; or the detail of the record's dead letter."""
    record = envelope(
        {"op": "c", "after": {"id": "a", "v": value}}, schema and schema_of(field("id", "string"), schema)
    )
    changes, letters = decode_changes(batch_of([(0, 0, (b"k", record))]), of, SETTINGS)
    if letters is not None:
        return header(letters.to_pylist()[0], "detail")
    return changes.rows.column("v").to_pylist()[0]


def _table(kind: str, decimals: str = "", timestamps: str = "") -> Table:
    made = table("id STRING", f"v {kind}", key=["id"], form="debezium-json")
    return msgspec.structs.replace(made, decimals=decimals, timestamps=timestamps or msgspec.UNSET)


DECIMALS: list[tuple[str, str, dict[str, Any] | None, object, Decimal | Refused | None]] = [
    # decimal.handling.mode = precise, with schemas
    ("precise", "", decimal_schema("v", 2), bytes_of(12345), Decimal("123.45")),
    ("precise, negative", "", decimal_schema("v", 2), bytes_of(-1), Decimal("-0.01")),
    ("precise, base64 of digits", "", decimal_schema("v", 2), "1234", Decimal("-26588.24")),
    ("precise, NULL", "", decimal_schema("v", 2), None, None),
    ("precise, wider than the column", "", decimal_schema("v", 2), bytes_of(10**12), "does not fit 10 digits"),
    ("precise, other scale", "", decimal_schema("v", 4), bytes_of(12_300), Decimal("1.23")),
    ("precise, a scale that does not fit", "", decimal_schema("v", 4), bytes_of(12_345), "does not fit 10 digits"),
    ("precise, no scale", "", decimal_schema("v", "--5"), bytes_of(1), "the Decimal in its schema has no scale"),
    ("precise, no base64", "", decimal_schema("v", 2), "12.34", "no base64 of a number"),
    ("precise, decimal.format = NUMERIC", "", decimal_schema("v", 2), 123.45, Decimal("123.45")),
    ("precise, variable scale", "", variable_schema("v"), {"scale": 1, "value": bytes_of(15)}, Decimal("1.50")),
    # without schemas
    ("variable scale alone", "", None, {"scale": 1, "value": bytes_of(15)}, Decimal("1.50")),
    ("base64 by option", "base64", None, "1234", Decimal("-26588.24")),
    ("base64 without option", "", None, bytes_of(12345), _BASE64),
    ("digits without option", "", None, "1234", _BOTH),
    ("digits that are no base64", "", None, "12345", Decimal(12345)),
    ("decimal text without option", "", None, "123.45", Decimal("123.45")),
    # decimal.handling.mode = string, double
    ("string, with schemas", "", field("v", "string"), "1234", Decimal(1234)),
    ("string by option", "string", None, "1234", Decimal(1234)),
    ("double, with schemas", "", field("v", "double"), 123.45, Decimal("123.45")),
    ("double", "", None, 123.45, Decimal("123.45")),
    ("bytes without a name", "", field("v", "bytes"), bytes_of(12345), _BASE64),
]


@pytest.mark.parametrize(
    ("option", "schema", "value", "expected"), [each[1:] for each in DECIMALS], ids=[each[0] for each in DECIMALS]
)
def test_decimals(option: str, schema: dict[str, Any] | None, value: object, expected: object) -> None:
    """The schema says how a number is written, else the option; a text with two meanings is refused."""
    found = _read(_table("DECIMAL(10,2)", option), value, schema)
    if isinstance(expected, str):
        assert isinstance(found, str)
        assert expected in found
        assert found.startswith('Column "v" of type DECIMAL(10,2) cannot hold the value')
    else:
        assert expected == found


@given(st.integers(-(10**18), 10**18), st.integers(0, 18))
def test_every_precise_decimal_is_exact(unscaled: int, scale: int) -> None:
    """Any unscaled value and scale gives the number that it means."""
    found = _read(_table("DECIMAL(38,18)"), bytes_of(unscaled), decimal_schema("v", scale))
    assert Decimal(unscaled).scaleb(-scale) == found


@pytest.mark.parametrize(
    ("kind", "expected"), [("DOUBLE", 123.45), ("STRING", bytes_of(12345)), ("BIGINT", "fraction")]
)
def test_a_precise_decimal_in_other_columns(kind: str, expected: object) -> None:
    """Numbers take the number that the schema describes; a STRING has the text of the record."""
    found = _read(_table(kind), bytes_of(12345), decimal_schema("v", 2))
    assert found == expected or (kind == "BIGINT" and str(expected) in found)
    assert 123 == _read(_table("BIGINT"), bytes_of(123), decimal_schema("v", 0))


NOON = datetime(2026, 11, 21, 12, 0, 0, 123456, tzinfo=UTC)
NOON_MS = NOON.replace(microsecond=123000)
MICROS = int(NOON.timestamp()) * 1_000_000 + 123_456
DAY = NOON.toordinal() - date(1970, 1, 1).toordinal()


def _debezium(kind: str, name: str) -> dict[str, Any]:
    return field("v", kind, f"io.debezium.time.{name}")


def _connect(kind: str, name: str) -> dict[str, Any]:
    return field("v", kind, f"org.apache.kafka.connect.data.{name}")


TIMES: list[tuple[str, str, str, dict[str, Any] | None, object, object]] = [
    # time.precision.mode = adaptive, adaptive_time_microseconds
    ("Date", "DATE", "", _debezium("int32", "Date"), DAY, date(2026, 11, 21)),
    ("Timestamp", "TIMESTAMP", "", _debezium("int64", "Timestamp"), MICROS // 1000, NOON_MS),
    ("MicroTimestamp", "TIMESTAMP", "", _debezium("int64", "MicroTimestamp"), MICROS, NOON),
    ("NanoTimestamp", "TIMESTAMP", "", _debezium("int64", "NanoTimestamp"), MICROS * 1000 + 789, NOON),
    ("ZonedTimestamp", "TIMESTAMP", "", _debezium("string", "ZonedTimestamp"), "2026-11-21T13:00:00.123456+01", NOON),
    ("Time", "STRING", "", _debezium("int32", "Time"), 43_200_500, "12:00:00.5"),
    ("MicroTime", "STRING", "", _debezium("int64", "MicroTime"), 1, "00:00:00.000001"),
    ("NanoTime as a number", "BIGINT", "", _debezium("int64", "NanoTime"), 5, 5),
    ("ZonedTime", "STRING", "", _debezium("string", "ZonedTime"), "12:00:00Z", "12:00:00Z"),
    ("Year", "INT", "", _debezium("int32", "Year"), 2026, 2026),
    # time.precision.mode = connect
    ("connect Date", "DATE", "", _connect("int32", "Date"), DAY, date(2026, 11, 21)),
    ("connect Timestamp", "TIMESTAMP", "", _connect("int64", "Timestamp"), MICROS // 1000, NOON_MS),
    ("connect Time", "STRING", "", _connect("int32", "Time"), 0, "00:00:00"),
    # time.precision.mode = isostring
    ("IsoDate", "DATE", "", _debezium("string", "IsoDate"), "2026-11-21Z", date(2026, 11, 21)),
    ("IsoTimestamp", "TIMESTAMP", "", _debezium("string", "IsoTimestamp"), "2026-11-21T12:00:00.123456Z", NOON),
    # without schemas
    ("days", "DATE", "", None, DAY, date(2026, 11, 21)),
    ("micros by option", "TIMESTAMP", "micros", None, MICROS, NOON),
    ("millis by option", "TIMESTAMP", "millis", None, MICROS // 1000, NOON_MS),
    ("the schema before the option", "TIMESTAMP", "micros", _debezium("int64", "Timestamp"), MICROS // 1000, NOON_MS),
    ("zoned text", "TIMESTAMP", "", None, "2026-11-21T12:00:00.123456Z", NOON),
    ("NULL", "TIMESTAMP", "", None, None, None),
    # refused, with the form to write
    ("a number without a unit", "TIMESTAMP", "", None, MICROS, "timestamps = 'millis' or 'micros', or declare BIGINT"),
    ("a time of day", "TIMESTAMP", "", _debezium("int64", "MicroTime"), 1, "MicroTime, which is a BIGINT or a STRING"),
    ("a date", "TIMESTAMP", "", _debezium("int32", "Date"), DAY, "which is a DATE"),
    ("a timestamp", "DATE", "", _debezium("int64", "Timestamp"), 5, "which is a TIMESTAMP"),
    ("a plain number", "DATE", "", field("v", "int32"), DAY, "its schema has no date"),
    ("beyond the years", "TIMESTAMP", "", _debezium("int64", "MicroTimestamp"), 2**63 - 1, "the years 1 to 9999"),
    ("beyond the years", "DATE", "", None, 2**31 - 1, "beyond the years 1 to 9999"),
    ("more than a day", "STRING", "", _debezium("int64", "MicroTime"), 10**12, "declare BIGINT"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "option", "schema", "value", "expected"),
    [each[1:] for each in TIMES],
    ids=[f"{each[0]}-{each[1]}" for each in TIMES],
)
def test_times(kind: str, option: str, schema: dict[str, Any] | None, value: object, expected: object) -> None:
    """The name in the schema says what a number is, else the option, else nothing does."""
    found = _read(_table(kind, timestamps=option), value, schema)
    if isinstance(found, str) and found.startswith("Column"):
        assert isinstance(expected, str)
        assert expected in found
    else:
        assert expected == found


def test_nested_values_have_the_schema_of_their_field() -> None:
    """STRUCT, ARRAY and MAP: the converters go with the parts."""
    inner = {"type": "struct", "fields": [decimal_schema("p", 1)], "field": "v"}
    assert {"p": Decimal("1.5")} == _read(_table("STRUCT<p: DECIMAL(5,1)>"), {"p": bytes_of(15)}, inner)
    items = {"type": "array", "items": field("", "int32", "io.debezium.time.Date"), "field": "v"}
    assert [date(2026, 11, 21), None] == _read(_table("ARRAY<DATE>"), [DAY, None], items)
    detail = _read(_table("STRUCT<p: DECIMAL(5,1)>"), {"p": "1234"}, None)
    assert 'Field "v.p" of type DECIMAL(5,1)' in detail
    assert _BOTH in detail


def test_a_table_of_an_earlier_version_reads_decimal_text() -> None:
    """Its declaration has no word on decimals, and its rows stay as they were."""
    old = table("id STRING", "v DECIMAL(10,2)", key=["id"], form="debezium-json")
    assert Decimal(1234) == _read(old, "1234", None)
    assert "decimals" not in json.loads(msgspec.json.encode(old))
