"""The fields `_headers` and `_value` of source records: their values, and where they are read from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.testing import InputError, Record, Stream, Table, digests, evaluate
from grouping.model.errors import OperationalError
from grouping.model.expression import Call, Column, Value
from grouping.plan.aggregate import Aggregate, AggregateValue
from grouping.plan.columns_read import reads_column
from grouping.plan.computation import Computation
from grouping.plan.group import GroupPlan, SelectItem, SelectList
from grouping.plan.lookup_join import JoinKey, LookupJoin
from grouping.values.variant import parse_variant
from spark_jobs.engine.rows.record_fields import HEADERS, header_maps
from spark_jobs.runtime.kafka.range_reader import SourceRange
from spark_jobs.runtime.worker.record_headers import RecordHeaders
from tests.unit.matching.event_batches import SETTINGS, batch, stream

ORDERS = Stream("orders (id STRING, total DOUBLE)")
PLAIN = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=3)
PARTS = st.recursive(
    PLAIN, lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=3), part, max_size=3)
)
NAMES = st.sampled_from(["a", "b", "ce_type", "é"])


def outcome(select: str, *rows: Record, of: Stream = ORDERS) -> list[Any]:
    """Return the results of a query, None for a row without one."""
    return [row.result for row in evaluate(select, of, rows)]


@given(st.lists(st.none() | st.lists(st.tuples(NAMES, st.none() | st.binary(max_size=3)), max_size=5), max_size=6))
def test_the_last_header_of_a_name_counts(records: list[list[tuple[str, bytes | None]] | None]) -> None:
    """Headers are a map, empty for a record without headers."""
    entries = [None if each is None else [{"key": name, "value": text} for name, text in each] for each in records]
    found = [
        {each["key"]: each["value"] for each in record}
        for record in header_maps(pa.array(entries, HEADERS)).to_pylist()
    ]
    assert found == [dict(each or ()) for each in records]


def test_headers_are_selected_and_compared() -> None:
    """A header is BINARY, base64 in results; one that is missing is NULL."""
    sent = Record({"id": "a"}, headers={"ce_type": "order", "raw": b"\xff"})
    assert outcome("SELECT _headers FROM orders", sent, Record({})) == [
        {"_headers": {"ce_type": "b3JkZXI=", "raw": "/w=="}},
        {"_headers": {}},
    ]
    for where in (
        "_headers['ce_type'] = 'order'",
        "decode(_headers['ce_type'], 'UTF-8') = 'order'",
        "orders._HEADERS['raw'] = X'FF' AND map_contains_key(_headers, 'ce_type')",
    ):
        assert outcome(f"SELECT id FROM orders WHERE {where}", sent, Record({"id": "b"})) == [{"id": "a"}, None]


def test_the_value_is_the_whole_record() -> None:
    """Fields without columns included; NULL where a VARIANT cannot hold the record, which is an event all the same."""
    sent = Record(b'{"id": "a", "z": {"n": [1, 2.50]}, "z": {"n": [7]}}')
    odd = Record(b'{"id": "b", "z": "\\ud800"}')
    assert outcome("SELECT id, _value FROM orders", sent, odd) == [
        {"id": "a", "_value": {"id": "a", "z": {"n": [7]}}},
        {"id": "b", "_value": None},
    ]
    where = "variant_get(_value, '$.z.n[0]', 'INT') = 7"
    assert outcome(f"SELECT id FROM orders WHERE {where}", sent, odd) == [{"id": "a"}, None]


@given(PARTS)
def test_the_value_is_as_parse_json_has_it(part: object) -> None:
    """The field is the VARIANT of the record's text."""
    text = json.dumps({"x": part})
    [found] = evaluate("SELECT to_json(_value) AS v FROM orders", ORDERS, [text.encode()])
    assert found.result == {"v": parse_variant(text)}


def test_star_leaves_the_fields_out_and_columns_hide_them() -> None:
    """As with the record's other fields."""
    own = Stream("orders (_headers STRING, _VALUE INT)")
    sent = Record({"_headers": "mine", "_VALUE": 5}, headers={"a": "b"})
    assert outcome("SELECT * FROM orders", Record({"id": "a"}, headers={"a": "b"})) == [{"id": "a", "total": None}]
    assert outcome("SELECT _headers, _value FROM orders WHERE _value = 5", sent, of=own) == [
        {"_headers": "mine", "_VALUE": 5}
    ]


def test_records_that_are_no_json_have_no_value() -> None:
    """A query over Avro that names the field is refused."""
    schema = json.dumps({"type": "record", "name": "t", "fields": [{"name": "id", "type": "string"}]})
    avro = Stream("orders (id STRING)", format="avro", schema=schema)
    with pytest.raises(InputError) as refused:
        evaluate("SELECT _value FROM orders", avro, [])
    assert (refused.value.code, refused.value.hint) == ("unknown-column", "Only records in JSON have _value.")
    assert outcome("SELECT _headers FROM orders", Record({"id": "a"}, headers={"a": "b"}), of=avro) == [
        {"_headers": {"a": "Yg=="}}
    ]


