"""A work unit that fails, a group or a SELECT list of a group, fails alone."""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grouping.model.expression import Call, Column, Expression, Slot
from grouping.plan.computation import Computation
from grouping.plan.group import GroupPlan, SelectItem, SelectList
from grouping.plan.lookup_join import JoinKey, LookupJoin
from grouping.store.work_units import KILLED, unit_of
from spark_jobs.engine.constants.constant_cache import ConstantTables, Snapshot
from spark_jobs.engine.decode.decode import decode
from spark_jobs.engine.isolation.not_evaluated import NotEvaluatedLetters
from spark_jobs.engine.isolation.unit_guard import UnitGuard
from spark_jobs.engine.isolation.unit_selection import UnitSelection
from spark_jobs.engine.match.residual import evaluate_expression
from spark_jobs.engine.results.split import split
from spark_jobs.engine.rows.cpu_budget import CpuBudget, CpuExceeded
from spark_jobs.engine.rows.events import Events
from spark_jobs.engine.rows.matches import Matches
from spark_jobs.engine.rows.output import dead_letter_code
from tests.unit.isolation.tasks import records_of, task_of
from tests.unit.matching.event_batches import FIRST_OFFSET, SETTINGS, batch, header, stream
from tests.unit.matching.matching import Store, apart, compare, destination, entry

_STREAM = stream("a INT")
_A = Column("a", "INT")
_NONSENSE = Call("nonsense", (_A,), "BOOLEAN")
"""An expression without an implementation: its evaluation raises, like a fault of ours."""
_KEY = compare("a", "=", "INT", 0)
_BAD_SELECT = "s_bad"


class _Tables(Store):
    """Tables of groups `g_0`, `g_1`, …, some of which raise, each with two SELECT lists, perhaps one faulty."""

    def selects(self, stream_id: str, ids: list[str]) -> dict[str, SelectList]:
        """Return SELECT lists of the column `a`, and of nonsense."""
        wanted: dict[str, Expression] = {name: _NONSENSE if name == _BAD_SELECT else _A for name in ids}
        return {name: SelectList(name, (SelectItem("a", item),)) for name, item in wanted.items()}


def _snapshot(groups: int, failing: Collection[int] = (), selects: Collection[str] = ("s_1",)) -> Snapshot:
    """Return tables in which every event meets every group, with a destination for each SELECT list."""
    store = _Tables()
    entries = []
    for number in range(groups):
        group = f"g_{number}"
        residual = Call("nonsense", (Slot(1),), "BOOLEAN") if number in failing else compare("a", "<", "INT", 1)
        store.known_plans[group] = GroupPlan(group, "s", "", (_KEY, residual))
        types, values = ("BIGINT", "BIGINT"), (1, 2)
        for select in selects:
            entries.append(entry(f"{group} {select}", types, values, group=group, select=select))
    return ConstantTables("s").at(store.commit((), entries), store)


def _events(count: int) -> Events:
    """Return events that all groups look for, between events for no group."""
    events, _ = decode(batch([b'{"a": %d}' % (1 - row % 2) for row in range(count)]), _STREAM, SETTINGS)
    return events


def _write(events: Events, found: Matches) -> Iterable[pa.RecordBatch]:
    return split(events, found, _STREAM, SETTINGS, evaluate_expression)


def _guard(selection: UnitSelection | None = None, failed: set[str] | None = None) -> UnitGuard:
    letters = NotEvaluatedLetters(_STREAM, SETTINGS)
    failed = set() if failed is None else failed
    return UnitGuard(selection or UnitSelection(), letters, failed, CpuBudget(math.inf))


