"""Which segments of the constant tables are merged: few are left, and none is rewritten for a little that came."""

from __future__ import annotations

import math
import random

from hypothesis import given
from hypothesis import strategies as st

from gateway.state.table_upkeep import oldest_to_merge


@given(st.lists(st.integers(1, 10**8), min_size=1, max_size=40))
def test_few_segments_are_left(sizes: list[int]) -> None:
    """Merged until nothing is worth it, sizes fall by half and more: their number is logarithmic in the whole."""
    while (first := oldest_to_merge(sizes)) is not None:
        assert first < len(sizes) - 1
        assert sizes[first] <= 2 * sum(sizes[first + 1 :])
        sizes = [*sizes[:first], sum(sizes[first:])]
    assert len(sizes) <= 2 + math.log(sum(sizes), 3)


def test_a_large_segment_is_not_rewritten_for_small_ones() -> None:
    """A thousand commits beside a million rows rewrite small segments, over and over, and the large one never."""
    rng = random.Random(1)
    sizes, written = [50_000_000], 0
    for _ in range(1000):
        sizes.append(rng.randint(100, 20_000))
        if len(sizes) >= 8 and (first := oldest_to_merge(sizes)) is not None:
            assert first > 0
            sizes = [*sizes[:first], sum(sizes[first:])]
            written += sizes[-1]
    assert written < 10 * sum(sizes[1:])
