"""CREATE STREAM … FROM TOPIC of records with schemas: the columns fit each schema, and the rest is told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.sources.inferred_columns import InferredColumns, infer_columns
from gateway.sources.schema_columns import columns_of_statement, registry_columns
from grouping.model.errors import InputError
from grouping.model.query import CreateStream
from grouping.model.sql_type import SqlType
from grouping.statements.command import parse
from grouping.statements.declaration import check_schemas
from schemas.avro_columns import AvroMismatch, check_avro_columns
from schemas.avro_fields import MOST_FIELDS, avro_fields
from schemas.avro_writers import id_header
from schemas.proto_columns import check_proto_columns
from tests.unit.schemas.registry_server import Registry, registry, schema_answer
from tests.unit.schemas.test_decode_proto import DESCRIPTOR
from tests.unit.schemas.test_schema_ids import SCHEMAS, WRITERS
from tests.unit.worker.avro_records import NESTED, record_schema


def _statement(options: str) -> CreateStream:
    statement = parse(f"CREATE STREAM q FROM TOPIC 'quotes' WITH ({options})")
    assert isinstance(statement, CreateStream)
    return statement


def _texts(found: InferredColumns | None) -> dict[str, str]:
    assert found is not None and not found.places
    return {name: str(sql_type) for name, sql_type in found.columns}


@pytest.mark.parametrize(
    ("avro", "expected"),
    [
        ("string", "STRING"),
        (["null", "int"], "INT"),
        (["long"], "BIGINT"),
        ("float", "FLOAT"),
        ("bytes", "BINARY"),
        ("null", None),
        (["string", "int"], None),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "STRING"),
        ({"type": "fixed", "name": "F", "size": 4}, "BINARY"),
        ({"type": "fixed", "name": "F", "size": 12, "logicalType": "duration"}, None),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, "DECIMAL(9,2)"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 39}, None),
        ({"type": "int", "logicalType": "date"}, "DATE"),
        ({"type": "long", "logicalType": "timestamp-micros"}, "TIMESTAMP"),
        ({"type": "int", "logicalType": "time-millis"}, "INT"),
        ({"type": "array", "items": ["null", "double"]}, "ARRAY<DOUBLE>"),
        ({"type": "map", "values": {"type": "array", "items": "null"}}, None),
    ],
    ids=str,
)
def test_types_of_avro(avro: Any, expected: str | None) -> None:
    """Each type has its SQL type, which the check of declared columns accepts."""
    schema = record_schema({"a": avro})
    assert {"a": expected} == avro_fields(schema)
    if expected is not None:
        check_schemas(_declared(schema, {"a": expected}), [("a", SqlType.of(expected))])


def _declared(schema: str, columns: dict[str, str]) -> CreateStream:
    shown = ", ".join(f"{name} {text}" for name, text in columns.items())
    statement = parse(f"CREATE STREAM q ({shown}) WITH (topic = 'quotes', format = 'avro', schema = '{schema}')")
    assert isinstance(statement, CreateStream)
    return statement


def test_records_within_records() -> None:
    """A STRUCT is without fields that no column can hold, and without a record that contains itself."""
    found = _texts(columns_of_statement(_statement(f"format = 'avro', schema = '{NESTED}'")))
    who = "STRUCT<id: BIGINT, surplus: TIMESTAMP, born: DATE, owes: DECIMAL(4,2)>"
    assert {"before": who, "who": who, "tags": "ARRAY<STRING>", "times": "MAP<STRING, TIMESTAMP>"} == found
    _declared(NESTED, found)


_NAMES = st.sampled_from(["a", "A", "b", "_time", "c"])
_LEAVES = st.sampled_from(["null", "int", "string", "float", "bytes", ["null", "long"], ["int", "string"]])


def _around(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = iter(range(10**9))
    fields = st.dictionaries(_NAMES, inner, max_size=3)
    records = fields.map(
        lambda found: {
            "type": "record",
            "name": f"R{next(names)}",
            "fields": [{"name": name, "type": kind} for name, kind in found.items()],
        }
    )
    return records | inner.map(lambda kind: {"type": "array", "items": kind})


@given(st.dictionaries(_NAMES, st.recursive(_LEAVES, _around, max_leaves=6), min_size=1, max_size=4))
def test_inferred_columns_are_declared_columns(fields: dict[str, Any]) -> None:
    """The columns of any schema pass the check of CREATE STREAM, and a warning names the other fields."""
    schema = record_schema(fields)
    try:
        check_avro_columns(schema, ())
        found = columns_of_statement(_statement(f"format = 'avro', schema = '{schema}'"))
    except (AvroMismatch, InputError):
        return
    assert found is not None
    _declared(schema, _texts(found))
    left_out = [name for name in fields if name not in _texts(found)]
    assert all(name in found.warnings[-1] for name in left_out)


def test_a_column_of_several_schemas_has_a_type_for_all() -> None:
    """The newest type to which the other schemas can be resolved; a field without such a type is left out."""
    found = columns_of_statement(_statement(f"format = 'avro', framing = 'confluent', schemas = '{SCHEMAS}'"))
    expected = {"price": "DOUBLE", "symbol": "BINARY", "venue": "STRING", "n": "BIGINT", "more": "ARRAY<INT>"}
    assert expected == _texts(found)
    narrower = {1: {"n": "long", "a": "string"}, 2: {"n": "int", "a": "int"}}
    given = json.dumps({number: json.loads(record_schema(fields)) for number, fields in narrower.items()})
    found = columns_of_statement(_statement(f"format = 'avro', framing = 'confluent', schemas = '{given}'"))
    assert {"n": "BIGINT"} == _texts(found)
    assert found is not None and 'Field "a" has no type to which all schemas can be resolved.' in found.warnings


def test_messages_of_protobuf() -> None:
    """The columns of a message pass the check of CREATE STREAM."""
    found = columns_of_statement(_statement(f"format = 'protobuf', descriptor = '{DESCRIPTOR}', message = 'x.Trade'"))
    texts = _texts(found)
    check_proto_columns(DESCRIPTOR, "x.Trade", found.columns if found else ())
    assert "STRUCT<price: DOUBLE>" == texts["leg"]
    assert ("ARRAY<STRUCT<price: DOUBLE>>", "MAP<STRING, INT>", "BIGINT") == (
        texts["legs"],
        texts["tags"],
        texts["maybe"],
    )
    assert found is not None and "numbers" in found.warnings[-1]


def test_a_schema_that_grows_when_written_out_is_refused() -> None:
    """Forty records, of which each has the one before twice, have 2⁴⁰ fields."""
    inner: Any = "int"
    for level in range(40):
        named = {"type": "record", "name": f"R{level}", "fields": [{"name": "a", "type": inner}]}
        inner = {**named, "fields": [*named["fields"], {"name": "b", "type": f"R{level - 1}" if level else "int"}]}
    with pytest.raises(AvroMismatch, match="too many fields|cannot be used"):
        avro_fields(record_schema({"a": inner}))
    wide = {f"f{number}": "int" for number in range(MOST_FIELDS + 1)}
    with pytest.raises(AvroMismatch, match="too many fields"):
        avro_fields(record_schema(wide))


@pytest.fixture
def server() -> Iterator[Registry]:
    """A registry that runs."""
    with registry() as known:
        yield known


def test_schemas_of_a_registry(server: Registry) -> None:
    """Columns come from the schemas of the records; warnings tell unknown and unreadable schemas."""
    for schema_id in (1, 2):
        server.put(schema_id, schema_answer(json.loads(record_schema(WRITERS[schema_id]))))
    server.put(3, schema_answer("message M {}", schemaType="PROTOBUF"))
    values = [id_header(each) + b"x" for each in (1, 2, 3, 9, 1)] + [None, b"{}"]
    found = registry_columns(values, "quotes", server.url, "ann:hush")
    assert {"n": "BIGINT", "more": "ARRAY<INT>", "symbol": "STRING", "price": "FLOAT"} == _texts(found)
    assert ("The registry does not know schema 9.", "The schema with id 3 is not of Avro") == (
        found.warnings[0],
        found.warnings[1][:35],
    )
    assert 4 == len(server.requests)


def test_a_registry_without_an_answer(server: Registry) -> None:
    """The statement may be sent again; the login is in no message."""
    server.put(1, (503, b""))
    with pytest.raises(InputError) as refused:
        registry_columns([id_header(1)], "quotes", server.url, "ann:hush")
    assert "unavailable" == refused.value.code
    assert "status 503" in refused.value.detail
    assert "hush" not in refused.value.detail
    with pytest.raises(InputError, match="no record of topic") as refused:
        registry_columns([b"{}", None], "quotes", server.url, "")
    assert "stream-mismatch" == refused.value.code


def test_framed_json() -> None:
    """Columns come from the texts behind the five bytes; a record without these bytes does not count."""
    found = infer_columns([id_header(4) + b'{"a": 1}', b'{"b": 1}'], "quotes", None, "confluent")
    assert {"a": "BIGINT"} == _texts(found)
    assert "A byte 0 and the id of a schema" in found.warnings[-1]


@pytest.mark.parametrize("name", [True, None, 1.5, [], "\ud800"])
def test_a_name_that_is_no_text_is_refused(name: object) -> None:
    """The library takes any JSON as the name of a field, also within a record, an array or a map."""
    inner = {"type": "record", "name": "In", "fields": [{"name": name, "type": "int"}]}
    for kind in (inner, {"type": "array", "items": inner}, {"type": "map", "values": ["null", inner]}):
        schema = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": kind}]})
        with pytest.raises(InputError, match="the Avro schema cannot be used") as refused:
            columns_of_statement(_statement(f"format = 'avro', schema = '{schema}'"))
        assert "stream-mismatch" == refused.value.code


def test_fields_with_other_names_get_no_column() -> None:
    """Columns with these names could not be declared by the statement of the reply."""
    names = ("", "a b", "a: INT, b", "x" * 256)
    inner = {"type": "record", "name": "In", "fields": [{"name": name, "type": "int"} for name in (*names, "n")]}
    assert {"in": "STRUCT<n: INT>", **dict.fromkeys(names)} == avro_fields(
        record_schema({"in": inner, **dict.fromkeys(names, "int")})
    )


def test_a_refusal_does_not_repeat_the_schema() -> None:
    """The detail has a bounded length."""
    with pytest.raises(AvroMismatch) as refused:
        avro_fields(json.dumps({"type": "x" * 10_000}))
    assert len(refused.value.detail) < 400
    with pytest.raises(AvroMismatch, match='column "x" is not in the Avro schema') as refused:
        check_avro_columns(record_schema({f"f{number}": "int" for number in range(1_000)}), [("x", "INT")])
    assert refused.value.detail.endswith('"f19", ….')
