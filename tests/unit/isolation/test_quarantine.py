"""The work unit that killed a worker is found in few deaths, and none is quarantined by chance."""

from __future__ import annotations

import math

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from grouping.model.ids import Subscriber
from grouping.store.quarantine import CulpritSearch, Quarantine, culprits, sole_user
from spark_jobs.engine.isolation.unit_selection import UnitSelection
from spark_jobs.runtime.streams.worker_deaths import dead_task

_MINUTE, _HOUR = 60_000, 3_600_000


def _marked_at_death(search: CulpritSearch, units: list[str], deadly: str) -> list[str]:
    """Return the units marked by a worker on its way to the deadly unit."""
    if not search.careful:
        return []
    division = UnitSelection(suspects=search.suspects).divide(units, ())
    return [] if deadly in division.together else next(lot for lot in division.apart if deadly in lot)


@given(st.integers(1, 3000), st.data())
def test_the_culprit_is_found(count: int, data: st.DataObject) -> None:
    """After the first death each further death leaves a thirty-second of the suspects; a last death is the proof."""
    units = [f"g_{number}" for number in range(count)]
    deadly = data.draw(st.sampled_from(units))
    search, deaths = CulpritSearch(), 0
    while True:
        deaths += 1
        marked = _marked_at_death(search, units, deadly)
        found = culprits(search, marked, {}) if marked else ()
        if found:
            break
        search = search.after_death(marked)
    assert [deadly] == found
    assert deaths <= 2 + max(1, math.ceil(math.log(count, 32) - 1e-9))


def test_a_worker_that_somebody_killed_quarantines_nothing() -> None:
    """A unit that was marked by chance at one death is not left out; deaths without marks tell nothing."""
    search = CulpritSearch(1)
    assert () == culprits(search, ["g_1"], {})
    search = search.after_death(["g_1"])
    assert () == culprits(search, ["g_2"], {})
    assert CulpritSearch(3) == search.after_death([])
    assert not culprits(CulpritSearch(3), [], {})


def test_a_unit_that_was_quarantined_before_is_at_once() -> None:
    """A unit that kills a worker again once it is tried again need not do so three times more."""
    known = {"g_1": Quarantine.begun(0, None), "g_2": Quarantine.of_fault("it failed", 0, None)}
    assert ["g_1"] == culprits(CulpritSearch(), ["g_1"], known)
    assert () == culprits(CulpritSearch(), ["g_2"], known)


def test_the_groups_of_a_join_that_kills_are_quarantined_together() -> None:
    """They are marked together again at the next death; suspects of whom some were at a death alone are not."""
    search = CulpritSearch(1)
    assert () == culprits(search, ["g_1", "g_2"], {})
    search = search.after_death(["g_1", "g_2"])
    assert ["g_2", "g_1"] == culprits(search, ["g_2", "g_1"], {})
    assert () == culprits(search, ["g_1"], {})
    assert () == culprits(search, ["g_1", "g_2", "g_3"], {})


def test_quarantine_lasts_longer_each_time() -> None:
    """A minute at first, twice as long each time, an hour at most; it is remembered for an hour more."""
    state = Quarantine.begun(0, None)
    assert state.leaves_out(_MINUTE - 1) and not state.leaves_out(_MINUTE)
    again = Quarantine.begun(_MINUTE, state)
    assert (0, _MINUTE + 2 * _MINUTE, 2) == (again.since_ms, again.until_ms, again.times)
    for _ in range(10):
        again = Quarantine.begun(0, again)
    assert _HOUR == again.until_ms
    assert not again.is_over(2 * _HOUR - 1) and again.is_over(2 * _HOUR)


def test_a_quarantine_outlives_a_fault() -> None:
    """A unit that raises after it was quarantined still counts for its user."""
    state = Quarantine.begun(0, None, user=Subscriber("mallory"))
    assert "mallory" == Quarantine.of_fault("it failed", _MINUTE, state).user


def test_what_raises_is_tried_with_every_batch() -> None:
    """A fault is told for a minute after the last time, since the first of them; it does not end a quarantine."""
    first = Quarantine.of_fault("it failed", 0, None)
    again = Quarantine.of_fault("it failed", _MINUTE - 1, first)
    assert (0, 2 * _MINUTE - 1) == (again.since_ms, again.until_ms)
    assert 3 * _MINUTE == Quarantine.of_fault("it failed", 3 * _MINUTE, again).since_ms
    assert not again.leaves_out(_MINUTE)
    dead = Quarantine.begun(0, None)
    assert 1 == Quarantine.of_fault("it failed", 2 * _MINUTE, dead).times


def test_the_task_that_died_first_is_the_one() -> None:
    """A worker that raised is no dead one, and a failure without a task has no number."""
    crashed = "Job aborted due to stage failure: Task 1 in stage 5.0 failed 1 times, most recent failure: Lost task 1.0"
    assert 1 == dead_task(f"{crashed}: org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)")
    assert dead_task(f"{crashed}: PythonException: Traceback (most recent call last):\n ...") is None
    assert dead_task("It stopped.") is None
    overflow = "Record at topic q partition 0\n\tat org.apache.spark.sql.kafka010.KafkaExceptions$"
    assert dead_task(f"{crashed}: {overflow}") is None


def test_notes_of_earlier_versions_are_read() -> None:
    """A folder may hold quarantines, searches and users as they were written before."""
    body = b'{"since_ms":1,"until_ms":2,"reason":"it took too much CPU time","deaths":3,"founder":"mallory"}'
    state = msgspec.json.decode(body, type=Quarantine)
    assert (3, "mallory", body) == (state.times, state.user, msgspec.json.encode(state))
    search = msgspec.json.decode(b'{"deaths":4,"suspects":["g_1"],"hung":true}', type=CulpritSearch)
    assert CulpritSearch(4, ("g_1",)) == search
    assert ["alice", "", ""] == [sole_user(text) for text in (b"=alice", b"&alice\0bob", b"+alice")]
