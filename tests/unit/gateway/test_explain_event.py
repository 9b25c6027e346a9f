"""EXPLAIN CQ … FOR: whether an event matches a CQ, why not, and whether it would be delivered now."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gateway.commands.explain_event import explain_event
from gateway.evaluation.event import answered
from gateway.model.records import Cq, Destination, EdgeSpec
from gateway.testing import ACCEPTED_AT, InputError, Stream, Table
from gateway.testing.query import checked
from grouping.model.group import canonical_constants
from grouping.model.ids import DestinationId
from grouping.model.query import ExplainCq
from grouping.statements.command import parse
from grouping.statements.cq_text import CqText

_QUOTES = Stream("quotes (symbol STRING, price DOUBLE, sizes ARRAY<INT>)")
_PROFILES = Table("profiles (symbol STRING PRIMARY KEY, industry STRING)")
_INTEL = "SELECT symbol FROM quotes WHERE symbol = 'INTC' AND price < 100"
_CHIPS = (
    "SELECT q.symbol FROM quotes q JOIN profiles p ON q.symbol = p.symbol WHERE p.industry = 'Chips' AND price < 50"
)
_NOW_MS = 1_767_225_600_000
"""The beginning of 2026: when the CQs were accepted."""
_HIT = '{"symbol": "INTC", "price": 99}'


def _lines(
    query: str, given: str, *, not_evaluated: str | None = None, stream: Stream = _QUOTES, **fields: Any
) -> dict[str, Any]:
    """Return the gateway's answer to EXPLAIN CQ intel FOR …, of a live CQ with some fields of its own."""
    statement = parse(f"EXPLAIN CQ intel FOR {given}")
    assert isinstance(statement, ExplainCq)
    asked = checked(query, stream, ACCEPTED_AT, [_PROFILES])
    plan, row = asked.query.plan, asked.query.row
    destination = Destination(
        DestinationId("d_1"),
        plan.stream_id,
        plan.group_id,
        asked.query.select.select_id,
        canonical_constants(row),
        "shared",
        0,
        asked.trigger,
        edges=EdgeSpec(asked.query.edge, "") if asked.query.edge else None,
    )
    cq = Cq("intel", CqText.cut(query), destination.destination_id, asked.accepted_ms, 0, asked.start_ms)
    cq = msgspec.structs.replace(cq, expire_ms=asked.expire_ms, **fields)
    tables = {_PROFILES.declared.table_id: _PROFILES.declared}
    return explain_event(
        statement, cq, destination, asked.query, stream.declared, tables, not_evaluated, _NOW_MS, answered
    )


def _event(query: str, given: str, **fields: Any) -> dict[str, Any]:
    event: dict[str, Any] = _lines(query, given, **fields)["event"]
    return event


def test_a_match_is_delivered_at_once() -> None:
    """The answer has the result that a reader gets, and each conjunct with its columns."""
    lines = _lines(_INTEL, f"'{_HIT}'")
    assert lines["event"] == {
        "cq": "intel",
        "matches": True,
        "why": None,
        "conjuncts": [
            {"conjunct": "symbol = 'INTC'", "value": True, "columns": {"symbol": "INTC"}},
            {"conjunct": "price < 100.0", "value": True, "columns": {"price": 99.0}},
        ],
        "results": [{"symbol": "INTC"}],
        "dead_letter": None,
        "delivered": True,
        "delivery": "at once",
        "tick": None,
    }
    assert lines["text"].splitlines() == [
        'the event matches CQ "intel"',
        "  TRUE   symbol = 'INTC'   (symbol = \"INTC\")",
        "  TRUE   price < 100.0   (price = 99.0)",
        '  result {"symbol":"INTC"}',
        "delivered: at once",
    ]


def test_a_miss_names_the_conjuncts_that_fail() -> None:
    """FALSE and NULL are told apart, and the values that decided are there."""
    event = _event(_INTEL, """'{"symbol": "INTC", "price": 101.5}'""")
    assert (event["matches"], event["why"], event["delivered"]) == (False, "price < 100.0 is FALSE", False)
    assert event["conjuncts"][1]["columns"] == {"price": 101.5}
    missing = _event(_INTEL, """'{"symbol": "it''s"}'""")
    assert missing["why"] == "symbol = 'INTC' is FALSE, price < 100.0 is NULL"
    assert missing["conjuncts"][0]["columns"] == {"symbol": "it's"}


@pytest.mark.parametrize("value", ["{", "[]", '{"price": "99"}', '{"price": NaN}', '{"sizes": [1.5]}', ""])
def test_what_cannot_be_decoded_is_a_dead_letter(value: str) -> None:
    """Bad JSON and values of the wrong type are told as the dead letter that a record would become."""
    event = _event(_INTEL, f"'{value}'")
    assert (event["matches"], event["delivered"], event["dead_letter"]) == (False, False, "undecodable")
    assert event["why"].startswith("undecodable: ")


_BEFORE_START = "its time 2026-01-01T00:00:00.000Z is before START 2026-02-01T00:00:00.000Z"


