"""CREATE STREAM … FROM TOPIC: columns fit the sampled records, and the statement carried out declares the stream."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot.dialects.spark import Spark

import gateway.testing
from gateway.cli.scripts.definitions import create_statement
from gateway.sources.declarations import is_declared
from gateway.sources.inferred_columns import InferredColumns, infer_columns
from gateway.sources.stream_statement import stream_statement
from gateway.sources.streams import describe_stream
from grouping.model.catalog import Stream
from grouping.model.column import StreamColumn
from grouping.model.errors import InputError
from grouping.model.ids import StreamId
from grouping.model.query import CreateStream
from grouping.statements.command import parse
from tests.pages import Block, blocks

_SAMPLES = sorted((Path(__file__).parents[1] / "testing" / "records").glob("*.jsonl"))
_DECLARED = [
    block
    for page in ("statements.md", "expressions.md", "debezium.md", "edges.md")
    for block in blocks(page)
    if block.language == "sql" and not block.title and block.text.startswith("CREATE STREAM")
]
_EXPLODE = {
    "earthquakes": "$.features[*]",
    "otel_logs": "$.resourceLogs[*].scopeLogs[*].logRecords[*]",
    "transit_feed": "$.entity[*]",
}

_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_names = st.sampled_from(
    ["a", "A", "b", "b.c", "b c", "b_c", "from", "select", "order", "_time", "7", "é", "", "x'y", 'x"y', "x\"'y", "x`y"]
    + ["x*", "x\ny", "end", "key", "value", "primary", "watermark", "\N{GREEK SMALL LETTER FINAL SIGMA}"]
)
_times = st.sampled_from(
    ["2026-11-21T10:00:00Z", "2026-11-21T10:00:00.123456789+01:00", "2026-11-21T10:00Z", "0001-01-01T00:00:00+01:00"]
    + ["2026-11-21T10:00:00", "2026-11-21", "2026-02-30T10:00:00Z", "٢٠٢٦-11-21T10:00:00Z"]
)
_scalars = (
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
) | (_texts | _times)
_values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_names, inner, max_size=4),
    max_leaves=20,
)
_records = st.lists(st.dictionaries(_names, _values, max_size=6), min_size=1, max_size=6)


def _written(record: object) -> bytes:
    return json.dumps(record, ensure_ascii=False).encode()


def _stream(found: InferredColumns, explode: str | None = None) -> Stream:
    columns = tuple(StreamColumn(name, str(kind), found.places.get(name, "")) for name, kind in found.columns)
    options: dict[str, Any] = {"explode": explode} if explode else {}
    return Stream(StreamId("s_1"), "Some.Stream", columns, "some-topic", "json", {"0": 0}, "", **options)


def _inferred(*records: object, explode: str | None = None) -> InferredColumns:
    return infer_columns([_written(record) for record in records], "quotes", explode)


def _shown(*records: object, explode: str | None = None) -> str:
    return stream_statement(_stream(_inferred(*records, explode=explode))).partition("(")[2].rpartition(") WITH")[0]


@given(_records)
def test_every_sampled_record_fits_the_inferred_columns(records: list[dict[str, object]]) -> None:
    """The statement declares the inferred columns, and no record is a dead letter under it."""
    values = [_written(record) for record in records]
    try:
        found = infer_columns(values, "quotes", None)
    except InputError as error:
        assert "No field of the sampled records has a value." == error.detail
        return
    stream = _stream(found)
    declared = gateway.testing.Stream(stream_statement(stream))
    assert stream.columns == declared.declared.columns
    rows = gateway.testing.evaluate('SELECT _offset FROM "Some.Stream"', declared, values)
    assert [] == [row.why for row in rows if row.dead_letter]


@given(_records)
def test_inferred_columns_have_the_values_of_the_records(records: list[dict[str, object]]) -> None:
    """A column of plain values has each of them as the record has it; a field without a column has no value at all."""
    records = [record | {"there": "yes"} for record in records]
    values = [_written(record) for record in records]
    found = infer_columns(values, "quotes", None)
    stream = _stream(found)
    declared = gateway.testing.Stream(stream_statement(stream))
    plain = [column for column in stream.columns if str(column.type) in ("BOOLEAN", "BIGINT", "STRING")]
    chosen = ", ".join(f'"{column.name}"' for column in plain)
    rows = gateway.testing.evaluate(f'SELECT {chosen} FROM "Some.Stream"', declared, values)
    for row, record in zip(rows, records, strict=True):
        assert {column.name: record.get(str((column.place.path or ("",))[0])) for column in plain} == row.result


@given(st.lists(st.none() | st.binary(max_size=20) | st.text(alphabet='[]{}":,0123e-.\\u truefalsn', max_size=20)))
def test_any_bytes_give_columns_or_a_refusal(values: list[bytes | str | None]) -> None:
    """No record makes the gateway fail."""
    sampled = [value.encode() if isinstance(value, str) else value for value in values]
    try:
        assert infer_columns([*sampled, b'{"a": 1}'], "quotes", None).columns
        infer_columns(sampled, "quotes", "$.a[*]")
    except InputError as error:
        assert "stream-mismatch" == error.code


@pytest.mark.parametrize("path", _SAMPLES, ids=lambda path: path.name)
def test_sample_records_fit_columns_inferred_from_them(path: Path) -> None:
    """The records of the documentation's pages are all events of a stream FROM TOPIC, but for Debezium's tombstones."""
    values = [value for value in path.read_bytes().splitlines() if value != b"null"]
    if path.name.endswith(".records.jsonl"):
        values = [_written(json.loads(value)["value"]) for value in values]
    explode = _EXPLODE.get(path.stem)
    stream = _stream(infer_columns(values, path.stem, explode), explode)
    rows = gateway.testing.evaluate(
        'SELECT _offset FROM "Some.Stream"', gateway.testing.Stream(stream_statement(stream)), values
    )
    assert [] == [row.why for row in rows if row.dead_letter]


@pytest.mark.parametrize(
    ("records", "columns"),
    [
        ([{"n": 1}, {"n": 2**63 - 1}, {"n": None}], "n BIGINT"),
        ([{"n": 1}, {"n": 1.5}], "n DOUBLE"),
        ([{"n": 1}, {"n": 2**63}], "n VARIANT"),
        ([{"n": 2**63}, {"n": 0.5}], "n DOUBLE"),
        ([{"b": True}, {"b": False}], "b BOOLEAN"),
        ([{"b": True}, {"b": 0}], "b VARIANT"),
        ([{"s": "1.50"}], "s STRING"),
        ([{"t": "2026-11-21T10:00:00Z"}, {"t": "2026-11-21T10:00+01:00"}], "t TIMESTAMP"),
        ([{"t": "2026-11-21T10:00:00Z"}, {"t": "2026-11-21T10:00:00"}], "t STRING"),
        ([{"t": "2026-11-21"}], "t STRING"),
        ([{"o": {"t": "2026-11-21T10:00:00Z"}}], "o STRUCT<t: STRING>"),
        ([{"a": [1, None]}, {"a": []}, {"a": [0.5]}], "a ARRAY<DOUBLE>"),
        ([{"o": {"p": 1}}, {"o": {"q": ["x"]}}], "o STRUCT<p: BIGINT, q: ARRAY<STRING>>"),
        ([{"o": {"from": 1, "a b": "x", "no": None}}], "o STRUCT<from: BIGINT, `a b`: STRING>"),
        ([{"o": {"s": 1, "S": 2}}], "o VARIANT"),
        ([{"o": {"p": 1}}, {"o": "p"}], "o VARIANT"),
        ([{"s": 1, "S": "x"}], "s BIGINT, S_2 STRING FROM '$.S'"),
        ([{"id.orig_h": "h", "id_orig_h": 1}],
         "id_orig_h_2 STRING FROM '$[\"id.orig_h\"]', id_orig_h BIGINT"),
        ([{"_time": 1, "from": 2, "größe": 3}], "_time_2 BIGINT FROM '$._time', \"from\" BIGINT, \"größe\" BIGINT"),
    ],
)  # fmt: skip
def test_types_are_inferred_from_all_records(records: list[object], columns: str) -> None:
    """A type is the narrowest that has all values; names that are no identifiers, or taken, get FROM."""
    assert columns == _shown(*records)


def test_an_object_with_changing_keys_is_a_map() -> None:
    """Objects of hundreds of keys, of which each has few, are entries rather than fields."""
    records = [{"positions": {f"K{number}": number, f"K{number + 1}": 0.5}} for number in range(100)]
    assert "positions MAP<STRING, DOUBLE>" == _shown(*records)


def test_elements_are_the_events_of_an_exploded_stream() -> None:
    """Columns are of the elements at the path."""
    records = [{"at": 1, "rows": [{"p": 1}, {"p": 2, "q": "x"}]}, {"at": 2, "rows": []}]
    assert "p BIGINT, q STRING" == _shown(*records, explode="$.rows[*]")
    with pytest.raises(InputError) as refused:
        _inferred({"rows": []}, explode="$.rows[*]")
    assert ("stream-mismatch", "There is no element at $.rows[*] in 1 record.") == (
        refused.value.code,
        refused.value.detail,
    )


def test_what_is_left_out_is_told() -> None:
    """Fields without values, fields that no path can name, and records that are no events are named in warnings."""
    good = _written({"a": 1, "gone": None, "o": {"p": "x", "none": []}, "": 1, "empty": {}})
    found = infer_columns([good, None, b"not json", b'{"a": "half \\ud800"}', b"[1]"], "quotes", None)
    assert ["a", "o"] == [name for name, _ in found.columns]
    without, nameless, faults = found.warnings
    assert without == "Fields without a value in all sampled records are left out: $.gone, $.o.none, $.empty."
    assert "1 field" in nameless
    assert faults.startswith("4 of 5 sampled records do not count, the first because: The record has no value.")


@pytest.mark.parametrize(
    ("values", "message", "hint"),
    [
        ([], 'topic "quotes" has no records', "Publish some records first."),
        ([None], 'the records of topic "quotes" are not JSON objects', "Declare the columns"),
        ([b"a,b,c", b"1,2,3"], 'the records of topic "quotes" are not JSON objects', "Declare the columns"),
        ([b'[{"a": 1}]'], 'the records of topic "quotes" are not JSON objects', "WITH (explode = '$')"),
        ([b"\x00\x00\x00\x00\x01\x02"], 'the records of topic "quotes" are not JSON objects', "framing = 'confluent'"),
        ([b"{}", b'{"a": null}'], 'no columns can be inferred from topic "quotes"', "Declare the columns"),
        ([_written({f"k{n}": n for n in range(1001)})], 'no columns can be inferred from topic "quotes"', "Declare"),
    ],
)
def test_a_topic_without_columns_is_refused(values: list[bytes | None], message: str, hint: str) -> None:
    """The refusal says what the records are, and what to write instead."""
    with pytest.raises(InputError) as refused:
        infer_columns(values, "quotes", None)
    assert ("stream-mismatch", message) == (refused.value.code, refused.value.message)
    assert hint in (refused.value.hint or "")


def test_names_without_quotes_are_names_in_a_query() -> None:
    """Each word that SQL knows is quoted in the statement, or a column in a SELECT as it stands."""
    words = sorted({word.lower() for word in Spark.Tokenizer.KEYWORDS if word.isidentifier()})
    stream = _stream(_inferred(dict.fromkeys(words, 1)))
    text = stream_statement(stream)
    declared = gateway.testing.Stream(text)
    assert words == [column.name for column in declared.declared.columns]
    names = re.findall(r'("?\w+"?) BIGINT', text)
    query = f'SELECT {", ".join(names)} FROM "Some.Stream" WHERE {" AND ".join(f"{name} = 1" for name in names)}'
    [row] = gateway.testing.evaluate(query, declared, [_written(dict.fromkeys(words, 1))])
    assert row.result == dict.fromkeys(words, 1)


@pytest.mark.parametrize("block", _DECLARED, ids=str)
def test_the_statement_of_a_stream_has_all_its_options(block: Block) -> None:
    """Each stream of the documentation is declared again by the statements of DESCRIBE STREAM and `cq export`."""
    declared = gateway.testing.Stream(block.text).declared
    for text in (stream_statement(declared), create_statement(describe_stream(declared))):
        assert declared == gateway.testing.Stream(text).declared


def test_a_stream_that_is_there_is_accepted_whatever_its_columns() -> None:
    """IF NOT EXISTS … FROM TOPIC compares the topic and the options."""
    stream = _stream(_inferred({"a": 1, "b.c": "x"}))
    statement = parse("CREATE STREAM IF NOT EXISTS some.stream FROM TOPIC 'some-topic'")
    assert isinstance(statement, CreateStream)
    assert is_declared(stream, statement)
    for other in ("FROM TOPIC 'other-topic'", "FROM TOPIC 'some-topic' WITH (lenient = true)"):
        statement = parse(f"CREATE STREAM IF NOT EXISTS some.stream {other}")
        assert isinstance(statement, CreateStream)
        assert not is_declared(stream, statement)


@pytest.mark.parametrize(
    ("rest", "code"),
    [
        ("FROM TOPIC quotes", "syntax-error"),
        ("FROM TOPIC 'no topic'", "stream-mismatch"),
        ("FROM TOPIC 'quotes' WITH (partitions = 2)", "syntax-error"),
        ("FROM TOPIC 'quotes' WITH (topic = 'quotes')", "syntax-error"),
        ("FROM TOPIC 'quotes' WITH (format = 'debezium-json')", "unsupported-query"),
        ("FROM TOPIC 'quotes' WITH (format = 'avro')", "stream-mismatch"),
        ("FROM TOPIC 'quotes' WITH (format = 'protobuf')", "stream-mismatch"),
        ("FROM TOPIC 'quotes' WITH (schema = '{}')", "stream-mismatch"),
        ("FROM TOPIC 'quotes' (a INT)", "syntax-error"),
    ],
)
def test_from_topic_has_a_topic_and_few_options(rest: str, code: str) -> None:
    """The options that need columns or make a topic are refused."""
    with pytest.raises(InputError) as refused:
        parse(f"CREATE STREAM quotes {rest}")
    assert code == refused.value.code
