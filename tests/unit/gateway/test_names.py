"""Names stay sorted while names are added and removed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.model.names import Names

_names = st.text("abc", max_size=3)


@given(st.sets(_names), st.lists(_names, max_size=40), _names, st.integers(1, 12))
def test_names_stay_in_order(first: set[str], toggled: list[str], place: str, few: int) -> None:
    """After any changes, merged in or not, the names behind a place equal a sorted set's."""
    names, expected = Names(first, few), set(first)
    for name in toggled:
        (names.discard if name in expected else names.add)(name)
        expected ^= {name}
    assert len(expected) == len(names)
    assert sorted(name for name in expected if name > place) == list(names.after(place))
    assert expected >= set(names.near(place, 2))
    assert expected == set(names.near(place, 1000))
