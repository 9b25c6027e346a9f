"""SHOW: the names selected by a pattern, and the size of a page."""

from __future__ import annotations

import json
from bisect import bisect_right
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.commands import listing


def _selects(pattern: str, name: str) -> bool:
    """Tell whether LIKE selects a name, both of them folded, as the definition has it."""
    if not pattern:
        return not name
    if pattern[0] == "%":
        return any(_selects(pattern[1:], name[place:]) for place in range(len(name) + 1))
    return bool(name) and pattern[0] in ("_", name[0]) and _selects(pattern[1:], name[1:])


@given(st.text("aAb.%%_\n", max_size=8), st.text("aAb.%\n", max_size=8))
def test_like_selects_by_its_definition(pattern: str, name: str) -> None:
    """% is any text, _ any character, and all else is itself, in any case."""
    assert _selects(pattern.casefold(), name.casefold()) == listing.like_filter(pattern)(name)


@pytest.mark.timeout(5)
@pytest.mark.parametrize("part", ["%a", "%a_", "%_a", "%", "a%%"], ids=repr)
@pytest.mark.parametrize("times", [5, 100, 200_000])
def test_no_pattern_keeps_the_gateway_busy(part: str, times: int) -> None:
    """A pattern of many parts is answered at once, even for the longest name, which nearly matches."""
    assert not listing.like_filter(part * times + "b")("a" * 255)


def test_a_page_fits_a_reply() -> None:
    """A page ends early when its items are large; paged through, all of them are there once."""
    names = [f"n{number:02}" for number in range(40)]
    seen: list[str] = []
    while len(seen) < len(names):
        page = listing.page_of(
            "streams", "stream", names[len(seen) :], 1000, lambda name: {"stream": name, "columns": "c" * 500_000}
        )
        assert len(json.dumps(page)) < 5 << 20
        items = page["streams"]
        assert isinstance(items, list) and items
        seen += [item["stream"] for item in items]
        assert page["next"] == (seen[-1] if len(seen) < len(names) else None)
    assert names == seen


def test_an_item_larger_than_a_page() -> None:
    """The item has a page of its own, so paging goes on."""
    page = listing.page_of("cqs", "cq", ["a", "b"], 1000, lambda name: {"cq": name, "trigger": "x" * (6 << 20)})
    assert ("a", 1) == (page["next"], len(page["cqs"]))


def test_a_search_ends_where_it_takes_long() -> None:
    """A page examines a bounded number of names; a reader who pages on gets all names that LIKE selects, each once."""
    names, looked, found, after = [f"n{number:06}" for number in range(120_001)], 0, [], ""

    def matches(name: str) -> bool:
        nonlocal looked
        looked += 1
        return name.endswith("0001")

    while True:
        before, begin = looked, bisect_right(names, after)
        chosen, searched_to = listing.search(islice(names, begin, None), matches, 1000)
        assert looked - before <= 50_000
        page = listing.page_of("cqs", "cq", chosen, 1000, lambda name: {"cq": name}, searched_to)
        found += chosen
        if page["next"] is None:
            break
        after = str(page["next"])
    assert names[1::10_000] == found
