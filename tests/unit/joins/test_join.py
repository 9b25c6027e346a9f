"""Joins of events with tables, beside DuckDB, which runs each query alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from grouping.model.catalog import Catalog
from grouping.model.column import StreamColumn
from grouping.model.table import Table
from spark_jobs.engine.operators.lookup_join.join import JoinedSlice, LookupJoinOperator, join
from spark_jobs.engine.rows.events import Events
from spark_jobs.engine.rows.headers import event_ids
from tests.join_oracle import QUERIES, Row, alone
from tests.unit.joins.join_queries import (
    EVENTS,
    OWNER_ROWS,
    OWNERS,
    PROFILE_ROWS,
    PROFILES,
    QUOTES,
    batch_of,
    compiled,
    found_in,
    rows_of,
    view_of,
    views_of,
)

AS_MANY_TEXTS_AS_ROWS = (
    [{"symbol": "a", "price": 0.5, "n": 0}],
    {symbol: {"industry": "a", "staff": 0} for symbol in "abcxy"},
    {("p", "a"): {"n": 1}},
)
"""A table with one distinct text, and a batch with one row and no text: they must not be confused."""


@pytest.mark.parametrize("select", QUERIES)
@settings(max_examples=25)
@given(EVENTS, PROFILE_ROWS, OWNER_ROWS)
@example(*AS_MANY_TEXTS_AS_ROWS)
def test_as_each_query_alone(select: str, events: list[Row], profiles: Row, owners: Row) -> None:
    """Inner and LEFT, by a whole key and by a part of one, several tables, NULLs everywhere: the same rows."""
    named = [{"symbol": symbol, **row} for symbol, row in profiles.items()]
    owned = [{"owner": owner, "symbol": symbol, **row} for (owner, symbol), row in owners.items()]
    views = views_of(select, named, owned)
    rows, found = rows_of(select, events, views)
    assert sorted(found, key=repr) == sorted(alone(select, events, named, owned), key=repr)
    assert [event for event, *_ in found] == sorted(event for event, *_ in found)
    places = found_in(rows, compiled(select))
    ids = event_ids("quotes", rows, places.astype(np.int32)).to_pylist()
    assert len(set(ids)) == len(ids), "a result has an id of its own"


def test_rows_of_one_event_are_numbered_in_the_order_of_their_keys() -> None:
    """`/<n>` counts from 0 for each event; where the whole key is named the event's own id stands alone."""
    events = [{"symbol": "a", "price": 1.0, "n": 1}, {"symbol": "b", "price": 1.0, "n": 2}]
    owners = [{"owner": owner, "symbol": symbol, "n": 1} for owner, symbol in ("ra", "pa", "qa", "pb")]
    views = {"t_1": view_of(PROFILES, []), "t_2": view_of(OWNERS, owners)}
    rows, found = rows_of("SELECT o.owner FROM quotes q JOIN owners o ON q.symbol = o.symbol", events, views)
    assert found == [(0, "p"), (0, "q"), (0, "r"), (1, "p")]
    ids = event_ids("quotes", rows, np.arange(rows.count, dtype=np.int32)).to_pylist()
    assert ids == ["quotes/3/100/0", "quotes/3/100/1", "quotes/3/100/2", "quotes/3/101/0"]
    rows, _ = rows_of("SELECT q.n FROM quotes q LEFT JOIN profiles p ON q.symbol = p.symbol", events, views)
    ids = event_ids("quotes", rows, np.arange(rows.count, dtype=np.int32)).to_pylist()
    assert ids == ["quotes/3/100", "quotes/3/101"]


_WHOLE_KEY = (
    "SELECT o.owner FROM quotes q {} owners o"
    " ON o.symbol = q.symbol AND o.owner = substring('pqr', {} + CAST(q.n AS INT), 1)"
)


