"""The expected time of a stream's micro-batch is the sum over its live groups, even groups from before a restart."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.registry.expectations import BatchTimes
from grouping.model.ids import GroupId, StreamId

_STREAM = StreamId("s_1")


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from(["add", "drop", "tell"])), max_size=30))
def test_the_sum_is_that_of_the_live_groups(acts: list[tuple[str, str]]) -> None:
    """Groups come and go; with each new statistics the sum is exactly that of the live ones."""
    times, live, known = BatchTimes(), {GroupId("old"): 1}, object()
    micros = {GroupId("old"): 7.0} | {GroupId(name): float(ord(name)) for name in "abcdef"}
    for name, act in acts:
        group = GroupId(name)
        expected = times.expected(_STREAM, known, live, micros.get)
        if act == "add" and group not in live:
            times.add(_STREAM, group, micros[group])
            live[group] = 1
            assert times.expected(_STREAM, known, live, micros.get) == expected + micros[group]
        elif act == "drop":
            live.pop(group, None)
        known = object() if act != "add" else known
    assert times.expected(_STREAM, object(), live, micros.get) == sum(micros[group] for group in live)


def test_a_group_that_nobody_measured_counts_once_it_is() -> None:
    """A group from before a restart counts from the first statistics that contain it."""
    times, live = BatchTimes(), {GroupId("old"): 1}
    assert times.expected(_STREAM, "no statistics", live, lambda _: None) == 0
    assert times.expected(_STREAM, "statistics", live, lambda _: 400.0) == 400
    times.forget(_STREAM)
    assert times.expected(_STREAM, "statistics", {}, lambda _: 400.0) == 0
