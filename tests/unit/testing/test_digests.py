"""The test kit's digests: the matches of each tick, and the rows shown."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from gateway.testing import ACCEPTED_AT, InputError, Record, Stream, digests

QUOTES = Stream("quotes (symbol STRING, price DOUBLE)")


def _rows(*rows: tuple[float, str, float | None]) -> list[Record]:
    """Return records of that many minutes after acceptance."""
    return [
        Record({"symbol": symbol, "price": price}, time=ACCEPTED_AT + timedelta(minutes=minute))
        for minute, symbol, price in rows
    ]


def _outlines(found: list[dict]) -> list[tuple[str, str, int, list]]:
    """Return times without their day, count, and the values of the rows."""
    return [(d["from"][11:16], d["to"][11:16], d["count"], [list(row.values()) for row in d["rows"]]) for d in found]


def test_each_match_is_in_the_digest_of_its_tick() -> None:
    """A tick covers [from, to); late matches come with the first tick after them, and empty ticks write nothing."""
    rows = _rows((-5, "EARLY", 1), (0, "A", 1), (9.99, "B", 2), (10, "C", 3), (35, "D", 4), (36, "E", 400))
    found = digests("SELECT symbol FROM quotes WHERE price < 100 EVERY '10 minutes'", QUOTES, rows)
    assert _outlines(found) == [
        ("00:00", "00:10", 3, [["EARLY"], ["A"], ["B"]]),
        ("00:10", "00:20", 1, [["C"]]),
        ("00:30", "00:40", 1, [["D"]]),
    ]
    assert all(digest["fired_at"] == digest["to"] for digest in found)


@pytest.mark.parametrize(
    ("clause", "count", "rows"),
    [
        ("ALL", 4, [["A", 1.0], ["B", 5.0], ["A", 3.0], ["C", None]]),
        ("COUNT", 4, []),
        ("LATEST BY symbol", 4, [["B", 5.0], ["A", 3.0], ["C", None]]),
        ("TOP 3 BY price", 4, [["B", 5.0], ["A", 3.0], ["A", 1.0]]),
    ],
)
def test_clauses(clause: str, count: int, rows: list) -> None:
    """Each digest clause shows the promised rows."""
    given = _rows((1, "A", 1), (2, "B", 5), (3, "A", 3), (4, "C", None))
    [found] = digests(f"SELECT * FROM quotes EVERY '1 hour' DO PUBLISH DIGEST {clause}", QUOTES, given)
    assert (count, rows) == (found["count"], [list(row.values()) for row in found["rows"]])


def test_even_if_empty() -> None:
    """With EVEN IF EMPTY each tick writes, up to the first after all rows, or up to a given time."""
    text = "SELECT symbol FROM quotes EVERY '10 minutes' DO PUBLISH EVEN IF EMPTY"
    assert [0, 0, 1] == [d["count"] for d in digests(text, QUOTES, _rows((25, "A", 1)))]
    assert 3 == len(digests(text, QUOTES, [], until=ACCEPTED_AT + timedelta(minutes=30)))


def test_start_cron_and_expire() -> None:
    """Ticks count from START, or are cron's; at EXPIRE there is a last digest of pending matches."""
    rows = _rows((1, "A", 1), (6, "B", 2), (16, "C", 3), (18, "D", 4))
    text = "SELECT symbol FROM quotes EVERY '10 minutes' START '2026-01-01T00:05:00Z' EXPIRE '2026-01-01T00:17:00Z'"
    assert [("00:05", "00:15", 1, [["B"]]), ("00:15", "00:17", 1, [["C"]])] == _outlines(digests(text, QUOTES, rows))
    found = digests("SELECT symbol FROM quotes EVERY CRON '*/15 * * * *'", QUOTES, rows)
    assert [("00:00", "00:15", 2), ("00:15", "00:30", 2)] == [each[:3] for each in _outlines(found)]


def test_ticks_without_anything_cost_nothing() -> None:
    """Rows may lie years apart, and ticks a second."""
    rows = [Record({"symbol": "A"}, time=datetime(year, 6, 1, tzinfo=UTC)) for year in (2026, 2066)]
    assert 2 == len(digests("SELECT symbol FROM quotes EVERY '1 second'", QUOTES, rows))


def test_very_many_matches_are_one_digest() -> None:
    """A digest of several parts is put together again."""
    rows = [{"symbol": f"{number:06}" + "x" * 1000} for number in range(2000)]
    [found] = digests("SELECT symbol FROM quotes EVERY '1 hour'", QUOTES, rows)
    assert [row["symbol"] for row in rows] == [row["symbol"] for row in found["rows"]]


def test_change_based_queries_have_none() -> None:
    """Without EVERY there are no digests."""
    with pytest.raises(InputError) as caught:
        digests("SELECT symbol FROM quotes", QUOTES, [])
    assert "bad-interval" == caught.value.code


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT b, count(*) AS c FROM packets GROUP BY b EVERY '1 hour'",
         [["", 1], ["AP8=", 2], ["/w==", 1], [None, 1]]),
        ("SELECT b, n FROM packets DO PUBLISH DIGEST LATEST BY b EVERY '1 hour'",
         [["AP8=", 2], [None, 3], ["", 4], ["/w==", 5]]),
        ("SELECT b, n FROM packets DO PUBLISH DIGEST TOP 2 BY b EVERY '1 hour'", [["/w==", 5], ["AP8=", 1]]),
        ("SELECT max(b) AS m FROM packets GROUP BY n HAVING max(b) = X'FF' EVERY '1 hour'", [["/w=="]]),
    ],
)  # fmt: skip
def test_binary_values_are_keys(query: str, rows: list) -> None:
    """Grouped, kept and ordered by their bytes."""
    packets = [{"b": b, "n": n} for n, b in enumerate(("AP8=", "AP8=", None, "", "/w=="), 1)]
    [digest] = digests(query, Stream("packets (b BINARY, n INT)"), packets)
    assert rows == [list(row.values()) for row in digest["rows"]]


def test_a_last_digest_comes_only_if_its_ticks_have_come() -> None:
    """Without `until`, the ticks end with the first tick after all rows, which may be long before EXPIRE."""
    query = (
        "SELECT symbol, count(*) AS n FROM quotes GROUP BY symbol "
        "EVERY '10 minutes' OVER LAST '1 hour' EXPIRE AFTER '35 minutes'"
    )
    stream = Stream("quotes (symbol STRING, price DOUBLE)")
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    rows = [Record({"symbol": "a", "price": 1.0}, time=begin + timedelta(minutes=5))]
    ends = [digest["to"][11:16] for digest in digests(query, stream, rows)]
    assert ["00:10"] == ends
    ends = [digest["to"][11:16] for digest in digests(query, stream, rows, until=begin + timedelta(hours=1))]
    assert ["00:10", "00:20", "00:30", "00:35"] == ends
