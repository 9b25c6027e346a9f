"""The intervals of AT MOST beside a plain count over the list of all results."""

from __future__ import annotations

import json
from datetime import timedelta

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from gateway.throttling.intervals import Interval, Throttling, values_of
from grouping.model.trigger import Throttle

_DAY_MS = 86_400_000
_results = st.lists(st.tuples(st.sampled_from((b"a", b"b")), st.integers(0, 100)), max_size=60)


def _expected(results: list[tuple[bytes, int]], most: int, every: int) -> list[int | None]:
    """Return the answer for each result: begin a list of results when an interval begins, and count in the list."""
    lists: dict[bytes, list[int]] = {}
    left: dict[bytes, int] = {b"a": 0, b"b": 0}
    answers: list[int | None] = []
    for values, time in results:
        own = lists.get(values)
        if own is None or time - own[0] >= every:
            lists[values] = own = []
        own.append(time)
        if len(own) > most:
            left[values] += 1
            answers.append(None)
        else:
            answers.append(left[values])
            left[values] = 0
    return answers


@given(_results, st.integers(1, 3), st.integers(1, 40))
def test_answers_are_those_of_a_plain_count(results: list[tuple[bytes, int]], most: int, every: int) -> None:
    """Whatever the order of times, at most n results of an interval are written, and each left out is told once."""
    throttle, state = Throttle(most, timedelta(milliseconds=every)), Throttling()
    answers = [state.take(values, time, throttle) for values, time in results]
    assert _expected(results, most, every) == answers
    sums = sum(answer for answer in answers if answer is not None)
    assert answers.count(None) == sums + sum(each.suppressed for each in state.intervals.values())


@given(_results, st.integers(1, 3), st.integers(1, 40), st.integers(0, 60))
def test_a_restored_state_answers_alike(results: list[tuple[bytes, int]], most: int, every: int, cut: int) -> None:
    """A gateway that takes over with the stored intervals goes on as its predecessor would."""
    throttle, whole = Throttle(most, timedelta(milliseconds=every)), Throttling()
    wanted = [whole.take(values, time, throttle) for values, time in results]
    before, after = Throttling(), Throttling()
    answers = [before.take(values, time, throttle) for values, time in results[:cut]]
    for values, interval in before.intervals.items():
        body = msgspec.msgpack.encode(interval)
        after.set(values, msgspec.msgpack.decode(body, type=Interval))
    assert wanted == answers + [after.take(values, time, throttle) for values, time in results[cut:]]
    assert whole.intervals == after.intervals


def test_repeats_are_recognised_by_their_place() -> None:
    """After a replay, results come again with the same places; numbers tell the results of an event apart."""
    state = Throttling()
    assert not state.is_repeat("0/quotes", (0, 0))
    assert [False, True, True, False] == [
        state.is_repeat("0/quotes", mark) for mark in ((5, 0), (5, 0), (4, 9), (5, 1))
    ]
    assert not state.is_repeat("1/quotes", (0, 0))


def test_old_intervals_are_forgotten_unless_results_are_untold() -> None:
    """A day after its end an interval goes; with suppressed results it stays until they are told."""
    throttle, state = Throttle(1, timedelta(hours=1)), Throttling()
    for values in (b"told", b"untold", b"untold"):
        state.take(values, 0, throttle)
    hour_ms = 3_600_000
    assert [] == state.forget_old(_DAY_MS + hour_ms - 1, throttle)
    assert [b"told"] == state.forget_old(_DAY_MS + hour_ms, throttle)
    assert [b"untold"] == list(state.intervals)
    assert 1 == state.take(b"untold", 9 * _DAY_MS, throttle)
    assert [b"untold"] == state.forget_old(11 * _DAY_MS, throttle)


def test_very_many_values_are_forgotten_as_fast_as_they_come() -> None:
    """A destination whose BY has ever new values keeps those of a day."""
    throttle, state = Throttle(1, timedelta(hours=1)), Throttling()
    for number in range(2_000):
        state.take(b"%d" % number, number * 600_000, throttle)
        state.forget_old(number * 600_000, throttle)
    assert len(state.intervals) <= 25 * 6 + 2


_rows = st.fixed_dictionaries(
    {"a": st.none() | st.text(max_size=3) | st.integers(0, 9), "b": st.booleans() | st.floats(0, 1), "c": st.integers()}
)


@given(_rows, _rows)
def test_values_are_equal_exactly_if_the_columns_are(one: dict[str, object], other: dict[str, object]) -> None:
    """Other columns do not matter, and a text is no number, no NULL and no other text."""
    texts = [json.dumps(row).encode() for row in (one, other)]
    equal = values_of(texts[0], ("b", "a")) == values_of(texts[1], ("b", "a"))
    assert equal == (json.dumps([one["a"], one["b"]]) == json.dumps([other["a"], other["b"]]))
    assert values_of(texts[0], ()) == values_of(texts[1], ())
