"""Keys that enter and stay in for an interval, against a fold of single events for each query."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grouping.model.errors import InternalError
from spark_jobs.engine.operators.lasting.pending_rises import PendingRises
from tests.unit.matching.matching import destination
from tests.unit.operators.lasting_queries import (
    CUTS,
    FORMS,
    MARKS,
    STREAM,
    Asked,
    Form,
    Row,
    expected,
    operator_of,
    queries_of,
    rows_of,
    run,
    tables_of,
)
from tests.unit.operators.timed_rows import timed_events


@settings(max_examples=200, deadline=None)
@given(FORMS, st.data(), CUTS, MARKS, st.sampled_from(["", "snapshot", "changes"]), st.sampled_from([1, 4_000_000]))
def test_any_cutting_makes_the_same_results(
    form: Form, data: st.DataObject, cuts: list[int], marks: dict[int, int], stored: str, limit: int
) -> None:
    """Steps of any size tell what a fold over single events tells, with the state kept as it is or as bytes."""
    rows, queries = data.draw(rows_of(form.column)), data.draw(queries_of(form))
    marks = {offset: watermark for offset, watermark in marks.items() if offset < len(rows)}
    tables = tables_of(form, queries, single=data.draw(st.booleans()))
    one = operator_of(form, tables)
    _, found = run(one, PendingRises(), tables, rows, cuts, marks, limit=limit, stored=stored)
    assert sorted(found) == expected(form, queries, rows, marks)


@settings(max_examples=100, deadline=None)
@given(FORMS, st.data(), st.integers(0, 20), CUTS, MARKS)
def test_an_undone_task_leaves_no_trace(
    form: Form, data: st.DataObject, split: int, cuts: list[int], marks: dict[int, int]
) -> None:
    """A task that is carried out again tells the same, and so does one after a fold of all that came before."""
    rows, queries = data.draw(rows_of(form.column)), data.draw(queries_of(form))
    marks = {offset: watermark for offset, watermark in marks.items() if offset < len(rows)}
    tables, split = tables_of(form, queries, single=False), min(split, len(rows))
    one, wanted = operator_of(form, tables), expected(form, queries, rows, marks)
    early = {at: mark for at, mark in marks.items() if at < split}
    state, earlier = run(one, PendingRises(), tables, rows[:split], (), early)
    state.position = split
    state.begin()
    for again in ((), cuts):
        _, found = run(one, state, tables, rows[split:], again, marks, split)
        assert sorted(earlier + found) == wanted
        state.undo()
    folded = PendingRises()
    known = sorted(early)
    folded.marks = np.array(known, np.int64), np.array([early[at] * 1000 for at in known], np.int64)
    for begin in range(0, split, 7):
        one.fold(folded, timed_events(STREAM, rows[:split][begin : begin + 7], begin))
        folded.position = min(begin + 7, split)
    assert (folded.watermark, folded.rises.count, folded.late) == (state.watermark, state.rises.count, state.late)
    _, found = run(one, folded, tables, rows[split:], cuts, marks, split)
    assert sorted(earlier + found) == wanted


def _hot(*rows: tuple[str, float, int]) -> list[Row]:
    return [{"k": key, "p": value, "at": at} for key, value, at in rows]


HOT = Form("p", ">", keyed=False, below=False)


def test_a_rise_meets_the_constants_between_two_values() -> None:
    """The lowest value of the interval decides for how many of a hundred thresholds a key has stayed in."""
    queries = [Asked(float(at), "", 0, None) for at in range(100)]
    tables = tables_of(HOT, queries, single=True)
    rows = _hot(("a", 20.5, 0), ("a", 50.5, 1), ("a", 40.5, 5), ("a", 70.5, 11), ("b", 0.0, 60))
    _, found = run(operator_of(HOT, tables), PendingRises(), tables, rows, (), {})
    counts = {offset: sum(each[1] == offset for each in found) for offset in range(5)}
    assert counts == {0: 21, 1: 20, 2: 0, 3: 30, 4: 0}


def test_the_end_of_the_interval_counts() -> None:
    """An event at the end of the interval ends the stay; a watermark that stands there tells nothing yet."""
    tables = tables_of(HOT, [Asked(1.0, "", 0, None)], single=False)
    one = operator_of(HOT, tables)
    for low, stays in ((10, []), (11, [(10, 0, destination(0), "enter")])):
        rows = _hot(("a", 2.0, 0), ("b", 0.0, 12), ("a", 0.0, low), ("b", 0.0, 90))
        _, found = run(one, PendingRises(), tables, rows, (2,), {})
        assert found == stays


@pytest.mark.parametrize("cuts", [(), (1, 2, 3), (3,)])
def test_exits_follow_stays_that_lasted(cuts: tuple[int, ...]) -> None:
    """Each stay decides for itself: one that began later by event time, and one that a late row within it ends."""
    queries = [Asked(at, "", 0, None, "both") for at in (0.5, 1.5)]
    tables = tables_of(HOT, queries, single=False)
    for begin, wanted in (
        (_hot(("a", 1.0, 22), ("a", 2.0, 20), ("b", 0.0, 33), ("a", 0.0, 33)), [[0, 3], [1, 3]]),
        (_hot(("a", 1.0, 21), ("a", 2.0, 20), ("a", 0.0, 31), ("b", 0.0, 32)), [[], [1, 2]]),
        (_hot(("a", 2.0, 20), ("a", 0.0, 31), ("a", 1.0, 30), ("b", 0.0, 32)), [[0, 1, 2], []]),
        (_hot(("a", 2.0, 20), ("a", 0.0, 31), ("a", 0.0, 30), ("b", 0.0, 32)), [[], []]),
        (_hot(("a", 1.0, 20), ("b", 0.0, 40), ("a", 2.0, 40), ("a", 1.2, 41), ("a", 0.0, 60)), [[0, 4], []]),
    ):
        rows = [*begin, *_hot(("b", 0.0, 90))]
        _, found = run(operator_of(HOT, tables), PendingRises(), tables, rows, cuts, {})
        assert sorted(found) == expected(HOT, queries, rows, {})
        found.sort()
        assert [[each[1] for each in found if each[2] == destination(at)] for at in range(2)] == wanted


@pytest.mark.parametrize("cuts", [(), (1, 2, 3), (3,)])
def test_exits_of_stays_with_until(cuts: tuple[int, ...]) -> None:
    """A stay goes on between the two constants; exits follow the stays that lasted, each by its own begin."""
    form = Form("p", ">", keyed=False, below=False, until="<")
    queries = [Asked(begin, "", 0, None, "both", end) for begin, end in ((0.5, 0.0), (1.5, 1.0))]
    tables = tables_of(form, queries, single=False)
    for begin, wanted in (
        (_hot(("a", 1.0, 22), ("a", 2.0, 20), ("b", 0.0, 33), ("a", -1.0, 33)), [[0, 3], [1, 3]]),
        (_hot(("a", 2.0, 20), ("a", 0.2, 25), ("a", 0.3, 35), ("a", -1.0, 40)), [[0, 3], []]),
        (_hot(("a", 2.0, 20), ("a", -1.0, 31), ("a", 0.2, 30), ("b", 0.0, 32)), [[0, 1], []]),
        (_hot(("a", 2.0, 20), ("a", 1.2, 21), ("a", 3.0, 40), ("a", 0.2, 41), ("a", -1.0, 60)), [[0, 4], [0, 3]]),
    ):
        rows = [*begin, *_hot(("b", 0.0, 90))]
        _, found = run(operator_of(form, tables), PendingRises(), tables, rows, cuts, {})
        assert sorted(found) == expected(form, queries, rows, {})
        found.sort()
        assert [[each[1] for each in found if each[2] == destination(at)] for at in range(2)] == wanted


def test_rises_and_keys_without_matches_leave_the_state() -> None:
    """Old matches without a rise leave the state, and the memory of their keys goes; in a fold of the log, too."""
    tables = tables_of(HOT, [Asked(1.0, "", 0, None)], single=False)
    one, state, folded = operator_of(HOT, tables), PendingRises(), PendingRises()
    for first in range(0, 40_000, 4_000):
        rows = _hot(*((f"k{first + place}", 2.0, first) for place in range(4_000)))
        _, _ = one.step(state, timed_events(STREAM, rows, first))
        state.position = first + 4_000
        state.begin()
        one.fold(folded, timed_events(STREAM, rows, first))
    assert folded.count <= 8_000
    assert state.rows <= 12_000  # 4,000 rises that wait, and the last matches of two steps
    assert state.count <= 8_000
    assert state.nbytes < 3_000_000


@pytest.mark.parametrize("form", [HOT, HOT._replace(until="<")])
def test_a_value_that_wavers_keeps_few_rises(form: Form) -> None:
    """Rises that no constants can have any more leave the state at once."""
    tables = tables_of(form, [Asked(1.0, "", 0, None, end=0.0)], single=False)
    one, state = operator_of(form, tables), PendingRises()
    values = np.random.default_rng(7).normal(size=2_000)
    rows = _hot(*(("a", float(value), 0) for value in values))
    one.step(state, timed_events(STREAM, rows, 0))
    assert state.rows <= 50


def test_a_torn_state_is_not_used() -> None:
    """A state after a change that failed midway makes no rows."""
    state = PendingRises()
    state.torn = True
    with pytest.raises(InternalError):
        operator_of(HOT, tables_of(HOT, [Asked(1.0, "", 0, None)], single=False)).step(
            state, timed_events(STREAM, [], 0)
        )


def test_other_bytes_are_no_state() -> None:
    """A snapshot of another version or a torn one is refused."""
    stored = PendingRises().stored()
    for broken in (b"lasting 1\n" + stored[10:], stored[:-1], b""):
        with pytest.raises(ValueError, match="no whole snapshot"):
            PendingRises.restored(broken)