def _evaluated(
    snapshot: Snapshot, events: Events, selection: UnitSelection | None = None, failed: set[str] | None = None
) -> tuple[dict[str, list[int]], list[tuple[int, str]]]:
    """Return by destination the offsets of its results in order, repeats left out; and offset and detail of letters."""
    guard = _guard(selection, failed)
    task = task_of(_STREAM, guard, snapshot)
    results: dict[str, list[int]] = {}
    letters = []
    for rows in records_of(task, events):
        for row in rows.to_pylist():
            if dead_letter_code(rows) is not None:
                assert "not-evaluated" == header(row, "code") == dead_letter_code(rows)
                letters.append((int(header(row, "source").split("/")[2]), header(row, "detail")))
                continue
            offset = int(header(row, "ce_id").split("/")[2])
            seen = results.setdefault(row["key"].decode(), [])
            if not seen or offset > seen[-1]:  # as the SDK's reader does
                seen.append(offset)
    return results, letters


def _wanted(count: int) -> list[int]:
    return list(range(FIRST_OFFSET, FIRST_OFFSET + count, 2))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n - 1)))), st.booleans())
def test_groups_that_raise_are_left_out_alone(drawn: tuple[int, set[int]], alone: bool) -> None:
    """Whichever groups raise, in a shared index or not: the others have all results in order."""
    groups, failing = drawn
    snapshot = _snapshot(groups, failing)
    results, letters = _evaluated(apart(snapshot) if alone else snapshot, _events(6))
    assert {destination(f"g_{n} s_1"): _wanted(6) for n in range(groups) if n not in failing} == results
    expected = [(offset, f'Group "g_{n}" was not evaluated') for n in sorted(failing) for offset in _wanted(6)]
    assert sorted(expected) == sorted((offset, detail.split(" for this event")[0]) for offset, detail in letters)


def test_a_select_list_that_raises_is_left_out_alone() -> None:
    """A CQ's output must not harm the other CQs of its group."""
    results, letters = _evaluated(_snapshot(3, selects=("s_1", _BAD_SELECT, "s_2")), _events(4))
    expected = {destination(f"g_{n} {select}"): _wanted(4) for n in range(3) for select in ("s_1", "s_2")}
    assert expected == results
    assert sorted(_wanted(4) * 3) == sorted(offset for offset, _ in letters)
    assert all('SELECT list "s_bad" of group "g_' in detail for _, detail in letters)


def test_a_group_whose_index_cannot_be_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """The group is left out like a group whose predicate raises; the tables of the others are loaded."""

    def fail(*_: object) -> None:
        raise MemoryError

    healthy = _snapshot(1)
    monkeypatch.setattr("spark_jobs.engine.constants.constant_part.lookup_of", fail)
    results, letters = _evaluated(replace(healthy, tables=(*healthy.tables, *_unbundled().tables)), _events(4))
    assert {destination("g_0 s_1"): _wanted(4)} == results
    assert list(range(FIRST_OFFSET, FIRST_OFFSET + 4)) == [offset for offset, _ in letters]


def _unbundled() -> Snapshot:
    """Return the table of a group that has an index of its own although small."""
    store = _Tables()
    store.known_plans["g_range"] = GroupPlan("g_range", "s", "", (compare("a", ">", "INT", 0),))
    return ConstantTables("s").at(store.commit((), [entry("r", ("BIGINT",), (0,), group="g_range")]), store)


def test_a_letter_tells_no_constant_and_no_stack_trace() -> None:
    """The detail names the group and the kind of failure alone."""
    _, [(_, detail)] = _evaluated(_snapshot(1, [0]), _events(1))
    assert 'Group "g_0" was not evaluated for this event: it failed with InternalError.' == detail


def test_what_failed_before_is_evaluated_after_the_others(caplog: pytest.LogCaptureFixture) -> None:
    """A worker finds a fault once: the next events of the others are written once, and the log says it once."""
    snapshot, failed = _snapshot(8, [3]), set[str]()
    with caplog.at_level(logging.ERROR):
        for _ in range(2):
            results, letters = _evaluated(snapshot, _events(2), failed=failed)
    assert {"g_3"} == failed
    assert ["g_3"] == [record.unit for record in caplog.records]  # type: ignore[attr-defined]
    assert (7, 1) == (len(results), len(letters))
    task = task_of(_STREAM, _guard(failed=failed), snapshot)
    written = [rows.num_rows for rows in records_of(task, _events(2)) if dead_letter_code(rows) is None]
    assert 7 == sum(written)


