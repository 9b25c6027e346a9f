"""The intervals of AT MOST beside a plain count over the list of all results, and their state on `cq.throttles`."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.kafka import OutgoingRecord, Record
from gateway.throttling.intervals import ThrottleState
from gateway.throttling.throttle_log import ThrottleLog
from grouping.model.ids import DestinationId
from grouping.model.trigger import Throttle
from grouping.settings.limit_settings import LimitSettings
from grouping.settings.settings import Settings

_HOUR_MS, _DAY_MS = 3_600_000, 86_400_000
_HOURLY = Throttle(1, timedelta(hours=1))
_results = st.lists(st.tuples(st.sampled_from((b"a", b"b")), st.integers(0, 100)), max_size=60)


def _expected(results: list[tuple[bytes, int]], most: int, every: int) -> list[int | None]:
    """Return the answer for each result: begin a list of results when an interval begins, and count in the list."""
    lists: dict[bytes, list[int]] = {}
    left = {b"a": 0, b"b": 0}
    answers: list[int | None] = []
    for values, time in results:
        own = lists.get(values)
        if own is None or time - own[0] >= every or own[0] - time >= every:
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
    throttle, state = Throttle(most, timedelta(milliseconds=every)), ThrottleState()
    answers = [state.take(values, time, 0, throttle) for values, time in results]
    assert _expected(results, most, every) == answers
    sums = sum(answer for answer in answers if answer is not None)
    assert answers.count(None) == sums + sum(each.suppressed for each in state.intervals.values())


def test_a_single_wrong_time_holds_back_no_later_result() -> None:
    """A result of the year 2100 begins an interval, and the next result of today another."""
    state = ThrottleState()
    hours = (0, 700_000, 0.5, 1.5, 700_000, 2)
    assert [0, 0, 0, 0, 0, 0] == [state.take(b"", int(hour * _HOUR_MS), 0, _HOURLY) for hour in hours]
    assert [None, None] == [state.take(b"", int(hour * _HOUR_MS), 0, _HOURLY) for hour in (2.9, 1.1)]


def test_repeats_are_recognised_by_their_place() -> None:
    """After a replay, results come again with the same places; numbers tell the results of an event apart."""
    state = ThrottleState()
    assert not state.is_repeat("0/quotes", (0, 0))
    places = (5, 0), (5, 0), (4, 9), (5, 1)
    assert [False, True, True, False] == [state.is_repeat("0/quotes", place) for place in places]
    assert not state.is_repeat("1/quotes", (0, 0))


def test_old_intervals_are_forgotten_unless_results_are_untold() -> None:
    """A day after its end an interval goes; with suppressed results it stays until they are told."""
    state = ThrottleState()
    for values in (b"told", b"untold", b"untold"):
        state.take(values, 0, 0, _HOURLY)
    assert [] == state.forget_old(_DAY_MS + _HOUR_MS - 1, _HOURLY)
    assert [b"told"] == state.forget_old(_DAY_MS + _HOUR_MS, _HOURLY)
    assert [b"untold"] == list(state.intervals)
    assert 1 == state.take(b"untold", 9 * _DAY_MS, 9 * _DAY_MS, _HOURLY)
    assert [b"untold"] == state.forget_old(11 * _DAY_MS, _HOURLY)


def test_very_many_values_are_forgotten_as_fast_as_they_come() -> None:
    """A destination whose BY has ever new values keeps those of a day, whatever their times."""
    chance, state = random.Random(1), ThrottleState()
    for number in range(2_000):
        came_ms = number * 600_000
        state.take(b"%d" % number, chance.randrange(_DAY_MS * 1000), came_ms, _HOURLY)
        state.forget_old(came_ms, _HOURLY)
    assert len(state.intervals) <= 25 * 6 + 2


class _Topic:
    """A compacted topic: the last record of each key, in the order of writing."""

    def __init__(self) -> None:
        self._rows: dict[bytes | None, bytes | None] = {}

    def write(self, records: list[OutgoingRecord]) -> None:
        for record in records:
            self._rows.pop(record.key, None)
            self._rows[record.key] = record.value

    def records(self) -> list[Record]:
        return [Record("cq.throttles", 0, 0, 0, key, value, ()) for key, value in self._rows.items()]


def _log(most: int) -> ThrottleLog:
    return ThrottleLog(Settings(limits=LimitSettings(throttled_values=most)))


@pytest.mark.parametrize("seed", range(40))
def test_a_gateway_that_takes_over_decides_alike(seed: int) -> None:
    """Steps that were decided and not written are decided again; intervals are forgotten in the same order."""
    chance = random.Random(seed)
    throttles = {DestinationId(f"d_{n}"): Throttle(chance.randint(1, 2), timedelta(hours=1), ("a",)) for n in range(2)}
    results = []
    position = came_ms = 0
    for _ in range(200):
        came_ms += chance.choice((0, 600_000, _HOUR_MS, 20_000_000))
        position += chance.choice((0, 1, 1, 1, -1))
        where = chance.choice(list(throttles)), chance.choice(("0/s", "1/s")), (position, chance.randint(0, 1))
        results.append((*where, b"%d" % chance.randrange(30), came_ms - chance.choice((0, 0, 90_000_000)), came_ms))

    def decided(log: ThrottleLog, first: int, end: int) -> list[int | None | str]:
        return [
            "repeat" if log.is_repeat(name, source, place) else log.take(name, values, time_ms, at_ms, throttles[name])
            for name, source, place, values, time_ms, at_ms in results[first:end]
        ]

    most = chance.choice((1_000, 1_000, 100))
    alone = _log(1_000)
    wanted = decided(alone, 0, len(results))
    topic, log = _Topic(), _log(most)
    found: list[int | None | str] = []
    while len(found) < len(results):
        first, end = len(found), len(found) + chance.randint(1, 20)
        some = decided(log, first, end)
        if chance.random() < 0.3:  # the gateway dies before the state is written
            log = _log(most)
            log.recover(topic.records())
            continue
        topic.write(list(log.changes({3: end})))
        found += some
        if chance.random() < 0.3:
            log = _log(most)
            assert {3: end} == log.recover(topic.records())
    assert wanted == found


def test_the_oldest_intervals_of_the_largest_go_first() -> None:
    """Beyond the setting's number, the destination with the most values loses its oldest; others lose nothing."""
    log, topic = _log(100), _Topic()
    small, large = DestinationId("d_1"), DestinationId("d_2")
    for number in range(20):
        log.take(small, b"%d" % number, 0, 0, _HOURLY)
    for number in range(200):
        log.take(large, b"%d" % number, 0, 0, _HOURLY)
        topic.write(list(log.changes({})))
    assert [None] * 20 == [log.take(small, b"%d" % number, 1, 1, _HOURLY) for number in range(20)]
    assert None is log.take(large, b"199", 1, 1, _HOURLY)
    assert 0 == log.take(large, b"0", 1, 1, _HOURLY)
    kept = [record for record in topic.records() if record.value is not None]
    assert 90 < len(kept) <= 101


def test_a_forgotten_destination_leaves_nothing() -> None:
    """The records of an ended destination are deleted, those of others stay."""
    log, topic = _log(100), _Topic()
    for name in ("d_1", "d_2"):
        log.is_repeat(DestinationId(name), "0/s", (1, 0))
        log.take(DestinationId(name), b"a", 0, 0, _HOURLY)
    topic.write([*log.changes({}), *log.forget(DestinationId("d_1"))])
    assert 2 == sum(record.value is not None for record in topic.records())
    again = _log(100)
    again.recover(topic.records())
    assert not again.is_repeat(DestinationId("d_1"), "0/s", (1, 0))
    assert again.is_repeat(DestinationId("d_2"), "0/s", (1, 0))
