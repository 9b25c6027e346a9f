"""The values of BY: which results share an interval."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.throttling.by_values import by_values

_NAMES = st.sampled_from(["a", "b", 'a"b', "a\\b", "\n", "", "é", "f0", "__init__"])
_scalars = st.none() | st.booleans() | st.text(max_size=3) | st.integers() | st.floats(allow_nan=False, width=32)
_values = st.recursive(
    _scalars, lambda parts: st.lists(parts, max_size=2) | st.dictionaries(_NAMES, parts, max_size=2), max_leaves=4
)
_rows = st.dictionaries(_NAMES, _values, min_size=2, max_size=4)


def _text(row: Any) -> bytes:
    return json.dumps(row).replace("Infinity", "null").replace("-null", "null").encode()


def _plain(value: Any) -> Any:
    """Return a value that is equal to another exactly if SQL takes both for equal; infinities are shown as null."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if isinstance(value, float) and value in (float("inf"), -float("inf")):
        return None
    return (type(value).__name__, value)


@given(_rows, _rows, st.data())
def test_values_are_equal_exactly_if_the_columns_are(
    one: dict[str, Any], other: dict[str, Any], data: st.DataObject
) -> None:
    """Other columns do not matter, whatever the names; a text is no number, no NULL and no other text."""
    names = tuple(data.draw(st.lists(st.sampled_from(sorted(one)), min_size=1, max_size=2, unique=True)))
    other = one | {name: other.get(name, one[name]) for name in names}
    equal = all(_plain(one[name]) == _plain(other[name]) for name in names)
    assert equal == (by_values(_text(one), names) == by_values(_text(other), names))
    assert by_values(_text(one), ()) == by_values(_text(other), ())


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (b"-0.0", b"0.0", True),
        (b"[-0.0]", b"[0.0]", True),
        (b'{"x":1,"y":2}', b'{"y":2,"x":1}', True),
        (b'{"x":[{"z":-0.0,"y":1}]}', b'{"x":[{"y":1,"z":0.0}]}', True),
        (b"[0.10000000000000000000000000000000000001]", b"[0.1]", False),
        (b"[1e400]", b"[1e401]", False),
        (b'["1.5"]', b"[1.5]", False),
        (b"null", b'"null"', False),
        (b"12345678901234567890123", b"12345678901234567890124", False),
    ],
)
def test_equality_is_that_of_sql(one: bytes, other: bytes, equal: bool) -> None:
    """Signs of zeros and the order of a map's keys do not matter; no digit is lost."""
    row = b'{"v":%b,"w":1}'
    assert equal == (by_values(row % one, ("v",)) == by_values(row % other, ("v",)))
