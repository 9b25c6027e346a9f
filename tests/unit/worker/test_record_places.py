"""Columns FROM a path, a header or the key: which value they have, and which records are dead letters."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.cli.scripts.definitions import create_statement
from gateway.sources.streams import describe_stream
from gateway.testing import Record
from gateway.testing import Stream as KitStream
from gateway.testing.records import placed
from grouping.model.catalog import Stream, StreamColumn
from grouping.model.column_place import ColumnPlace, parse_path, path_text
from grouping.model.errors import InputError
from grouping.statements.command import parse
from spark_jobs.engine.decode.decode import decode
from spark_jobs.engine.decode.json_events import JsonReader
from spark_jobs.engine.decode.json_exact import WrongRecord, read_record
from spark_jobs.engine.rows.events import arrow_type
from tests.unit.matching.event_batches import SETTINGS, batch, header


def declared(columns: str) -> Stream:
    """Return the stream of a declaration's columns."""
    statement = parse(f"CREATE STREAM s ({columns}) WITH (topic = 't', format = 'json')")
    return Stream("s_1", "s", statement.stream_columns, "t", "json", {"0": 0}, "")


def rows(stream: Stream, events: object) -> list[tuple[object, ...]]:
    """Return the events of a stream with all columns."""
    return list(zip(*(events.values(column.name) for column in stream.columns), strict=True))


READ = [
    ("p DOUBLE FROM '$.data.p'", b'{"data": {"p": 1.5}, "p": 2}', 1.5),
    ("p DOUBLE FROM '$.data.p'", b'{"p": 2}', None),
    ("p DOUBLE FROM '$.data.p'", b'{"data": null}', None),
    ("p DOUBLE FROM '$.data.p'", b'{"data": "text"}', None),
    ("p DOUBLE FROM '$.data.p'", b'{"data": [1]}', None),
    ("p DOUBLE FROM '$.data.p'", b'{"data": {"p": 1}, "data": {"q": 2}}', None),
    ("host STRING FROM '$[\"id.orig_h\"]'", b'{"id.orig_h": "10.0.0.1"}', "10.0.0.1"),
    ("host STRING FROM '$[''id.orig_h'']'", b'{"id.orig_h": "10.0.0.1"}', "10.0.0.1"),
    ("x STRING FROM '$[1]'", b'["a", "b", {"c": 1}]', "b"),
    ("x STRING FROM '$[1]'", b'["a"]', None),
    ("x STRING FROM '$[1]'", b'{"a": 1}', None),
    ("x BIGINT FROM '$.k.v[2].n'", b'{"k": {"v": [{"n": 1}, [], {"n": 3}, 4]}}', 3),
    ("x ARRAY<INT> FROM '$'", b"[1, null, 3]", [1, None, 3]),
    ("x VARIANT FROM '$'", b'{"a": 1.50}', '{"a":1.50}'),
    ("x VARIANT FROM '$.a.b'", b'{"a": {"b": null}}', "null"),
    ("x VARIANT FROM '$.a.b'", b'{"a": null}', None),
    ("_time TIMESTAMP FROM '$.no'", b"{}", None),
    ("_key STRING", b'{"_key": "own"}', "own"),
    ("Symbol STRING FROM '$.symbol'", b'{"symbol": "INTC", "Symbol": "no"}', "INTC"),
]


@pytest.mark.parametrize(("column", "value", "expected"), READ)
def test_a_column_is_what_lies_at_its_place(column: str, value: bytes, expected: object) -> None:
    """NULL where nothing lies; a path that leaves objects and arrays leads nowhere."""
    stream = declared(column)
    events, letters = decode(batch([value]), stream, SETTINGS)
    assert letters is None
    [[found]] = rows(stream, events)
    assert (json.loads(found) if "VARIANT" in column and found else found) == (
        json.loads(expected) if "VARIANT" in column and expected else expected
    )


