"""The test kit: each row's result, and why there is none."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gateway.testing import ACCEPTED_AT, InputError, Record, Stream, evaluate
from spark_jobs.engine.match import residual
from tests.quotes import catalog
from tests.unit.compiler.test_compiler_properties import filled, predicate

QUOTES = Stream("quotes (symbol STRING, price DOUBLE, n INT, flag BOOLEAN, amount DECIMAL(7,2), d DATE, at TIMESTAMP)")
SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "Trade",
        "fields": [{"name": "symbol", "type": ["null", "string"]}, {"name": "price", "type": "double"}],
    }
)


@pytest.mark.parametrize(
    ("where", "row", "why"),
    [
        ("symbol = 'INTC' AND price < 100", {"symbol": "INTC"}, "price < 100 is NULL"),
        ("symbol='INTC' AND 1e2 > price", {"symbol": "AMD", "price": 1}, "symbol = 'INTC' is FALSE"),
        ("symbol = 'it''s' AND price < -0.50", {}, "symbol = 'it''s' is NULL, price < -0.50 is NULL"),
        ("flag", {"flag": False}, "flag = TRUE is FALSE"),
        ("price = NULL", {"price": 1}, "price = NULL is NULL"),
        ("n IN (3, 4, NULL)", {"n": 5}, "n IN (3, 4, NULL) is NULL"),
        ("n IN (5, 5.0)", {"n": 4}, "n = 5 is FALSE"),
        ("n NOT IN (3, 4)", {"n": 3}, "(NOT (n IN (3, 4))) is FALSE"),
        ("symbol = 'a' OR price > 5", {"price": 1, "symbol": "b"}, "(symbol = 'a' OR price > 5) is FALSE"),
        ("at > '2026-11-21' AND d = DATE '2026-11-21'", {"at": "2026-11-20T00:00:00Z", "d": "2026-11-21"},
         "at > '2026-11-21' is FALSE"),
        ("symbol LIKE 'a%' AND symbol RLIKE '^b'", {"symbol": "abc"}, "symbol RLIKE '^b' is FALSE"),
        ("length(symbol) > 2 AND amount BETWEEN 1 AND 2", {"symbol": "abc", "amount": "2.50"}, "amount <= 2 is FALSE"),
        ("1 > 2", {}, "2 < 1 is FALSE"),
        ("5 IN (1, 5.5) AND 5 IN (5.5, 5)", {}, "5 IN (1, 5.5) is FALSE"),
        ("FALSE", {}, "FALSE is FALSE"),
        ("_key = 'k' AND _offset > 5", {}, "_key = 'k' is NULL, _offset > 5 is FALSE"),
    ],
)  # fmt: skip
def test_why_names_the_conjuncts_that_do_not_hold(where: str, row: dict, why: str) -> None:
    """All conjuncts of WHERE that are FALSE or NULL are named, with the constants as spelled."""
    [found] = evaluate(f"SELECT symbol FROM quotes WHERE {where}", QUOTES, [row])
    assert (False, None, why, None) == (found.matches, found.result, found.why, found.dead_letter)
    assert [value for value in found.conjuncts.values() if value is not True]


def test_results_are_what_a_reader_gets() -> None:
    """A result is the JSON value of the SELECT list, with the id of its event; every conjunct is TRUE."""
    at = datetime(2026, 11, 21, 10, tzinfo=UTC)
    row = {"symbol": "INTC", "price": 2, "amount": Decimal("1.5"), "d": date(2026, 11, 21), "at": at, "other": 1}
    select = (
        "SELECT *, price * 2 AS twice, price / 0 AS none, _key, _partition, _offset, _time FROM quotes WHERE price > 1"
    )
    [found] = evaluate(select, QUOTES, [Record(row, key="k", time=at, partition=3, offset=7)])
    assert found.result == {
        "symbol": "INTC", "price": 2.0, "n": None, "flag": None, "amount": "1.50", "d": "2026-11-21",
        "at": "2026-11-21T10:00:00Z", "twice": 4.0, "none": None, "_key": "k", "_partition": 3, "_offset": 7,
        "_time": "2026-11-21T10:00:00Z",
    }  # fmt: skip
    assert (True, None, {"price > 1": True}, "quotes/3/7") == (found.matches, found.why, found.conjuncts, found.id)


def _predicate_and_rows(choose: random.Random) -> tuple[str, list[dict[str, object]]]:
    """Return a random predicate with constants, and rows that it may match."""
    values: dict[str, tuple[object, ...]] = {
        "symbol": ("INTC", "", None), "name": ("INTC", None), "price": (5.0, -0.5, None), "volume": (5, -5, None),
        "i": (1, 3, None), "amount": ("5.50", None), "flag": (True, False, None), "d": ("2026-11-21", None),
        "at": ("2026-11-21T10:00:00Z", None),
    }  # fmt: skip
    rows = [{name: choose.choice(known) for name, known in values.items()} for _ in range(8)]
    return filled(predicate(choose, 2), choose), rows


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False).map(_predicate_and_rows))
@example(("5e0 IN (i, -1, 1e40)", [{"i": 5}, {"i": 3}, {}]))
@example(("5e0 IN (i, 1e40)", [{"i": 5}, {"i": 3}, {}]))
@example(("5e0 NOT IN (amount, 3, 1e-30)", [{"amount": "5.00"}, {"amount": "5.50"}, {}]))
@example(("5.5 NOT IN (i)", [{"i": 5}, {}]))
def test_what_does_not_match_has_a_reason(drawn: tuple[str, list[dict[str, object]]]) -> None:
    """For any predicate, rows without a match have conjuncts that are not TRUE, and the others have none."""
    where, rows = drawn
    stream = Stream("quotes (" + ", ".join(f'"{c.name}" {c.type}' for c in catalog().stream("quotes").columns) + ")")
    try:
        found = evaluate(f"SELECT symbol FROM quotes WHERE {where}", stream, rows)
    except InputError:
        return
    for row in found:
        assert row.dead_letter is None
        assert row.matches is all(value is True for value in row.conjuncts.values()) is (row.why is None)


@pytest.mark.parametrize(
    ("condition", "values"),
    [
        ("5e0 IN (i, -1, 1e40)", [True, False, None]),
        ("5e0 NOT IN (i, -1, 1e40)", [False, True, None]),
        ("5e0 IN (i, 1e40)", [True, False, None]),
        ("5e0 IN (i, NULL, 1e40)", [True, None, None]),
        ("5e0 IN (i, c, 7, 1e40)", [True, False, None]),
        ("1e1 IN (i, 10, 1e40)", [True, True, True]),
        ("5e0 IN (i, 1, 1e-30)", [True, False, None]),
        ("22e0 IN (e, c, 1, 22)", [True, True, True]),
        ("22e0 NOT IN (e, c, 3e0, 22)", [False, False, False]),
        ("5e0 IN (e, c, 7)", [True, False, None]),
        ("5.5 IN (i)", [False, False, None]),
        ("5.0 IN (i)", [True, False, None]),
        ("array_contains(array(i), 0.5)", [False, False, None]),
    ],
)
def test_a_constant_before_in(condition: str, values: list[bool | None]) -> None:
    """Numbers that no DECIMAL holds together compare as DOUBLEs, as in Spark, in WHERE and in a SELECT list alike."""
    stream = Stream("q (i BIGINT, c DECIMAL(38,10), e DECIMAL(38,0))")
    rows: list[dict[str, object]] = [{"i": 5, "c": 5, "e": 5}, {"i": 3, "c": 3, "e": 3}, {}]
    assert [value is True for value in values] == [
        row.matches for row in evaluate(f"SELECT i FROM q WHERE {condition}", stream, rows)
    ]
    assert [{"v": value} for value in values] == [
        row.result for row in evaluate(f"SELECT {condition} AS v FROM q", stream, rows)
    ]


def test_bad_records_are_dead_letters() -> None:
    """A record that the evaluator cannot decode says why; the others are evaluated, each in its place."""
    rows = [{"price": "x"}, None, b"{", {"price": 1}, {"price": float("nan")}, {"n": 2**31}, {"symbol": "\ud800"}]
    found = evaluate("SELECT symbol FROM quotes", QUOTES, rows)
    assert [False, False, False, True, False, False, False] == [row.matches for row in found]
    assert {"undecodable", None} == {row.dead_letter for row in found}
    assert 'undecodable: Column "price" of type DOUBLE cannot hold the value: a string is no number.' == found[0].why
    assert "undecodable: The record has no value." == found[1].why
    assert all(row.why and row.why.startswith("undecodable: ") for row in found if not row.matches)


def test_a_result_may_be_too_large() -> None:
    """A match that no record holds is a dead letter."""
    [found] = evaluate("SELECT symbol, symbol AS again FROM quotes", QUOTES, [{"symbol": "x" * 600_000}])
    assert (True, None, "result-too-large") == (found.matches, found.result, found.dead_letter)


def test_start_and_expire_decide_by_record_time() -> None:
    """A query sees record times in [START, EXPIRE), and says so of others; EXPIRE AFTER counts from acceptance."""
    text = "CREATE CQ intel AS SELECT n FROM quotes WHERE n > 1 START '2026-01-01T00:00:10Z' EXPIRE AFTER '20 seconds'"
    rows = [Record({"n": 2}, time=ACCEPTED_AT + timedelta(seconds=second)) for second in (0, 10, 15, 20)]
    found = evaluate(text, QUOTES, [*rows, Record({"n": 1}, time=ACCEPTED_AT)])
    assert [False, True, True, False, False] == [row.matches for row in found]
    before = "its time 2026-01-01T00:00:00.000Z is before START 2026-01-01T00:00:10.000Z"
    assert [before, f"{before}, n > 1 is FALSE"] == [found[0].why, found[4].why]
    assert "its time 2026-01-01T00:00:20.000Z is not before EXPIRE 2026-01-01T00:00:20.000Z" == found[3].why


def test_rows_follow_one_another() -> None:
    """Records without a given place come a millisecond apart, each at the next offset of its partition."""
    rows = [{}, {}, Record({}, partition=1), Record({}, offset=9), Record({}, time=ACCEPTED_AT), {}]
    found = evaluate("SELECT _time, _partition, _offset FROM quotes", QUOTES, rows)
    results = [row.result for row in found if row.result is not None]
    assert [(0, 0), (0, 1), (1, 0), (0, 9), (0, 10), (0, 11)] == [(r["_partition"], r["_offset"]) for r in results]
    assert ["00Z", "00.001000Z", "00.002000Z", "00.003000Z", "00Z", "00.001000Z"] == [r["_time"][17:] for r in results]
    with pytest.raises(ValueError, match="does not follow"):
        evaluate("SELECT n FROM quotes", QUOTES, [Record({}, offset=5), Record({}, offset=5)])
    with pytest.raises(ValueError, match="zone"):
        evaluate("SELECT n FROM quotes", QUOTES, [Record({}, time=datetime(2026, 1, 1))])  # noqa: DTZ001


@pytest.mark.parametrize("framing", ["single-object", "confluent", "raw"])
def test_avro(framing: str) -> None:
    """Rows of an Avro stream are written by its schema; bytes are taken as they are."""
    trades = Stream("trades (symbol STRING, price DOUBLE)", format="avro", schema=SCHEMA, framing=framing)  # type: ignore[arg-type]
    found = evaluate("SELECT * FROM trades WHERE price > 1", trades, [{"symbol": "A", "price": 2}, b"\x00"])
    assert ({"symbol": "A", "price": 2.0}, "undecodable") == (found[0].result, found[1].dead_letter)
    with pytest.raises(ValueError, match="no Avro record"):
        evaluate("SELECT * FROM trades", trades, [{"symbol": 1, "price": 2}])


def test_more_rows_than_a_task_takes_at_once() -> None:
    """However many rows there are, each has its own answer."""
    found = evaluate("SELECT n FROM quotes WHERE n >= 1500", QUOTES, [{"n": n} for n in range(2500)])
    assert [n >= 1500 for n in range(2500)] == [row.matches for row in found]
    assert [] == evaluate("SELECT n FROM quotes", QUOTES, [])


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT prise FROM quotes", "unknown-column"),
        ("SELECT price FROM trades", "unknown-stream"),
        ("SELECT price FROM quotes WHERE price = 'x'", "type-mismatch"),
        ("SELECT price FROM quotes ORDER BY price", "unsupported-query"),
        ("(SELECT price FROM quotes)", "unsupported-query"),
        ("DROP CQ intel", "unknown-statement"),
        ("CREATE CQ a AS SELECT price FROM quotes DO PUBLISH DIGEST COUNT", "bad-interval"),
        ("SELECT n FROM quotes EVERY '1 hour' DO PUBLISH DIGEST LATEST BY symbol", "unknown-column"),
        ("SELECT n FROM quotes EXPIRE '2025-01-01T00:00:00Z'", "already-expired"),
        ("SELECT n FROM quotes START '2026-02-01T00:00:00Z' EXPIRE AFTER '1 day'", "bad-time"),
        ("SELECT sha2(symbol, 256) AS h FROM quotes DO PUBLISH VIRTUAL", "unsupported-query"),
    ],
)
def test_bad_queries_raise_the_gateways_errors(text: str, code: str) -> None:
    """A query refused by the gateway raises the gateway's error, with the same code."""
    with pytest.raises(InputError) as caught:
        evaluate(text, QUOTES, [])
    assert code == caught.value.code


