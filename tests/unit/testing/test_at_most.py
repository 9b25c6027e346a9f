"""AT MOST in the test kit: which rows have results, and why others have none."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gateway.testing import EvaluatedRow, InputError, Record, Stream, Table, evaluate

_QUOTES = Stream("quotes (symbol STRING, price DOUBLE, PARTITION KEY (symbol))")
_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
_LEFT_OUT = "AT MOST leaves the result out"


def _rows(*rows: tuple[str, float, int]) -> list[Record]:
    """Return records from symbols, prices and minutes."""
    return [
        Record({"symbol": symbol, "price": price}, time=_BEGIN + timedelta(minutes=minute))
        for symbol, price, minute in rows
    ]


def _answers(rows: list[EvaluatedRow]) -> list[Any]:
    """Return the number of suppressed results for each result, or why there is none."""
    return [row.why if row.result is None else row.suppressed for row in rows]


def test_each_value_of_by_has_its_own_interval() -> None:
    """An interval begins with its first result; the next result after it tells how many were left out."""
    rows = _rows(("A", 9, 0), ("A", 9, 1), ("B", 9, 2), ("A", 1, 3), ("A", 9, 9), ("A", 9, 10), ("B", 9, 13))
    query = "SELECT symbol FROM quotes WHERE price > 5 AT MOST 1 EVERY '10 minutes' BY symbol"
    found = evaluate(query, _QUOTES, rows)
    assert [0, _LEFT_OUT, 0, "price > 5 is FALSE", _LEFT_OUT, 2, 0] == _answers(found)
    assert [row.result is not None for row in found] == [row.matches for row in found]
    without = evaluate(query.replace("BY symbol", ""), _QUOTES, rows)
    assert [0, _LEFT_OUT, _LEFT_OUT, "price > 5 is FALSE", _LEFT_OUT, 3, _LEFT_OUT] == _answers(without)


def test_edges_are_limited_after_they_are_found() -> None:
    """A suppressed enter still is the enter: the key's next event is none."""
    rows = _rows(("A", 9, 0), ("A", 1, 1), ("A", 9, 2), ("A", 9, 20), ("A", 1, 21), ("A", 9, 22))
    emit = "EMIT ON ENTER BY symbol AT MOST 1 EVERY '10 minutes'"
    found = evaluate(f"SELECT symbol FROM quotes WHERE price > 5 {emit}", _QUOTES, rows)
    assert [True, False, False, False, False, True] == [row.matches for row in found]
    assert [None, 1] == [found[2].edge, found[5].suppressed]


def test_stays_go_by_the_time_at_which_they_are_reported() -> None:
    """`ce_time` of a stay is its enter's time plus FOR."""
    rows = _rows(("A", 9, 0), ("B", 9, 1), ("C", 9, 6), ("A", 9, 9), ("B", 9, 9), ("C", 9, 30), ("A", 1, 31))
    emit = "EMIT ON ENTER BY symbol FOR '5 minutes' AT MOST 1 EVERY '5 minutes'"
    found = evaluate(f"SELECT symbol FROM quotes WHERE price > 5 {emit}", _QUOTES, rows)
    assert [(0, 0), (2, 1)] == [(place, row.suppressed) for place, row in enumerate(found) if row.matches]
    assert _LEFT_OUT == found[1].why


def test_results_of_one_event_count_each() -> None:
    """A join gives an event several results; some of them are written."""
    table = Table(
        "watched (symbol STRING, who STRING, PRIMARY KEY (symbol, who))",
        [{"symbol": "A", "who": who} for who in ("ann", "bob", "cid")],
    )
    query = "SELECT who FROM quotes q JOIN watched w ON q.symbol = w.symbol AT MOST 2 EVERY '10 minutes'"
    first, second = evaluate(query, _QUOTES, _rows(("A", 9, 0), ("A", 9, 10)), tables=[table])
    assert [{"who": "ann"}, {"who": "bob"}] == first.results
    assert (2, 1) == (len(second.results), second.suppressed)


def test_what_create_would_refuse_is_refused() -> None:
    """The kit checks BY as the gateway does."""
    with pytest.raises(InputError) as caught:
        evaluate("SELECT symbol FROM quotes AT MOST 1 EVERY '10 minutes' BY price", _QUOTES, [])
    assert "unknown-column" == caught.value.code