REFUSED = [
    ("p DOUBLE FROM '$.data.p'", b'{"data": {"p": "x"}}', "DOUBLE cannot hold the value at $.data.p: a string is no"),
    ("x INT FROM '$[0]'", b"[1.5]", "of type INT cannot hold the value at $[0]: the number has a fraction"),
    ("r STRUCT<a: STRUCT<at: TIMESTAMP>>", b'{"r": {"a": {"at": 7}}}', 'Field "r.a.at" of type TIMESTAMP cannot hold the value: a number is no'),  # noqa: E501
    ("r ARRAY<STRUCT<a: INT>>", b'{"r": [{}, 1]}', 'Field "r[1]" of type STRUCT cannot hold the value: a number is no'),
    ("r MAP<STRING, INT>", b'{"r": {"a b": 1.5}}', """Field "r["a b"]" of type INT cannot hold"""),  # noqa: E501
    ("r ARRAY<INT> FROM '$'", b'[1, "b"]', 'Field "r[1]" of type INT cannot hold the value at $[1]: a string is no'),
    ("r ARRAY<INT> FROM '$'", b"{}", "an object is no array"),
    ("x INT FROM '$.a.b'", b"[]", "The value is JSON but no object."),
    ("x INT FROM '$.a.b'", b"{", "The value is not one JSON object"),
    ("x INT", b'{"x": "1"}', 'Column "x" of type INT cannot hold the value: a string is no number.'),
]  # fmt: skip


@pytest.mark.parametrize(("column", "value", "detail"), REFUSED)
def test_a_wrong_type_is_a_dead_letter_that_names_the_path(column: str, value: bytes, detail: str) -> None:
    """In a nested column, the path of the value that does not fit."""
    _, letters = decode(batch([b"{}" if "$'" not in column else b"[]", value]), declared(column), SETTINGS)
    [letter] = [row for row in letters.to_pylist() if row["value"] == value]
    assert detail in header(letter, "detail")


def test_a_long_key_of_a_map_is_clipped_in_the_detail() -> None:
    """A dead letter is not much larger than its record."""
    value = json.dumps({"m": {"k" * 100_000: "x"}}).encode()
    _, letters = decode(batch([value]), declared("m MAP<STRING, INT>"), SETTINGS)
    assert len(header(letters.to_pylist()[0], "detail")) < 500


def test_columns_from_headers_and_keys() -> None:
    """The last header of a name counts; texts are read by the column's type; a missing part is NULL."""
    stream = declared(
        "type STRING FROM HEADER 'ce_type', n INT FROM HEADER 'n', at TIMESTAMP FROM HEADER 'at', "
        "raw BINARY FROM HEADER 'raw', k STRING FROM KEY, id BIGINT FROM KEY '$.id', v STRING"
    )
    values = [b'{"v": "a"}', b'{"v": "b"}', b'{"v": "c"}', b'{"v": 1}', b'{"v": "e"}']
    given = [
        (("ce_type", b"old"), ("ce_type", b"x.y"), ("n", b"7"), ("at", b"2026-11-21T10:00:00Z"), ("raw", b"\xff")),
        (),
        (("n", b"seven"),),
        (),
        (("ce_type", None),),
    ]
    records = batch(values, [b'{"id": 5}', None, b"{}", b"{}", b"text"], headers=given)
    events, letters = decode(records, stream, SETTINGS)
    found = rows(stream, events)
    assert [row[:2] + row[3:] for row in found] == [
        ("x.y", 7, b"\xff", '{"id": 5}', 5, "a"),
        (None, None, None, None, None, "b"),
    ]
    assert [None if row[2] is None else row[2].isoformat() for row in found] == ["2026-11-21T10:00:00+00:00", None]
    assert events.offsets.tolist() == [100, 101]
    assert [header(row, "detail") for row in letters.to_pylist()] == [
        'Column "n" of type INT cannot hold the value at the header "n": the text is no JSON.',
        'Column "v" of type STRING cannot hold the value: a number is no string.',
        "The record's key is not as declared. The value is not one JSON object: Expecting value at character 0.",
    ]


