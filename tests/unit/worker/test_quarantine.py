"""Which share of the queries killed a worker: found in few deaths, and nobody is convicted by chance."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from grouping.model.ids import Subscriber
from grouping.store.quarantine import TRIES, Quarantine, Trial, convicted
from spark_jobs.driver.trials import dead_task
from spark_jobs.isolation.caution import Caution

_MINUTE, _HOUR = 60_000, 3_600_000


def _in_hand_at_death(trial: Trial, shares: list[str], deadly: str) -> list[str]:
    """Return what a worker has in hand when it comes to the deadly share."""
    if not trial.careful:
        return []
    division = Caution(suspects=trial.suspects).divide(shares, ())
    return [] if deadly in division.together else next(lot for lot in division.apart if deadly in lot)


@given(st.integers(1, 3000), st.data())
def test_the_guilty_is_convicted(count: int, data: st.DataObject) -> None:
    """After three deaths each one leaves a thirty-second of the suspects; one more is the proof."""
    shares = [f"g_{number}" for number in range(count)]
    deadly = data.draw(st.sampled_from(shares))
    trial, deaths = Trial(), 0
    while True:
        deaths += 1
        in_hand = _in_hand_at_death(trial, shares, deadly)
        shares_at_fault = convicted(trial, in_hand, {})
        if shares_at_fault:
            break
        trial = trial.after_death(in_hand)
    assert [deadly] == shares_at_fault
    assert deaths <= TRIES + max(1, math.ceil(math.log(count, 32) - 1e-9)) + 1


def test_a_worker_that_somebody_killed_convicts_nobody() -> None:
    """A share that was in hand by chance at one death is not left out; deaths with nothing in hand tell nothing."""
    trial = Trial(TRIES)
    assert () == convicted(trial, ["g_1"], {})
    trial = trial.after_death(["g_1"])
    assert () == convicted(trial, ["g_2"], {})
    assert Trial(TRIES + 2) == trial.after_death([])


def test_a_worker_that_hung_is_not_waited_for_again() -> None:
    """Shares are evaluated apart from the next try on, whatever the worker dies of then."""
    trial = Trial().after_death([], hung=True)
    assert trial.careful
    assert trial.after_death(["g_1"]).careful
    assert not Trial().after_death([]).careful


def test_who_was_convicted_before_is_convicted_at_once() -> None:
    """What kills a worker again once it is tried again need not do so three times more."""
    known = {"g_1": Quarantine.of_conviction(0, None), "g_2": Quarantine.of_fault("it failed", 0, None)}
    assert ["g_1"] == convicted(Trial(), ["g_1"], known)
    assert () == convicted(Trial(), ["g_2"], known)


def test_the_groups_of_a_join_that_kills_are_convicted_together() -> None:
    """They are in hand together again at the next death; suspects of whom some were at a death alone are not."""
    trial = Trial(TRIES)
    assert () == convicted(trial, ["g_1", "g_2"], {})
    trial = trial.after_death(["g_1", "g_2"])
    assert ["g_2", "g_1"] == convicted(trial, ["g_2", "g_1"], {})
    assert () == convicted(trial, ["g_1"], {})
    assert () == convicted(trial, ["g_1", "g_2", "g_3"], {})


def test_quarantine_lasts_longer_each_time() -> None:
    """A minute at first, twice as long each time, an hour at most; it is remembered for an hour more."""
    state = Quarantine.of_conviction(0, None)
    assert state.leaves_out(_MINUTE - 1) and not state.leaves_out(_MINUTE)
    again = Quarantine.of_conviction(_MINUTE, state)
    assert (0, _MINUTE + 2 * _MINUTE, 2) == (again.since_ms, again.until_ms, again.deaths)
    for _ in range(10):
        again = Quarantine.of_conviction(0, again)
    assert _HOUR == again.until_ms
    assert not again.is_over(2 * _HOUR - 1) and again.is_over(2 * _HOUR)


def test_a_strike_outlives_a_fault() -> None:
    """A share that raises after it was convicted still counts against who made it."""
    state = Quarantine.of_conviction(0, None, founder=Subscriber("mallory"))
    assert "mallory" == Quarantine.of_fault("it failed", _MINUTE, state).founder


def test_what_raises_is_tried_with_every_batch() -> None:
    """A fault is told for a minute after the last time, since the first of them; it does not end a quarantine."""
    first = Quarantine.of_fault("it failed", 0, None)
    again = Quarantine.of_fault("it failed", _MINUTE - 1, first)
    assert (0, 2 * _MINUTE - 1) == (again.since_ms, again.until_ms)
    assert 3 * _MINUTE == Quarantine.of_fault("it failed", 3 * _MINUTE, again).since_ms
    assert not again.leaves_out(_MINUTE)
    dead = Quarantine.of_conviction(0, None)
    assert 1 == Quarantine.of_fault("it failed", 2 * _MINUTE, dead).deaths


def test_the_task_that_died_first_is_the_one() -> None:
    """A worker that raised is no dead one, and a failure without a task has no number."""
    crashed = "Job aborted due to stage failure: Task 1 in stage 5.0 failed 1 times, most recent failure: Lost task 1.0"
    assert 1 == dead_task(f"{crashed}: org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)")
    assert dead_task(f"{crashed}: PythonException: Traceback (most recent call last):\n ...") is None
    assert dead_task("It stopped.") is None
    overflow = (
        "java.lang.ArithmeticException: long overflow\n\tat org.apache.spark.sql.kafka010.KafkaRecordToRowConverter"
    )
    assert dead_task(f"{crashed}: {overflow}") is None
