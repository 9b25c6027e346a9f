"""Counts of matches: summed up in any order, and as bytes, they equal a dictionary's."""

from __future__ import annotations

from collections import Counter

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from grouping.store.match_tally import MatchTally

_TASKS = st.lists(st.tuples(st.lists(st.integers(0, 200_000), min_size=1), st.integers(0, 2**41)), min_size=1)
"""Numbers of the destinations that a task met, and when."""


@given(_TASKS, st.integers(1, 5))
def test_totals_are_those_of_a_dictionary(tasks: list[tuple[list[int], int]], group: int) -> None:
    """Totals of totals too: each number has all of its matches, and the time of the last."""
    counts: Counter[int] = Counter()
    last: dict[int, int] = {}
    for numbers, at in tasks:
        counts.update(numbers)
        last |= {number: max(at, last.get(number, 0)) for number in numbers}
    tallies = [MatchTally.of(np.array(numbers), at) for numbers, at in tasks]
    while len(tallies) > 1:
        total = MatchTally.total(tallies[: group + 1])
        tallies = [*map(MatchTally.decode, total.encode()), *tallies[group + 1 :]]
    assert counts == dict(zip(tallies[0].numbers.tolist(), tallies[0].counts.tolist(), strict=True))
    assert last == dict(zip(tallies[0].numbers.tolist(), tallies[0].last_ms.tolist(), strict=True))


def test_values_are_bounded_and_large_counts_exact() -> None:
    """A million destinations are many values of a megabyte; a count beyond 32 bits stays the same."""
    numbers = np.arange(1_000_000, dtype=np.int32)
    tally = MatchTally(numbers, np.full(numbers.size, 1 << 40), numbers.astype(np.int64))
    values = list(tally.encode())
    assert max(map(len, values)) < 2_000_000
    total = MatchTally.total(map(MatchTally.decode, values))
    assert all((one == other).all() for one, other in zip(tally, total, strict=True))


def test_what_an_earlier_version_pushed_is_read() -> None:
    """A common time, and counts of 32 bits."""
    body = msgspec.msgpack.encode((5, np.array([1, 2], np.int32).tobytes(), np.array([3, 4], np.int32).tobytes()))
    assert [[1, 2], [3, 4], [5, 5]] == [column.tolist() for column in MatchTally.decode(body)]
