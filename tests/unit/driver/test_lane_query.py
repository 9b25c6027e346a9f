"""The ranges of a micro-batch of the lane, spread over tasks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.runtime.kafka.range_reader import SourceRange
from spark_jobs.runtime.streams.lane_query import spread

_PLACES = st.tuples(st.sampled_from("abc"), st.integers(0, 4))


@given(st.dictionaries(_PLACES, st.integers(1, 9), min_size=1), st.integers(1, 5))
def test_each_range_is_in_one_task(sizes: dict[tuple[str, int], int], tasks: int) -> None:
    """No task is empty, none has much more than its part, and no range is left out or read twice."""
    ranges = [SourceRange(topic, partition, 100, 100 + size) for (topic, partition), size in sizes.items()]
    found = spread(ranges, tasks)
    assert sorted(each for task in found for each in task) == sorted(ranges)
    assert all(found) and len(found) <= tasks
    records = [sum(each.end - each.first for each in task) for task in found]
    assert max(records) <= min(records) + 9
