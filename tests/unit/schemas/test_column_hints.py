"""A column that does not fit the Avro schema has a hint with the column to declare, which is accepted."""

from __future__ import annotations

import re
from typing import Any

import pytest

from grouping.model.errors import InputError
from grouping.model.query import CreateStream
from grouping.model.sql_type import SqlType
from grouping.statements.command import parse
from grouping.statements.declaration import check_schemas
from schemas.avro_columns import check_avro_columns
from tests.unit.worker.avro_records import record_schema

_LOCAL = {"type": "long", "logicalType": "local-timestamp-millis"}
_DURATION = {"type": "fixed", "name": "Span", "size": 12, "logicalType": "duration"}
_WIDE = {"type": "bytes", "logicalType": "decimal", "precision": 50, "scale": 2}
_POINT = {
    "type": "record",
    "name": "Point",
    "fields": [
        {"name": "lon", "type": "double"},
        {"name": "either", "type": ["string", "int"]},
        {"name": "tags", "type": {"type": "map", "values": "long"}},
    ],
}


def _hint(avro: Any, column: str) -> str:
    statement = parse(
        f"CREATE STREAM s ({column}) WITH (topic = 't', format = 'avro', schema = '{record_schema({'x': avro})}')"
    )
    assert isinstance(statement, CreateStream)
    with pytest.raises(InputError) as refused:
        check_schemas(statement, statement.columns)
    assert refused.value.code == "stream-mismatch"
    return str(refused.value.hint)


@pytest.mark.parametrize(
    ("avro", "declared", "nearest"),
    [
        ("int", "BIGINT", "INT"),
        ("double", "DECIMAL(10,2)", "DOUBLE"),
        ("string", "TIMESTAMP", "STRING"),
        (["null", "long"], "INT", "BIGINT"),
        (["null", _LOCAL], "TIMESTAMP", "BIGINT"),
        (_DURATION, "STRING", "BINARY"),
        (_WIDE, "DOUBLE", "BINARY"),
        ({"type": "array", "items": ["null", "string"]}, "STRING", "ARRAY<STRING>"),
        (_POINT, "STRING", "STRUCT<lon: DOUBLE, tags: MAP<STRING, BIGINT>>"),
    ],
)
def test_a_column_of_another_type_has_the_type_to_declare(avro: Any, declared: str, nearest: str) -> None:
    """The hint has the column as it is declared for this field, and this column is accepted."""
    assert _hint(avro, f"x {declared}") == f'Declare "x {nearest}".'
    check_avro_columns(record_schema({"x": avro}), [("x", SqlType.of(nearest))])


@pytest.mark.parametrize(
    "avro", [["string", "long"], ["null", "int", "long"], {"type": "array", "items": ["int", "string"]}, "null"]
)
def test_a_union_of_two_types_has_no_column(avro: Any) -> None:
    """No column holds two types; the hint has a union that a column holds."""
    found = re.search(r"\[.*\]", _hint(avro, "x STRING"))
    assert found is not None
    assert found[0] == '["null", "string"]'
    for nullable in (["null", "string"], ["string", "null"]):
        check_avro_columns(record_schema({"x": nullable}), [("x", SqlType.of("STRING"))])


def test_a_missing_column_has_a_similar_field() -> None:
    """A slip in a name has the name of the field."""
    assert _hint("double", "x_ DOUBLE") == 'Did you mean "x"?'
