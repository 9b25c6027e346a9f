"""Indexes over int64 keys equal trying every row."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_jobs.engine.index import CompositeIndex, EqualityIndex, IntervalIndex, KeyDirectory, OrderedIndex, mix

_KEY = st.sampled_from([-(2**63), -(2**63) + 1, -2, -1, 0, 1, 2, 3, 2**53, 2**53 + 1, 2**63 - 2, 2**63 - 1])
_KEYS = st.lists(_KEY, max_size=15)
_OPS = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}


def _pairs(found: object, limit: int = 7) -> list[tuple[int, int]]:
    return sorted((int(e), int(r)) for events, rows in found.pairs(limit) for e, r in zip(events, rows, strict=True))  # type: ignore[attr-defined]


def _ints(values: list[int]) -> np.ndarray:
    return np.array(values, np.int64)


@given(_KEYS, st.sampled_from(sorted(_OPS)), _KEYS)
def test_ordered(rows: list[int], op: str, events: list[int]) -> None:
    """A single bound, at int64's ends and among equal keys."""
    index = OrderedIndex(op, _ints(rows), np.arange(len(rows), dtype=np.int32))
    cuts = index.cuts(_ints(events))
    assert cuts.tolist() == index.cuts(_ints(events), np.argsort(_ints(events))).tolist()
    result = index.at(cuts)
    reached = index.reach(_ints(events), np.argsort(_ints(events)))
    expected = [(e, r) for e, x in enumerate(events) for r, c in enumerate(rows) if _OPS[op](x, c)]
    assert sorted(expected) == _pairs(result)
    assert [any(e == hit for hit, _ in expected) for e in range(len(events))] == result.any(None).tolist()
    assert {e for e, _ in expected} == set(reached.tolist())


@given(st.lists(st.tuples(st.integers(0, 3), _KEY), max_size=20), st.sampled_from(sorted(_OPS)), st.data())
def test_composite(rows: list[tuple[int, int]], op: str, data: st.DataObject) -> None:
    """A bound within the rows of a code, codes that no row has included."""
    events = data.draw(st.lists(st.tuples(st.integers(-1, 4), _KEY), max_size=10))
    codes = np.array([code for code, _ in rows], np.int32)
    index = CompositeIndex(op, codes, 5, _ints([key for _, key in rows]), np.arange(len(rows), dtype=np.int32))
    result = index.find(np.array([code for code, _ in events], np.int32), _ints([key for _, key in events]))
    expected = [(e, r) for e, (a, x) in enumerate(events) for r, (b, c) in enumerate(rows) if a == b and _OPS[op](x, c)]
    assert sorted(expected) == _pairs(result)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2), _KEY, _KEY), max_size=15),
    st.sampled_from([">", ">="]),
    st.sampled_from(["<", "<="]),
    st.lists(st.tuples(st.integers(-1, 3), _KEY), max_size=10),
    st.booleans(),
)
def test_interval(
    rows: list[tuple[int, int, int]], low: str, high: str, events: list[tuple[int, int]], coded: bool
) -> None:
    """Two bounds, open and closed, empty and turned round, with and without codes, all or some rows alive."""
    codes = np.array([code for code, _, _ in rows], np.int32) if coded else None
    lows, highs = _ints([low for _, low, _ in rows]), _ints([high for _, _, high in rows])
    index = IntervalIndex((low, high), lows, highs, np.arange(len(rows), dtype=np.int32), codes)
    wanted = np.array([code for code, _ in events], np.int32) if coded else None
    result = index.at(index.ranks(_ints([x for _, x in events])), wanted)
    expected = sorted(
        (e, r)
        for e, (a, x) in enumerate(events)
        for r, (b, c, d) in enumerate(rows)
        if (not coded or a == b) and _OPS[low](x, c) and _OPS[high](x, d)
    )
    assert expected == _pairs(result)
    alive = np.arange(len(rows)) % 2 == 0
    for mask, version in ((None, 0), (alive, 1)):
        some = {e for e, r in expected if mask is None or mask[r]}
        assert [e in some for e in range(len(events))] == result.any(mask, version).tolist()


@given(st.lists(st.integers(-(2**63), 2**63 - 1), unique=True, max_size=40), _KEYS)
def test_directory(keys: list[int], others: list[int]) -> None:
    """A key is found at its own position, any other nowhere."""
    directory = KeyDirectory(mix(_ints(keys)))
    codes = directory.find(mix(_ints(keys + others)))
    assert [*range(len(keys)), *(keys.index(key) if key in keys else -1 for key in others)] == codes.tolist()


@given(st.sets(st.integers(0, 255), max_size=40), st.lists(st.integers(0, 255)))
def test_directory_of_badly_spread_hashes(hashes: set[int], others: list[int]) -> None:
    """Hashes that share their leading bits are found as well, and others are not."""
    crowded = sorted(hashes)
    codes = KeyDirectory(np.array(crowded, np.uint64)).find(np.array([*crowded, *others], np.uint64))
    assert [crowded.index(each) if each in hashes else -1 for each in [*crowded, *others]] == codes.tolist()


@given(st.lists(st.integers(0, 3), max_size=20), st.lists(st.integers(-1, 3), max_size=10))
def test_equality(rows: list[int], events: list[int]) -> None:
    """All rows of a code, in chunks however many there are."""
    index = EqualityIndex(np.array(rows, np.int32), 4, np.arange(len(rows), dtype=np.int32))
    expected = sorted((e, r) for e, a in enumerate(events) for r, b in enumerate(rows) if a == b)
    assert expected == _pairs(index.find(np.array(events, np.int32)), 3)