TYPES = ["STRING", "INT", "DOUBLE", "DECIMAL(6,2)", "VARIANT", "BOOLEAN", "ARRAY<INT>", "TIMESTAMP", "STRUCT<a: INT>"]
STEPS = st.sampled_from(["a", "b", 0, 1])
SCALARS = st.sampled_from([None, True, 1, 2.5, "x", "1", "2026-11-21T10:00:00Z"])
RECORDS = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner), max_leaves=12
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(st.lists(STEPS, max_size=3), st.sampled_from(TYPES)), min_size=1, max_size=5), st.lists(RECORDS)
)
def test_the_fast_decoder_reads_paths_as_the_exact_one(paths: list, records: list) -> None:
    """Whatever the paths, overlapping ones too: equal values, and the same dead letters."""
    columns = [
        StreamColumn(f"c{number}", kind, str(ColumnPlace("value", tuple(path))))
        for number, (path, kind) in enumerate(paths)
    ]
    values = [json.dumps(record).encode() for record in records]
    good, wrong = [], {}
    for row, value in enumerate(values):
        try:
            good.append(read_record(value, columns))
        except WrongRecord as error:
            wrong[row] = str(error)
    read, refused = JsonReader(columns)(pa.array(values, pa.binary()))
    assert refused == wrong
    for number, column in enumerate(columns):
        expected = pa.array([row[number] for row in good], arrow_type(column.type))
        assert pa.array(read(column), arrow_type(column.type)).to_pylist() == expected.to_pylist()


@given(st.lists(st.text(min_size=1).filter(lambda name: not ('"' in name and "'" in name)) | st.integers(0, 255)))
def test_a_place_is_read_from_its_text(path: list) -> None:
    """The catalog keeps places as text."""
    path = path[:32]
    assert parse_path(path_text(tuple(path))) == tuple(path)
    for place in (ColumnPlace("value", tuple(path)), ColumnPlace("key", tuple(path)), ColumnPlace("key")):
        assert ColumnPlace.of(str(place)) == place
    assert ColumnPlace.of("HEADER 'it''s'") == ColumnPlace("header", header="it's")


@pytest.mark.parametrize(
    "path",
    ["", "data.p", "$.", "$..p", "$[*]", "$.*", "$[-1]", "$[256]", "$['a", "$.a b", "$" + ".a" * 33, "$." + "a" * 1000],
)
def test_what_is_no_path_is_refused(path: str) -> None:
    """A wildcard is none either: a column has one value."""
    with pytest.raises(InputError) as refused:
        declared("x STRING FROM '" + path.replace("'", "''") + "'")
    assert refused.value.code == "syntax-error"


def test_export_writes_places_as_they_are_declared() -> None:
    """`cq export` makes the statement from the answer of SHOW STREAMS."""
    stream = declared("p DOUBLE FROM '$.data[\"it''s\"]', k STRING FROM KEY, h INT FROM HEADER 'it''s', v STRING")
    assert parse(create_statement(describe_stream(stream))).stream_columns == stream.columns


def test_columns_of_earlier_records_are_fields() -> None:
    """The catalog's record of a column without FROM is as it was before there were places."""
    old = b'{"name":"price","type":"DOUBLE"}'
    column = msgspec.json.decode(old, type=StreamColumn)
    assert (column.place, msgspec.json.encode(column)) == (ColumnPlace("value", ("price",)), old)


def test_the_kit_gives_records_headers() -> None:
    """Text is UTF-8."""
    row = Record({"v": "a"}, headers={"type": "é", "raw": b"\xff"})
    [record] = placed([row], KitStream("s (v STRING)"), datetime(2026, 11, 21, tzinfo=UTC))
    assert record.headers == (("type", "é".encode()), ("raw", b"\xff"))
