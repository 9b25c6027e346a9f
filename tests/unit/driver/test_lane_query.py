"""The ends of a micro-batch of the lane, and its ranges, spread over tasks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.runtime.kafka.range_reader import SourceRange
from spark_jobs.runtime.streams.lane_query import bounded_ends, spread

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


@given(st.dictionaries(_PLACES, st.tuples(st.integers(0, 9), st.integers(0, 200)), min_size=1), st.integers(1, 100))
def test_no_stream_takes_the_whole_micro_batch(places: dict[tuple[str, int], tuple[int, int]], most: int) -> None:
    """A micro-batch never ends before the last one, is bounded, and has events of each partition with new events.

    No partition waits for a share that others do not need.
    """
    reached: dict[str, dict[int, int]] = {}
    ends: dict[str, dict[int, int]] = {}
    for (topic, partition), (begin, end) in places.items():
        reached.setdefault(topic, {})[partition] = begin
        ends.setdefault(topic, {})[partition] = end
    found = bounded_ends(reached, ends, most)
    taken = {(topic, partition): found[topic][partition] - begin for (topic, partition), (begin, _) in places.items()}
    waiting = {place: max(end - begin, 0) for place, (begin, end) in places.items()}
    assert all((taken[place] > 0) == (waiting[place] > 0) and taken[place] <= waiting[place] for place in places)
    news = sum(count > 0 for count in waiting.values())
    assert sum(taken.values()) == max(min(most, sum(waiting.values())), news)
    bound = max(taken.values())
    assert all(taken[place] in (waiting[place], bound, bound - 1) for place in places)