@pytest.mark.parametrize(
    ("select", "ids"),
    [
        # The equality with a constant makes the key whole: the event's own id.
        (_WHOLE_KEY.format("JOIN", 1), ["quotes/3/100"]),
        (_WHOLE_KEY.format("LEFT JOIN", 1), ["quotes/3/100", "quotes/3/101"]),
        (_WHOLE_KEY.format("LEFT JOIN", 9), ["quotes/3/100", "quotes/3/101"]),
        (_WHOLE_KEY.format("JOIN", 1) + " JOIN owners m ON m.symbol = o.symbol WHERE m.n > 0", [
            "quotes/3/100/0", "quotes/3/100/1",
        ]),
        # In WHERE it is no equality of ON.
        (_WHOLE_KEY.format("JOIN", 1).replace("AND", "WHERE"), ["quotes/3/100/1"]),
        # Numbers count the rows before ON's constants are compared; the row of NULLs is the only one, so it is 0.
        ("SELECT o.owner FROM quotes q LEFT JOIN owners o ON o.symbol = q.symbol AND o.n > 0", [
            "quotes/3/100/0", "quotes/3/100/1", "quotes/3/101/0",
        ]),
        ("SELECT o.owner FROM quotes q LEFT JOIN owners o ON o.symbol = q.symbol AND o.n > 1", [
            "quotes/3/100/1", "quotes/3/101/0",
        ]),
        ("SELECT o.owner FROM quotes q LEFT JOIN owners o ON o.symbol = q.symbol AND o.n > 5", [
            "quotes/3/100/0", "quotes/3/101/0",
        ]),
    ],
)  # fmt: skip
def test_numbers_beside_constants_of_on(select: str, ids: list[str]) -> None:
    """An event's own id stands alone where ON's equalities, equalities with constants too, name the whole key."""
    events = [{"symbol": symbol, "price": 1.0, "n": 1} for symbol in "ax"]
    owners = [{"owner": owner, "symbol": "a", "n": n} for owner, n in (("q", 2), ("p", 1))]
    views = {"t_1": view_of(PROFILES, []), "t_2": view_of(OWNERS, owners)}
    rows, _ = rows_of(select, events, views)
    found = found_in(rows, compiled(select)).astype(np.int32)
    assert event_ids("quotes", rows, found).to_pylist() == ids


def test_keys_of_other_number_types() -> None:
    """A BIGINT that no INT holds, and a DECIMAL with a fraction, meet no INT; NULL meets nothing."""
    events = [{"symbol": "a", "price": 1.0, "n": n} for n in (1, 2**40, None)]
    owners = [{"owner": "p", "symbol": "a", "n": 1}, {"owner": "q", "symbol": "a", "n": None}]
    views = {"t_2": view_of(OWNERS, owners)}
    _, found = rows_of("SELECT o.owner FROM quotes q JOIN owners o ON q.n = o.n", events, views)
    assert found == [(0, "p")]
    halves = "SELECT o.owner FROM quotes q JOIN owners o ON CAST(q.n AS DECIMAL(20,1)) + 0.5 = o.n"
    assert rows_of(halves, events, views)[1] == []


@pytest.mark.parametrize("kind", ["DECIMAL(4,2)", "DECIMAL(38,18)", "DECIMAL(19,0)"])
def test_whole_numbers_meet_equal_decimals(kind: str) -> None:
    """An INT or BIGINT meets the equal DECIMAL, and no DECIMAL out of its range or with a fraction."""
    rates = Table("t_4", "rates", (StreamColumn("n", kind), StreamColumn("rate", "STRING")), ("n",), "r", "json", "")
    rows = [{"n": n, "rate": n} for n in ("5", "-7", *(() if kind == "DECIMAL(19,0)" else ("5.5",)))]
    events = [{"symbol": "a", "price": 1.0, "n": n} for n in (5, -7, 6, 2**63 - 1, None)]
    for left in ("q.n", "CAST(q.n AS INT)"):
        select = f"SELECT r.rate AS r FROM quotes q JOIN rates r ON {left} = r.n"
        _, found = rows_of(select, events, {"t_4": view_of(rates, rows)}, Catalog([QUOTES], [rates]))
        assert found == [(0, "5"), (1, "-7")]


