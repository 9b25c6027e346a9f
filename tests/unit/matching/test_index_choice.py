"""The index of a group follows the events, and results do not change with it."""

from __future__ import annotations

import random

import pytest

from grouping.access.access_path import access_paths
from grouping.plan.group import GroupPlan
from spark_jobs.engine.constants.constant_cache import ConstantTables
from spark_jobs.engine.constants.index_choice import IndexChoice, expected_candidates
from spark_jobs.engine.constants.load import Loads
from spark_jobs.engine.match.evaluate import matches
from spark_jobs.engine.rows.event_column import EventColumns
from tests.unit.matching.matching import Events, Store, compare, destination, entry, found

ROWS, EVENTS = 400, 300
PLAN = (compare("a", ">", "DOUBLE", 0), compare("b", ">", "DOUBLE", 1))


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


@pytest.fixture
def store() -> Store:
    """A group of two bounds on different columns, with constants over [0, 100)."""
    random.seed(3)
    store = Store()
    store.known_plans["g_1"] = GroupPlan("g_1", "s", "", PLAN)
    store.commit(
        (), [entry(n, ("DOUBLE", "DOUBLE"), (random.random() * 100, random.random() * 100)) for n in range(ROWS)]
    )
    return store


def quotes(a: float, b: float) -> Events:
    """Events whose columns lie below these."""
    return Events(
        {
            "a": ("DOUBLE", [random.random() * a for _ in range(EVENTS)]),
            "b": ("DOUBLE", [random.random() * b for _ in range(EVENTS)]),
        }
    )


def test_expected_candidates_are_those_of_each_path(store: Store) -> None:
    """With samples that hold everything, the expectation of each path equals its candidates."""
    [table] = ConstantTables("s").at(store.commit(), store).tables
    events = quotes(100, 10)
    values = [(a.as_py(), b.as_py()) for a, b in zip(events.column("a"), events.column("b"), strict=True)]
    constants = [
        (a.as_py(), b.as_py()) for a, b in zip(*(table.parts[0].rows.constants[i] for i in (0, 1)), strict=True)
    ]
    costs = expected_candidates(table, EventColumns(events))
    assert set(access_paths(PLAN)) == set(costs)
    for path, cost in costs.items():
        [key] = path.keys
        assert sum(value[key] > constant[key] for value in values for constant in constants) / EVENTS == cost


def test_the_index_moves_with_the_selective_column(store: Store) -> None:
    """When the other column becomes selective, it is looked up soon; candidates fall and results stay exact."""
    clock, loads, tables = Clock(), Loads(), ConstantTables("s")
    choice = IndexChoice(clock)
    version = store.commit()
    used, candidates = [], []
    for second in range(40):
        events = quotes(5, 100) if second < 20 else quotes(100, 5)
        clock.now = float(second)
        snapshot = tables.at(version, store)
        [table] = snapshot.tables
        before = loads.of(table.shape).candidates
        pairs = [pair for each in matches(snapshot, events, loads=loads) for pair in found(each)]
        candidates.append((loads.of(table.shape).candidates - before) / EVENTS)
        used.append(table.shape.path.keys)
        assert brute_force(events) == sorted(pairs)
        choice.revise(tables, snapshot, events, loads)
        if second % 2:
            loads.take()
    assert (0,) == used[19] and (1,) == used[-1]
    assert (1,) in used[20:35], "within 15 s"
    assert candidates[-1] < max(candidates[20:23]) / 4


def brute_force(events: Events) -> list[tuple[int, str]]:
    """Return the matches of all rows, tried one by one."""
    random_state = random.getstate()
    random.seed(3)
    rows = [(random.random() * 100, random.random() * 100) for _ in range(ROWS)]
    random.setstate(random_state)
    values = list(zip(events.column("a").to_pylist(), events.column("b").to_pylist(), strict=True))
    return sorted(
        (event, destination(n))
        for event, (a, b) in enumerate(values)
        for n, (low_a, low_b) in enumerate(rows)
        if a > low_a and b > low_b
    )


def test_an_exact_index_is_left_alone(store: Store) -> None:
    """A group without a residual is never indexed anew, however much it matches."""
    store.known_plans["g_1"] = GroupPlan("g_1", "s", "", PLAN[:1])
    store.log.clear()
    version = store.commit((), [entry(n, ("DOUBLE",), (0.0,)) for n in range(50)])
    tables, loads = ConstantTables("s"), Loads()
    snapshot, events = tables.at(version, store), quotes(100, 100)
    assert 50 * EVENTS == sum(each.event.size for each in matches(snapshot, events, loads=loads))
    IndexChoice(Clock()).revise(tables, snapshot, events, loads)
    assert snapshot is tables.at(version, store)
