"""The test kit with tables and views: joins over rows that a test gives."""

from __future__ import annotations

import pytest

from gateway.testing import InputError, Stream, Table, digests, evaluate

QUOTES = Stream("quotes (symbol STRING, price DOUBLE)")
PROFILES = Table(
    "profiles (symbol STRING PRIMARY KEY, industry STRING)",
    [
        {"symbol": "INTC", "industry": "Chips"},
        {"symbol": "SAP", "industry": "x"},
        {"symbol": "SAP", "industry": "Soft"},
    ],
)
OWNERS = Table(
    "owners (owner STRING, symbol STRING, shares INT, PRIMARY KEY (owner, symbol))",
    [{"owner": owner, "symbol": "INTC", "shares": n} for n, owner in enumerate(("rose", "abe", "kim"))],
)
ROWS = [{"symbol": "INTC", "price": 9}, {"symbol": "SAP", "price": 8}, {"symbol": "IBM", "price": 7}, b"no json"]
LISTED = {
    "listed": "SELECT q.symbol, price, industry FROM quotes q JOIN profiles p ON q.symbol = p.symbol",
    "soft": "SELECT symbol FROM listed WHERE industry = 'Soft'",
}


def test_a_join_with_a_whole_key() -> None:
    """The latest row counts; why there is no result names the conjuncts, or that no row is met."""
    join = "SELECT q.symbol, industry FROM quotes q JOIN profiles p ON q.symbol = p.symbol WHERE industry = 'Soft'"
    chips, soft, absent, broken = evaluate(join, QUOTES, ROWS, tables=[PROFILES])
    assert {"symbol": "SAP", "industry": "Soft"} == soft.result == soft.results[0]
    assert "industry = 'Soft' is FALSE" in (chips.why or "")
    assert (absent.why, absent.conjuncts) == ("it meets no row of the tables that it is joined with", {})
    assert broken.dead_letter == "undecodable"


def test_a_left_join_keeps_events() -> None:
    """An event that meets no row meets one of NULLs."""
    join = "SELECT symbol, industry FROM quotes LEFT JOIN profiles USING (symbol) WHERE industry IS NULL"
    assert [False, False, True, False] == [row.matches for row in evaluate(join, QUOTES, ROWS, tables=[PROFILES])]


def test_an_event_may_have_several_results() -> None:
    """The result has a row for each wanted join partner, in the order of the keys."""
    join = "SELECT owner FROM quotes q JOIN owners o ON q.symbol = o.symbol WHERE shares > 0"
    found = evaluate(join, QUOTES, ROWS, tables=[OWNERS, PROFILES])
    assert [[{"owner": "abe"}, {"owner": "kim"}], [], [], []] == [row.results for row in found]
    none = evaluate(join.replace("> 0", "> 5"), QUOTES, ROWS[:1], tables=[OWNERS])
    assert "shares > 5 is FALSE" in (none[0].why or "")


def test_views_are_their_texts() -> None:
    """A view may read one before it, and a table."""
    found = evaluate("SELECT * FROM soft", QUOTES, ROWS[:2], tables=[PROFILES], views=LISTED)
    assert [None, {"symbol": "SAP"}] == [row.result for row in found]


def test_digests_over_a_join() -> None:
    """Groups by a column of the table."""
    counted = "SELECT industry, count(*) AS n FROM listed GROUP BY industry EVERY '1 minute'"
    [digest] = digests(counted, QUOTES, ROWS[:3], tables=[PROFILES], views=LISTED)
    assert [{"industry": "Chips", "n": 1}, {"industry": "Soft", "n": 1}] == sorted(
        digest["rows"], key=lambda row: row["industry"]
    )


def test_what_is_no_table_is_refused() -> None:
    """A declaration as CREATE TABLE refuses it, a row as a dead letter says, a query that names another table."""
    with pytest.raises(InputError, match="PRIMARY KEY"):
        Table("profiles (symbol STRING)")
    with pytest.raises(ValueError, match='row 1 of table t: Column "k" of the PRIMARY KEY is NULL'):
        Table("t (k INT PRIMARY KEY)", [{"k": 1}, {}])
    with pytest.raises(InputError, match='"profiles"'):
        evaluate("SELECT q.symbol FROM quotes q JOIN profiles p ON q.symbol = p.symbol", QUOTES, ROWS)


def test_an_event_with_too_many_rows_is_a_dead_letter() -> None:
    """Rows of a table joined with themselves multiply: the event's letter says so, and other events have results."""
    rows = [{"owner": f"{number}", "symbol": "INTC", "shares": number} for number in range(1_500)]
    rows.append({"owner": "abe", "symbol": "SAP", "shares": 1})
    owners = Table("owners (owner STRING, symbol STRING, shares INT, PRIMARY KEY (owner, symbol))", rows)
    select = (
        "SELECT a.owner FROM quotes q JOIN owners a ON a.symbol = q.symbol JOIN owners b ON b.symbol = q.symbol"
        " WHERE b.shares > 0"
    )
    many, one, *_ = evaluate(select, QUOTES, ROWS, tables=[owners])
    assert (many.dead_letter, many.results) == ("too-many-rows", [])
    assert "makes more than 2000000 rows of this event" in (many.why or "")
    assert one.results == [{"owner": "abe"}]


@pytest.mark.parametrize("key", ["b BINARY PRIMARY KEY, n INT", "b BINARY, n INT PRIMARY KEY"])
def test_binary_values_join(key: str) -> None:
    """By their bytes, as a whole key and as any column; NULL meets nothing."""
    stream, rows = Stream("packets (b BINARY)"), [{"b": "AP8="}, {"b": ""}, {"b": "/w=="}, {"b": None}]
    known = Table(f"known ({key})", [{"b": "AP8=", "n": 1}, {"b": "", "n": 2}])
    found = evaluate("SELECT n FROM packets p JOIN known k ON p.b = k.b", stream, rows, tables=[known])
    assert [[{"n": 1}], [{"n": 2}], [], []] == [row.results for row in found]


@pytest.mark.parametrize("emit", ["EMIT CHANGES", "EMIT ON ENTER"])
def test_changes_of_a_table_need_a_gateway(emit: str) -> None:
    """The rows of a test are events of its stream, so a query over a table's changes is refused."""
    profiles = Table("profiles (symbol STRING PRIMARY KEY)", [{"symbol": "INTC"}])
    with pytest.raises(InputError, match="a query FROM a table alone"):
        evaluate(f"SELECT symbol FROM profiles {emit}", QUOTES, ROWS, tables=[profiles])
