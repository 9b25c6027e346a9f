"""The event time that CREATE STREAM declares: kept in the catalog, described, and written as a statement again."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cli.scripts.definitions import create_statement
from gateway.sources.declarations import is_declared
from gateway.sources.stream_statement import stream_statement
from gateway.sources.streams import describe_stream
from grouping.model.catalog import Stream
from grouping.model.column import EventTime
from grouping.model.ids import StreamId
from grouping.model.query import CreateStream
from grouping.model.sql_type import STRING, TIMESTAMP
from grouping.statements.command import parse
from grouping.statements.stream_declaration import declared_fields

_NAMES = st.sampled_from(["at", "from", "my time", 'a"b', "_time"])
_MS = st.integers(0, 10**12)


def _created(text: str) -> CreateStream:
    statement = parse(text)
    assert isinstance(statement, CreateStream)
    return statement


def _stream(statement: CreateStream) -> Stream:
    fields: dict[str, Any] = declared_fields(statement)
    return Stream(StreamId("s_1"), statement.name, start_offsets={"0": 0}, created_at="", **fields)


@given(
    _NAMES, _NAMES, st.one_of(st.none(), _MS), st.one_of(st.none(), _MS.filter(lambda ms: ms >= 1000)), st.booleans()
)
def test_a_declaration_survives_its_description(
    column: str, other: str, delay_ms: int | None, idle_ms: int | None, keyed: bool
) -> None:
    """DESCRIBE STREAM and `cq export` write a statement that declares the same event time."""
    declared = EventTime(None if delay_ms is None else column, delay_ms, idle_ms)
    names = {column, other} - {"_time"} | {"id"}
    plain = _created("CREATE STREAM s (id STRING) WITH (topic = 't', format = 'json')")
    columns = tuple((name, TIMESTAMP if name != "id" else STRING) for name in sorted(names))
    key = ("id",) if keyed else ()
    if declared.column == "_time":
        declared = EventTime(None, delay_ms, idle_ms)
    made = {"columns": columns, "partition_key": key, "event_time": None if declared == EventTime() else declared}
    statement = CreateStream(**{name: getattr(plain, name) for name in CreateStream.__match_args__} | made)
    stream = _stream(statement)
    again = msgspec.json.decode(msgspec.json.encode(stream), type=Stream)
    assert (again, again.event_time) == (stream, declared)
    for text in (stream_statement(stream), create_statement(describe_stream(stream))):
        assert is_declared(stream, _created(text))


@pytest.mark.parametrize(
    ("clause", "idle", "same"),
    [
        ("WATERMARK FOR AT AS at - INTERVAL 5 SECONDS", "PT60S", True),
        ("WATERMARK FOR at AS at - INTERVAL '6 seconds'", "1 minute", False),
        ("WATERMARK FOR _time AS _time - INTERVAL '5 seconds'", "1 minute", False),
        ("WATERMARK FOR at AS at - INTERVAL '5 seconds'", "2 minutes", False),
    ],
)
def test_if_not_exists_compares_the_event_time(clause: str, idle: str, same: bool) -> None:
    """An equal declaration may be spelt otherwise; another column, delay or idle time makes another stream."""
    form = "CREATE STREAM s (at TIMESTAMP, {}) WITH (topic = 't', format = 'json', idle = '{}')"
    stream = _stream(_created(form.format("WATERMARK FOR at AS at - INTERVAL '5' SECOND", "1 minute")))
    assert is_declared(stream, _created(form.format(clause, idle))) is same
    assert not is_declared(stream, _created("CREATE STREAM s (at TIMESTAMP) WITH (topic = 't', format = 'json')"))


def test_a_record_without_event_time_is_as_before() -> None:
    """Streams of earlier versions go by their records' times, and a stream that declares nothing has an old record."""
    stream = _stream(_created("CREATE STREAM s (at TIMESTAMP) WITH (topic = 't', format = 'json')"))
    stored = msgspec.json.encode(stream)
    assert b"declared_time" not in stored
    known = msgspec.json.decode(stored, type=Stream)
    assert (known.event_time, known.event_time.delay_or(2.0), known.event_time.idle_or(60.0)) == (
        EventTime(),
        2_000,
        60_000,
    )
    assert not {"event_time", "idle"} & describe_stream(known).keys()