@pytest.mark.parametrize(
    ("clauses", "at", "fields", "delivery"),
    [
        ("", None, {"paused": True}, "the CQ is paused, and sees nothing until RESUME CQ"),
        ("", None, {"not_evaluated": "an operator has paused the CQ's group"}, "an operator has paused the CQ's group"),
        ("START '2026-02-01T00:00:00Z'", None, {}, _BEFORE_START),
        ("EXPIRE '2026-02-01T00:00:00Z'", "2026-02-01T00:00:00Z", {}, "the CQ expires at 2026-02-01T00:00:00.000Z"),
    ],
)
def test_a_match_that_is_not_delivered(clauses: str, at: str | None, fields: dict[str, Any], delivery: str) -> None:
    """A CQ that sees nothing now, or not at the event's time, says so."""
    given = "" if at is None else f"WITH (_time = '{at}')"
    event = _event(f"{_INTEL} {clauses}", f"'{_HIT}' {given}", **fields)
    assert (event["delivered"], event["delivery"]) == (False, delivery)


def test_a_timer_names_the_tick() -> None:
    """A match waits for the first tick after now and after its own time, or for EXPIRE if that is before."""
    every = f"{_INTEL} EVERY '10 minutes'"
    assert _event(every, f"'{_HIT}'")["tick"] == "2026-01-01T00:10:00.000Z"
    assert _event(every, f"'{_HIT}' WITH (_time = '2026-01-01T00:10:00Z')")["tick"] == "2026-01-01T00:20:00.000Z"
    ends = _event(f"{every} EXPIRE '2026-01-01T00:05:00Z'", f"'{_HIT}'")
    assert ends["delivery"] == "in the digest of 2026-01-01T00:05:00.000Z"


def test_aggregates_count_the_event() -> None:
    """For an aggregate query the answer says whether the event counts; a single event has no result."""
    counted = "SELECT symbol, count(*) AS n FROM quotes WHERE price < 100 GROUP BY symbol EVERY '10 minutes'"
    hit, miss = _event(counted, f"'{_HIT}'"), _event(counted, """'{"price": 100}'""")
    assert (hit["matches"], hit["results"], hit["tick"]) == (True, [], "2026-01-01T00:10:00.000Z")
    assert (miss["matches"], miss["why"]) == (False, "price < 100.0 is FALSE")


def test_a_join_with_given_rows() -> None:
    """WITH gives rows of the tables; an event that meets none of them is told so."""
    rows = """WITH (profiles = '[{"symbol": "INTC", "industry": "Chips"}]')"""
    event = _event(_CHIPS, f"""'{{"symbol": "INTC", "price": 30}}' {rows}""")
    assert (event["matches"], event["results"]) == (True, [{"symbol": "INTC"}])
    columns = [each["columns"] for each in event["conjuncts"]]
    assert {"price": 30.0} in columns and {"profiles.industry": "Chips"} in columns
    alone = _event(_CHIPS, f"""'{{"symbol": "SAP", "price": 30}}' {rows}""")
    assert (alone["matches"], alone["why"]) == (False, "it meets no row of the tables that it is joined with")


def test_a_join_without_rows() -> None:
    """Conjuncts over the stream's columns are decided; otherwise the answer is that the table decides."""
    dear = _event(_CHIPS, """'{"symbol": "INTC", "price": 60}'""")
    assert (dear["matches"], dear["why"], dear["delivered"]) == (False, "price < 50.0 is FALSE", False)
    open_yet = _event(_CHIPS, """'{"symbol": "INTC", "price": 30}'""")
    assert (open_yet["matches"], open_yet["delivered"]) == (None, None)
    assert "profiles" in open_yet["why"]
    assert _event(_CHIPS, "'{'")["dead_letter"] == "undecodable"


def test_the_record_s_own_fields() -> None:
    """WITH gives the record's key and time, of which WHERE may ask."""
    keyed = "SELECT _key AS k, _time AS t FROM quotes WHERE _key = 'a'"
    assert _event(keyed, f"'{_HIT}'")["why"] == "_key = 'a' is NULL"
    event = _event(keyed, f"'{_HIT}' WITH (_KEY = 'a', _time = '2026-03-01T00:00:00Z')")
    assert event["results"] == [{"k": "a", "t": "2026-03-01T00:00:00Z"}]


def test_an_avro_stream_is_explained_with_json() -> None:
    """The event is written as JSON, whatever the format of the stream's records."""
    schema = '{"type": "record", "name": "q", "fields": [{"name": "price", "type": "double"}]}'
    stream = Stream("quotes (price DOUBLE)", format="avro", schema=schema)
    assert _event("SELECT price FROM quotes WHERE price < 5", """'{"price": 4}'""", stream=stream)["matches"] is True


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ("""'{}' WITH (other = '[]')""", "unknown-stream"),
        ("""'{}' WITH (profiles = '{}')""", "stream-mismatch"),
        ("""'{}' WITH (profiles = '[{"industry": "Chips"}]')""", "stream-mismatch"),
        ("""'{}' WITH (_time = 'soon')""", "bad-time"),
        (f"""'{{"symbol": "{"x" * 65_536}"}}'""", "command-too-large"),
    ],
)
def test_refusals(given: str, code: str) -> None:
    """Rows of tables not joined, malformed rows and times, and oversized input are refused."""
    with pytest.raises(InputError) as refused:
        _lines(_CHIPS, given)
    assert refused.value.code == code


