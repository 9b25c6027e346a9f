"""A single group for a predicate up to constants, whatever the spelling (docs/statements.md)."""

from __future__ import annotations

import json

import pytest

from tests.stack.lab import Lab, Source

QUOTES = "symbol STRING, price DOUBLE, volume BIGINT, flag BOOLEAN"


@pytest.fixture(scope="module")
def quotes(shared_lab: Lab) -> Source:
    """A stream that no test of this file drops."""
    return shared_lab.stream(QUOTES)


EQUAL = [
    ("symbol = 'A'", "SYMBOL = 'A'"),
    ("symbol = 'A'", "'A' = symbol"),
    ("symbol = 'A'", "(((symbol) = ('A')))"),
    ("symbol = 'A'", "`Symbol` = 'A' /* why */ -- so"),
    ("symbol = 'A'", "symbol IN ('A')"),
    ("symbol = 'A'", "symbol IN ('A', 'A')"),
    ("symbol IN ('A', 'B')", "symbol IN ('B', 'A', 'B')"),
    ("price > 5", "5 < price"),
    ("price >= 5", "5.0 <= price"),
    ("price = 1", "price = 1.0"),
    ("price = 1", "price = 1e0"),
    ("volume = 1", "volume = 1.0"),
    ("price <> 5", "price != 5"),
    ("price BETWEEN 1 AND 2", "price >= 1 AND price <= 2"),
    ("price BETWEEN 1 AND 2", "2 >= price AND 1 <= price"),
    ("symbol = 'A' AND price > 1 AND volume < 2", "volume < 2 AND (price > 1 AND symbol = 'A')"),
    ("flag", "flag = TRUE"),
    ("flag", "true = flag"),
    ("symbol IS NULL", "symbol is null"),
    ("", ""),
]


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_equal_whatever_the_spelling(lab: Lab, quotes: Source, one: str, other: str) -> None:
    """Spellings of a predicate give the same group, equal constants, and the same destination."""
    first, second = lab.where(quotes, "a", one), lab.where(quotes, "b", other)
    for part in ("group", "signature", "constants"):
        assert first[part] == second[part]
    assert first["destination"]["id"] == second["destination"]["id"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("symbol = 'A'", "symbol <> 'A'"),
        ("price > 5", "price >= 5"),
        ("price > 5", "volume > 5"),
        ("price > 10", "price > 5 AND price > 10"),
        ("symbol = 'A'", "symbol IN ('A', 'B')"),
        ("symbol IS NULL", "symbol IS NOT NULL"),
        ("symbol = 'A'", "symbol = 'A' AND price > 1"),
        ("flag", ""),
    ],
)
def test_other_predicates_are_other_groups(lab: Lab, quotes: Source, one: str, other: str) -> None:
    """Predicates that differ in more than constants are different groups."""
    assert lab.where(quotes, "a", one)["group"] != lab.where(quotes, "b", other)["group"]


def test_lists_of_any_length_are_one_signature(lab: Lab, quotes: Source) -> None:
    """An IN list of two and one of a hundred elements share their group, not their destination."""
    many = ", ".join(f"'s{n}'" for n in range(100))
    first, second = lab.where(quotes, "a", "symbol IN ('A', 'B')"), lab.where(quotes, "b", f"symbol IN ({many})")
    assert first["group"] == second["group"]
    assert first["destination"]["id"] != second["destination"]["id"]


def test_show_groups_and_streams(lab: Lab) -> None:
    """SHOW GROUPS counts a subscriber's own CQs and constants and shows neither; it tells nothing of others'."""
    source = lab.stream(QUOTES)
    made = [lab.where(source, f"private{n}", f"symbol = 'secret{n % 2}'") for n in range(3)]
    page = lab.client.result("SHOW GROUPS LIMIT 1000", lab.subscriber())
    [group] = [item for item in page["groups"] if item["group"] == made[0]["group"]]
    assert (source.name, 3, 2) == (group["stream"], group["cqs"], group["constants"])
    assert made[0]["signature"] == group["signature"] and "index" in group
    assert "secret" not in json.dumps(page) and "private" not in json.dumps(page)
    assert source.name in [item["stream"] for item in lab.client.result("SHOW STREAMS LIMIT 1000")["streams"]]
    anyone = lab.subscriber("anyone")
    assert [] == lab.client.result("SHOW GROUPS LIMIT 1000", anyone)["groups"]
    lab.where(source, "guess", "symbol = 'secret0'", who="anyone")
    [guessed] = lab.client.result("SHOW GROUPS LIMIT 1000", anyone)["groups"]
    assert (made[0]["group"], 1, 1) == (guessed["group"], guessed["cqs"], guessed["constants"])
    for n in range(3):
        lab.drop(f"private{n}")
    left = lab.client.result("SHOW GROUPS LIMIT 1000", lab.subscriber())["groups"]
    assert made[0]["group"] not in [item["group"] for item in left]
