"""Short sets and long ones: a value is in its set or not."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.engine.index.set_membership import in_sets

_CODE = st.integers(-1, 40)


@given(
    st.lists(st.lists(_CODE, max_size=60), min_size=1, max_size=5),
    st.lists(st.tuples(_CODE, st.integers(0, 4)), min_size=1, max_size=6),
)
def test_as_python_has_it(sets: list[list[int]], pairs: list[tuple[int, int]]) -> None:
    """Whatever the sets' lengths, and however elements repeat; a value without a code is in none."""
    pairs = [(value, which % len(sets)) for value, which in pairs]
    values, which = (np.array(column) for column in zip(*pairs, strict=True))
    codes = np.array([code for one in sets for code in one], np.int32)
    offsets = np.cumsum([0, *map(len, sets)])
    expected = [value >= 0 and value in sets[number] for value, number in pairs]
    assert expected == in_sets(values.astype(np.int32), which, codes, offsets).tolist()