def test_a_stream_is_declared_as_in_sql() -> None:
    """A stream takes a whole CREATE STREAM, or its specific part, and has the gateway's refusals."""
    whole = Stream("CREATE STREAM eu.quotes (symbol STRING) WITH (topic = 't', format = 'json', partitions = 2)")
    assert ("eu.quotes", "Stream('eu.quotes (symbol STRING)')") == (whole.name, repr(whole))
    codes = []
    for declaration, options in (("q (a STRNG)", {}), ("q (price STRING)", {"format": "avro", "schema": SCHEMA})):
        with pytest.raises(InputError) as caught:
            Stream(declaration, **options)  # type: ignore[arg-type]
        codes.append(caught.value.code)
    assert ["syntax-error", "stream-mismatch"] == codes


def test_an_installation_of_the_sdk_alone_is_told() -> None:
    """Without the server's packages a line names the package to install."""
    program = "import sys; sys.modules['polars'] = None; import gateway.testing"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    last = 'gateway.testing needs "polars", which is not installed. Install it: pip install "cq-gateway[server]".'
    assert f"ModuleNotFoundError: {last}" == found.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize(
    ("expression", "values"),
    [
        ("array(1, 2)", [[1, 2], [1, 2]]),
        ("array(id, 2)", [[1, 2], [2, 2]]),
        ("element_at(array('a', 'b'), 2)", ["b", "b"]),
        ("exists(array(1, 2), x -> x > id)", [True, False]),
        ("transform(array('a', 'b'), x -> concat(x, s))", [["aa", "ba"], ["ab", "bb"]]),
        ("array_contains(a, 2)", [True, False]),
        ("array_contains(a, 3)", [None, False]),
        ("map_contains_key(m, 'k')", [True, False]),
        ("arrays_overlap(a, array(2, 9))", [True, False]),
    ],
)
def test_constants_among_the_arguments_of_nested_functions(expression: str, values: list[object]) -> None:
    """A constant counts as any operand does, in a SELECT list too, where it is not lifted."""
    stream = Stream("q (id INT, s STRING, a ARRAY<INT>, m MAP<STRING, INT>)")
    rows = [{"id": 1, "s": "a", "a": [1, 2, None], "m": {"k": 1}}, {"id": 2, "s": "b", "a": [], "m": {}}]
    found = evaluate(f"SELECT {expression} AS v FROM q", stream, rows)
    assert [{"v": value} for value in values] == [row.result for row in found]


def test_elements_are_gone_through_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many elements are in memory at once, a lambda within a lambda gives the same."""
    stream = Stream("q (id INT, a ARRAY<INT>)")
    rows = [{"id": number, "a": [*range(number % 5)]} for number in range(12)]
    text = "SELECT transform(a, x -> size(filter(a, y -> y + x > id))) AS v FROM q WHERE forall(a, x -> x < 9)"
    whole = [row.result for row in evaluate(text, stream, rows)]
    monkeypatch.setattr(residual, "ELEMENTS", 3)
    assert whole == [row.result for row in evaluate(text, stream, rows)]


def test_a_list_is_a_json_array() -> None:
    """Rows of a stream with columns FROM an array at the top are lists; an Avro record is no list."""
    pairs = Stream("pairs (name STRING FROM '$[0]', price DOUBLE FROM '$[1][0]')")
    [row] = evaluate("SELECT name, price FROM pairs WHERE price > 1", pairs, [["XBT", [1.5]]])
    assert row.result == {"name": "XBT", "price": 1.5}
    with pytest.raises(ValueError, match="a list is not a record"):
        evaluate("SELECT symbol FROM q", Stream("q (symbol STRING)", format="avro", schema=SCHEMA), [["XBT"]])