def test_parts_of_a_tables_row() -> None:
    """A table's columns may be nested: conditions and results take parts of them, and NULL where no row is met."""
    table = Table(
        "t_3",
        "shops",
        (StreamColumn("symbol", "STRING"), StreamColumn("at", "STRUCT<city: STRING, tags: ARRAY<STRING>>")),
        ("symbol",),
        "s",
        "json",
        "",
    )
    rows = [{"symbol": "a", "at": {"city": "Oslo", "tags": ["x", "y"]}}, {"symbol": "b", "at": {"tags": []}}]
    events = [{"symbol": symbol, "price": 1.0, "n": 1} for symbol in "abc"]
    select = (
        "SELECT s.at.city AS c, size(s.at.tags) AS k FROM quotes q LEFT JOIN shops s ON q.symbol = s.symbol"
        " WHERE s.at.city IS NULL OR array_contains(s.at.tags, 'y')"
    )
    _, found = rows_of(select, events, {"t_3": view_of(table, rows)}, Catalog([QUOTES], [table]))
    assert found == [(0, "Oslo", 2), (1, None, 0), (2, None, None)]


def _slices(events: Events, lookup: LookupJoinOperator) -> list[JoinedSlice]:
    """Return the slices of a join's only step."""
    return [*lookup.step(lookup.begin(), events)[1]]


@pytest.mark.parametrize("select", QUERIES)
@settings(max_examples=15)
@given(EVENTS, PROFILE_ROWS, OWNER_ROWS, st.integers(1, 5))
def test_slices_have_the_same_rows(select: str, events: list[Row], profiles: Row, owners: Row, most: int) -> None:
    """However few rows are made at once: the same in the same order with the same numbers; each event is done once."""
    named = [{"symbol": symbol, **row} for symbol, row in profiles.items()]
    owned = [{"owner": owner, "symbol": symbol, **row} for (owner, symbol), row in owners.items()]
    views = views_of(select, named, owned)
    batch, computation = batch_of(select, events)
    whole = join(batch, computation, views)
    join_by_slices = LookupJoinOperator(computation, views, slice_rows=most)
    slices = [(done, rows) for done, rows in _slices(batch, join_by_slices) if rows is not None]
    assert [done for done, _ in slices] == sorted({done for done, _ in slices})
    assert slices[-1][0] == batch.count
    assert whole.event.tolist() == [event for _, rows in slices for event in rows.event.tolist()]
    assert all(rows.count <= most or np.unique(rows.event).size == 1 for _, rows in slices)
    if whole.number is not None:
        assert whole.number.tolist() == [n for _, rows in slices for n in (rows.number if rows.count else ())]


_TWICE = "SELECT a.owner FROM quotes q JOIN owners a ON a.symbol = q.symbol JOIN owners b ON b.symbol = a.symbol"


@settings(max_examples=40)
@given(EVENTS, OWNER_ROWS, st.integers(1, 5), st.integers(1, 9))
def test_an_event_with_too_many_rows_is_left_out_alone(
    events: list[Row], owners: Row, most: int, most_of_event: int
) -> None:
    """In any slicing, events that make more rows than allowed are named, and the others have their rows."""
    owned = [{"owner": owner, "symbol": symbol, **row} for (owner, symbol), row in owners.items()]
    views = {"t_2": view_of(OWNERS, owned)}
    batch, computation = batch_of(_TWICE, events)
    counts = np.bincount(join(batch, computation, views).event, minlength=batch.count)
    slices = _slices(batch, LookupJoinOperator(computation, views, event_rows=most_of_event, slice_rows=most))
    assert np.flatnonzero(counts > most_of_event).tolist() == [done - 1 for done, rows in slices if rows is None]
    made = [event for _, rows in slices if rows is not None for event in rows.event.tolist()]
    assert made == [event for event, n in enumerate(counts.tolist()) for _ in range(n) if n <= most_of_event]


@pytest.mark.parametrize("more", ["", " AND b.n = a.n"])
def test_too_many_rows_are_noticed_before_they_are_made(more: str) -> None:
    """Five thousand rows a key joined with themselves are 25 million: the event is left out, the next has its."""
    owned = [{"owner": str(number), "symbol": "a", "n": 1} for number in range(5_000)]
    views = {"t_2": view_of(OWNERS, [*owned, {"owner": "p", "symbol": "b", "n": 1}])}
    events = [{"symbol": symbol, "price": 1.0, "n": 1} for symbol in "ab"]
    batch, computation = batch_of(_TWICE + more, events)
    (_, none), (done, rows) = _slices(batch, LookupJoinOperator(computation, views))
    assert none is None
    assert rows is not None
    assert (done, rows.event.tolist()) == (2, [1])