def test_headers_are_given_as_a_json_object() -> None:
    """The field and columns FROM HEADER have them."""
    stream = Stream("quotes (symbol STRING, kind STRING FROM HEADER 'kind')")
    given = """'{"symbol": "A"}' WITH (_HEADERS = '{"kind": "é", "kind": "x"}')"""
    event = _event("SELECT kind, _value FROM quotes WHERE _headers['kind'] = 'x'", given, stream=stream)
    assert event["results"] == [{"kind": "x", "_value": {"symbol": "A"}}]
    assert event["conjuncts"][0]["columns"] == {"_headers": {"kind": "eA=="}}
    with pytest.raises(InputError) as refused:
        _event(_INTEL, f"""'{_HIT}' WITH (_headers = '{{"kind": 1}}')""")
    assert refused.value.code == "stream-mismatch"


_TRADES = Stream(
    "CREATE STREAM trades (s STRING, n INT, venue STRING FROM '^.venue') "
    "WITH (topic = 't', format = 'json', explode = '$.list')"
)


def test_a_record_with_several_events() -> None:
    """The record matches where an element does; bad elements are told, and the others are delivered."""
    query = "SELECT n FROM trades WHERE s = 'a' AND venue = 'x'"
    event = _event(query, """'{"venue": "x", "list": [{"s": "b", "n": 1}, {"s": "a", "n": 2}, 5]}'""", stream=_TRADES)
    assert (event["matches"], event["results"], event["delivered"]) == (True, [{"n": 2}], True)
    assert event["dead_letter"] == "undecodable"
    assert event["conjuncts"][0]["columns"] == {"s": "a"}
    missed = _event(query, """'{"venue": "y", "list": [{"s": "a"}]}'""", stream=_TRADES)
    assert (missed["matches"], missed["why"]) == (False, "venue = 'x' is FALSE")
    empty = _event(query, """'{"list": []}'""", stream=_TRADES)
    assert (empty["matches"], empty["why"], empty["conjuncts"]) == (False, "the record has no elements", [])
    joined = "SELECT t.n FROM trades t JOIN profiles p ON t.s = p.symbol WHERE p.industry = 'Chips' AND n > 1"
    assert _event(joined, """'{"list": [{"n": 1}, {"n": 2}]}'""", stream=_TRADES)["matches"] is None
    assert _event(joined, """'{"list": []}'""", stream=_TRADES)["why"] == "the record has no elements"


def test_frames_of_an_event_alone() -> None:
    """The frames of a given event hold the event alone, since no events before it are given."""
    stream = Stream("quotes (symbol STRING, price DOUBLE, PARTITION KEY (symbol))")
    window = "OVER (PARTITION BY symbol ORDER BY _offset"
    counted = f"SELECT symbol FROM quotes WHERE price < 100 QUALIFY count(*) {window} ROWS 2 PRECEDING) >= 1"
    assert _event(counted, f"'{_HIT}'", stream=stream)["matches"]
    missed = _event(counted, '\'{"symbol": "INTC", "price": 101}\'', stream=stream)
    assert not missed["matches"]
    assert missed["why"] == "a condition of WHERE that decides which events the frames hold is not TRUE"
    before = _event(f"SELECT symbol FROM quotes QUALIFY price > lag(price) {window})", f"'{_HIT}'", stream=stream)
    assert not before["matches"]
    [conjunct] = before["conjuncts"]
    assert {"lag(price, 1)": None, "price": 99} == conjunct["columns"]


def test_what_a_view_leaves_out_is_no_event_of_its_key() -> None:
    """The event before does not matter then, and nothing is delivered; an expression over `_edge` is left out."""
    stream = Stream("quotes (symbol STRING, price DOUBLE, PARTITION KEY (symbol))")
    query = (
        "SELECT upper(_edge) AS way, symbol FROM (SELECT * FROM quotes WHERE price > 50) AS q WHERE price < 100 "
        "EMIT ON EXIT BY symbol"
    )
    left_out = _event(query, """'{"symbol": "INTC", "price": 9}'""", stream=stream)
    assert (False, False) == (left_out["matches"], left_out["delivered"])
    assert left_out["delivery"] == "FROM leaves the event out, so it is not an event of its key"
    ended = _event(query, """'{"symbol": "INTC", "price": 100}'""", stream=stream)
    assert (False, None) == (ended["matches"], ended["delivered"])
    assert _event(query, f"'{_HIT}'", stream=stream)["results"] == [{"symbol": "INTC"}]
