"""Nested Avro records: structs, arrays and maps at any depth, and values that they cannot hold."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal

import fastavro
import pytest

from grouping.model.sql_type import SqlType
from schemas.avro_columns import check_avro_columns
from spark_jobs.engine.decode.decode import decode
from tests.unit.matching.event_batches import SETTINGS, batch, header, stream
from tests.unit.worker.avro_records import NESTED

NESTED_COLUMNS = (
    "who STRUCT<id: BIGINT, born: DATE, owes: DECIMAL(4,2), manager: STRUCT<id: BIGINT>>",
    "tags ARRAY<STRING>",
    "times MAP<STRING, TIMESTAMP>",
)


def nested_body(**values: object) -> bytes:
    """Return the body of a record of `NESTED`, written without logical types."""
    boss = {"id": 2, "surplus": 2**62, "born": None, "owes": b"", "manager": None}
    who = {"id": 7, "surplus": 0, "born": 19_782, "owes": b"\x04\xd2", "manager": boss}
    sink = io.BytesIO()
    plain = json.loads(NESTED.replace('"logicalType"', '"was"').replace('"string"', '"bytes"'))
    record = {"before": boss, "who": who, "tags": [b"a", None], "times": {"at": 1_700_000_000_123, "no": None}}
    fastavro.schemaless_writer(sink, fastavro.parse_schema(plain), record | values)
    return sink.getvalue()


def nested_stream(*columns: str):
    """Return a stream of these columns over `NESTED`."""
    return stream(*columns, form="avro", schema=NESTED, framing="raw")


def test_nested_columns():
    """Records, arrays and maps are read with the fields of the column's type, at any depth, recursive ones too."""
    empty = nested_body(who=None, tags=[], times={})
    events, dead = decode(batch([nested_body(), empty]), nested_stream(*NESTED_COLUMNS), SETTINGS)
    assert dead is None
    who = {"id": 7, "born": date(2024, 2, 29), "owes": Decimal("12.34"), "manager": {"id": 2}}
    at = datetime(2023, 11, 14, 22, 13, 20, 123_000, UTC)
    assert [who, None] == events.column("who").to_pylist()
    assert [["a", None], []] == events.column("tags").to_pylist()
    assert [[{"key": "at", "value": at}, {"key": "no", "value": None}], []] == events.column("times").to_pylist()


@pytest.mark.parametrize(
    ("values", "detail"),
    [
        ({"tags": [b"\xff"]}, 'Column "tags" has a string that is no valid UTF-8.'),
        ({"times": {"at": 2**62}}, 'Field "times.at" of type TIMESTAMP cannot hold the value: the time is beyond'),
        (
            {"who": {"id": 7, "surplus": 0, "born": 2**30, "owes": b"", "manager": None}},
            'Field "who.born" of type DATE cannot hold the value: the date is beyond',
        ),
        (
            {"who": {"id": 7, "surplus": 0, "born": None, "owes": b"\x7f\xff", "manager": None}},
            'Field "who.owes" of type DECIMAL(4,2) cannot hold the value: the number has more than 4 digits.',
        ),
    ],
    ids=["no UTF-8", "a time after the calendar", "a date after it", "a DECIMAL of five digits"],
)
def test_what_a_nested_column_cannot_hold(values, detail):
    """The value makes a dead letter that names its path if the column has it, and spoils no record otherwise."""
    body = nested_body(**values)
    _, dead = decode(batch([body]), nested_stream(*NESTED_COLUMNS), SETTINGS)
    assert "undecodable" == header(dead.to_pylist()[0], "code")
    assert detail in header(dead.to_pylist()[0], "detail")
    _, dead = decode(batch([body]), nested_stream("who STRUCT<id: BIGINT>"), SETTINGS)
    assert dead is None


def test_nested_columns_fit_their_schema():
    """Each is accepted as its record, array or map has it."""
    check_avro_columns(NESTED, [(name, SqlType.of(kind)) for name, kind in (c.split(" ", 1) for c in NESTED_COLUMNS)])