def test_dead_letters_of_a_task_are_bounded() -> None:
    """A thousand name an event each; of further events one names how many, from where to where."""
    results, letters = _evaluated(_snapshot(2, [0]), _events(5000))
    assert _wanted(5000) == results[destination("g_1 s_1")]
    assert 1001 == len(letters)
    first = _wanted(5000)[1000]
    assert (first, f"1500 events from offset {first} to {_wanted(5000)[-1]}") == (
        letters[-1][0],
        letters[-1][1].split("evaluated for ")[1].split(":")[0],
    )


def test_what_killed_workers_is_not_tried() -> None:
    """A group left out gets a letter for every event; a SELECT list, for each event of its group."""
    snapshot = _snapshot(3, selects=("s_1", "s_2"))
    results, letters = _evaluated(
        snapshot, _events(4), UnitSelection(dict.fromkeys(("g_0", unit_of("g_1", "s_2")), KILLED))
    )
    assert {destination(name): _wanted(4) for name in ("g_1 s_1", "g_2 s_1", "g_2 s_2")} == results
    of_group = [offset for offset, detail in letters if detail.startswith('Group "g_0" ')]
    of_select = [offset for offset, detail in letters if detail.startswith('SELECT list "s_2" of group "g_1" ')]
    assert (list(range(FIRST_OFFSET, FIRST_OFFSET + 4)), _wanted(4)) == (of_group, of_select)
    assert all("it ended the worker that evaluated it" in detail for _, detail in letters)


_UNITS = st.sets(st.sampled_from(["g_0", "g_2", unit_of("g_1", "s_1"), unit_of("g_2", "s_2"), "g_gone"]))


@settings(max_examples=60, deadline=None)
@given(_UNITS, _UNITS, st.none() | _UNITS)
def test_selection_changes_no_result(watched: set[str], failed: set[str], suspects: set[str] | None) -> None:
    """Whatever is evaluated together, apart, or in hand: each destination has the same results, in order."""
    snapshot, events = _snapshot(4, selects=("s_1", "s_2")), _events(6)
    cautious = _evaluated(snapshot, events, UnitSelection(watched=watched, suspects=suspects), failed)
    assert _evaluated(snapshot, events) == cautious


def test_suspects_are_in_hand_while_they_are_evaluated() -> None:
    """Each suspect is noted before it is touched; the others come last, with nothing in hand."""
    held: list[list[str]] = []
    written: list[tuple[list[str], str]] = []

    def write(events: Events, found: Matches) -> Iterable[pa.RecordBatch]:
        written.extend((held[-1] if held else [], unit) for unit in found.units)
        return ()

    selection = UnitSelection(suspects=["g_1", unit_of("g_2", "s_2")], mark=lambda units: held.append(list(units)))
    snapshot = _snapshot(3, selects=("s_1", "s_2"))
    task = task_of(_STREAM, _guard(selection), snapshot)
    assert [] == list(records_of(task, _events(2), write))
    in_hand = {unit: hand for hand, unit in written}
    assert [unit_of("g_2", "s_2")] == in_hand.pop(unit_of("g_2", "s_2"))
    assert {()} == {tuple(hand) for hand in in_hand.values()}
    assert [["g_1"], []] == held[:2]
    assert [] == held[-1]
    assert [] == held[-1]


_JOINED = Computation("j_1", (LookupJoin("t_1", "t_1", (JoinKey(_A, "a", "INT"),)),))  # type: ignore[arg-type]


def _joined_snapshot() -> Snapshot:
    """Return three groups over a join."""
    store = _Tables()
    store.known_plans = {f"g_{n}": GroupPlan(f"g_{n}", "s", "", (_KEY,), computation=_JOINED) for n in range(3)}
    return ConstantTables("s").at(  # type: ignore[arg-type]
        store.commit((), [entry(group, ("BIGINT",), (1,), group=group) for group in store.known_plans]), store
    )


