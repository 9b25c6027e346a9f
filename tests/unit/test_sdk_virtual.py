"""A virtual destination's filter, applied by the reader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from gateway.sdk.errors import FilterUnavailable
from gateway.sdk.results import Destination
from gateway.sdk.virtual import filter_of


def apply(where: str, select: str, event: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Apply filter and SELECT list of a virtual destination to an event."""
    place = Destination(id="d_1", mode="virtual", topic="t", key="g_1", filter=where, select=select)
    chosen = filter_of(place)
    assert chosen is not None
    return chosen(event)


@pytest.mark.parametrize(
    ("where", "event", "seen"),
    [
        ("price < 10", {"price": 9.5}, True),
        ("price < 10", {"price": 10}, False),
        ("price < 10", {"price": None}, False),
        ("NOT (price < 10)", {"price": None}, False),
        ("price IS NULL", {"price": None}, True),
        ("volume > 9007199254740992", {"volume": 9007199254740993}, True),
        ("symbol = 'O''Neil'", {"symbol": "O'Neil"}, True),
        ("symbol = 'A' OR flag", {"symbol": None, "flag": True}, True),
    ],
)
def test_filter_keeps_three_valued_logic_and_exact_numbers(where: str, event: dict[str, Any], seen: bool) -> None:
    """An event is a match only where the filter is TRUE; big integers are not rounded."""
    assert seen == (apply(where, "*", event) is not None)


def test_select_list_is_applied() -> None:
    """The row is the SELECT list's, in its order, with its names."""
    row = apply("TRUE", "price * 2 AS twice, symbol", {"symbol": "A", "price": 1.5})
    assert [("twice", 3.0), ("symbol", "A")] == list((row or {}).items())


def test_a_filter_that_cannot_be_applied_is_told() -> None:
    """What DuckDB does not know is an error with the filter's destination, not a missing result."""
    with pytest.raises(FilterUnavailable, match="d_1"):
        apply("no_such_function(price)", "*", {"price": 1})


def test_other_destinations_need_nothing() -> None:
    """Shared and dedicated results are read as they are."""
    assert filter_of(Destination(id="d_1", mode="shared", topic="t", key="d_1")) is None