def test_digests_and_joins_have_the_fields() -> None:
    """Matches that wait for a tick keep them, and rows joined with a table have those of their event."""
    sent = Record({"id": "a"}, headers={"of": "x"})
    [digest] = digests("SELECT _headers, _value FROM orders EVERY '1 minute'", ORDERS, [sent])
    assert digest["rows"] == [{"_headers": {"of": "eA=="}, "_value": {"id": "a"}}]
    table = Table("kinds (kind STRING PRIMARY KEY, name STRING)", [{"kind": "x", "name": "Extra"}])
    select = "SELECT k.name, o._headers FROM orders o JOIN kinds k ON decode(o._headers['of'], 'UTF-8') = k.kind"
    [row] = evaluate(select, ORDERS, [sent], tables=[table])
    assert row.result == {"name": "Extra", "_headers": {"of": "eA=="}}


_HEADER = Call("element_at", (Column("_headers", "MAP<STRING, BINARY>"), Value("STRING", "a")), "BINARY")
_PLAIN = Column("id", "STRING")


@pytest.mark.parametrize(
    "part",
    [
        GroupPlan("g", "s", "", (Call("=", (_PLAIN, _HEADER), "BOOLEAN"),)),
        GroupPlan("g", "s", "", (), Computation("j", (LookupJoin("t", "k", (JoinKey(_HEADER, "kind", "BINARY"),)),))),
        GroupPlan("g", "s", "", (), Computation("j", (LookupJoin("t", "k", (), rest=(_HEADER,)),))),
        SelectList("s", (SelectItem("id", _PLAIN), SelectItem("h", _HEADER))),
        SelectList("s", (), Aggregate((), (AggregateValue("n", "max", (_HEADER,), "BINARY"),))),
        SelectList("s", (), Aggregate((), (AggregateValue("n", "count", (), "BIGINT", condition=_HEADER),))),
    ],
)
def test_any_part_of_a_query_may_read_headers(part: GroupPlan | SelectList) -> None:
    """WHERE, ON, the SELECT list and arguments of aggregates are looked at."""
    assert reads_column(part, "_headers")
    assert not reads_column(part, "_value")


class _Notes:
    """Redis, which may be away."""

    def __init__(self) -> None:
        self.noted: list[str] = []
        self.away = False

    def tell(self, stream_id: str) -> None:
        if self.away:
            raise OperationalError("redis is away")
        self.noted.append(stream_id)


class _Topic:
    """The topic of a stream."""

    def __init__(self, records: pa.RecordBatch) -> None:
        self.records = records
        self.asked: list[SourceRange] = []

    def open(self, _settings: object) -> _Topic:
        return self

    def read(self, ranges: Sequence[SourceRange]) -> Iterator[tuple[SourceRange, Iterator[pa.RecordBatch]]]:
        self.asked += ranges
        yield ranges[0], iter([self.records.slice(0, 1), self.records.slice(1)])


def test_headers_are_read_from_the_topic_until_spark_asks_for_them() -> None:
    """A batch without headers gets them for a query that reads them; the driver is told, as far as Redis answers."""
    source, notes = stream("id STRING"), _Notes()
    sent = ((("a", b"1"), ("a", None)), (), ())
    whole = batch([b"{}"] * 3, partitions=[2] * 3, headers=sent)
    topic = _Topic(whole)
    headers = RecordHeaders(source, SETTINGS, notes, topic.open)  # type: ignore[arg-type]
    bare = whole.drop_columns(["headers"]).take([0, 2])
    reads: Any = SimpleNamespace(reads_headers=True)
    assert headers.completed(whole, reads) is whole
    assert headers.completed(bare, SimpleNamespace(reads_headers=False)) is bare  # type: ignore[arg-type]
    assert (topic.asked, notes.noted) == ([], [])
    for away in (False, True):
        notes.away = away
        found = headers.completed(bare, reads)["headers"]
        assert found.to_pylist() == [[{"key": "a", "value": b"1"}, {"key": "a", "value": None}], []]
    assert (topic.asked, notes.noted) == ([SourceRange("source", 2, 100, 103)] * 2, ["s_1"])
    wrong = batch([b"{}"] * 2, headers=((("tr\ufffdnd", b"1"), ("a", b"2")), (("a", b"3"),)))
    assert headers.completed(wrong, reads)["headers"].to_pylist() == [None, [{"key": "a", "value": b"3"}]]
    hidden = RecordHeaders(stream("_headers STRING"), SETTINGS, notes, topic.open)  # type: ignore[arg-type]
    assert hidden.completed(bare, reads) is bare
    topic.records = whole.slice(0, 2)
    with pytest.raises(OperationalError, match="headers cannot be read"):
        headers.completed(bare, reads)