def test_a_join_without_rows_harms_no_group() -> None:
    """Where events meet no row of the table nothing is looked up, and nothing can fail."""
    failed: set[str] = set()

    def join(events: Events, computation: Computation) -> Iterator[tuple[int, Events]]:
        yield 1, _events(0)
        yield events.count, events

    def write(events: Events, found: Matches) -> Iterable[pa.RecordBatch]:
        assert events.count
        return _write(events, found)

    task = task_of(_STREAM, _guard(failed=failed), _joined_snapshot(), join)
    output = list(records_of(task, _events(2), write))
    assert not failed
    assert output and not any(dead_letter_code(rows) for rows in output)


def _over_join(held: list[list[str]], selection: UnitSelection) -> tuple[list[list[str]], list[tuple[int, str]]]:
    """Evaluate three groups over a join; return the units in hand at each join, and the letters."""
    snapshot = _joined_snapshot()
    in_hand: list[list[str]] = []

    def join(events: Events, computation: Computation) -> Iterator[tuple[int, Events]]:
        assert computation == _JOINED
        in_hand.append(held[-1] if held else [])
        yield events.count, events

    task = task_of(_STREAM, _guard(selection), snapshot, join)
    letters = [
        (int(header(row, "source").split("/")[2]), header(row, "detail"))
        for rows in records_of(task, _events(2))
        if dead_letter_code(rows) is not None
        for row in rows.to_pylist()
    ]
    return in_hand, letters


def test_the_groups_over_a_join_are_in_hand_while_it_is_made() -> None:
    """All tried groups if any is suspected, none otherwise; nothing is joined for groups left out."""
    held: list[list[str]] = []

    def hold(units: Sequence[str]) -> None:
        held.append(list(units))

    assert ([[]], []) == _over_join(held, UnitSelection(watched=["g_7"], mark=hold))
    assert ([["g_0", "g_2", "g_1"]], []) == _over_join(held, UnitSelection(suspects=["g_1"], mark=hold))
    in_hand, letters = _over_join(
        held, UnitSelection(left_out=dict.fromkeys(["g_0", "g_1"], KILLED), suspects=["g_2"], mark=hold)
    )
    assert ([["g_2"]], {"g_0", "g_1"}) == (in_hand, {detail.split('"')[1] for _, detail in letters})
    in_hand, letters = _over_join(held, UnitSelection(left_out=dict.fromkeys(["g_0", "g_1", "g_2"], KILLED), mark=hold))
    assert ([], 6) == (in_hand, len(letters))


def test_a_join_that_is_made_is_no_longer_in_hand() -> None:
    """A task evaluates several source partitions: a death in the next one must not be blamed on this join."""
    held: list[list[str]] = []

    def join(events: Events, computation: Computation) -> Iterator[tuple[int, Events]]:
        yield events.count, _events(0)

    selection = UnitSelection(suspects=["g_1"], mark=lambda units: held.append(list(units)))
    assert [] == list(records_of(task_of(_STREAM, _guard(selection), _joined_snapshot(), join), _events(2)))
    assert [["g_0", "g_2", "g_1"], []] == held


@pytest.mark.parametrize("fault", [MemoryError, CpuExceeded])
def test_a_join_that_fails_leaves_its_groups_out(fault: type[Exception]) -> None:
    """Keys and conditions of ON are computed for all groups over the join, so all of them are left out together."""
    quarantined: list[str] = []

    def join(events: Events, computation: Computation) -> Iterator[tuple[int, Events]]:
        yield 1, _events(1)
        raise fault

    guard = _guard(UnitSelection(quarantine=quarantined.extend))
    task = task_of(_STREAM, guard, _joined_snapshot(), join)
    letters = [rows for rows in records_of(task, _events(3)) if dead_letter_code(rows) is not None]
    groups = ["g_0", "g_1", "g_2"]
    assert 6 == sum(rows.num_rows for rows in letters), "two events that the join was not made for, and three groups"
    assert ([], groups) == (quarantined, sorted(guard.failed)) or (groups, []) == (sorted(quarantined), [*guard.failed])
