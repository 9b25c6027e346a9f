"""Groups that share their keys are looked up together, and find the same as each by itself."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from grouping.model.expression import Call, Column, Expression
from grouping.plan.group import GroupPlan
from spark_jobs.engine.constants.constant_cache import ConstantTables, Snapshot
from spark_jobs.engine.constants.load import Loads
from spark_jobs.engine.match.evaluate import match, matches
from tests.unit.matching.matching import Events, Store, apart, compare, destination, entry, found

_KEY = compare("a", "=", "INT", 0)
_PLANS: dict[str, tuple[tuple[Expression, ...], tuple[str, ...]]] = {
    "g_key": ((_KEY,), ("BIGINT",)),
    "g_set": ((compare("a", "in", "INT", 0),), ("SET<BIGINT>",)),
    "g_bound": ((_KEY, compare("b", "<", "BIGINT", 1)), ("BIGINT", "BIGINT")),
    "g_bounds": ((_KEY, compare("b", ">", "BIGINT", 1), compare("b", "<", "BIGINT", 2)), ("BIGINT",) * 3),
    "g_twice": ((_KEY, compare("b", "<>", "BIGINT", 1), compare("b", "<>", "BIGINT", 2)), ("BIGINT",) * 3),
    "g_filter": ((_KEY, Call("is_null", (Column("b", "BIGINT"),), "BOOLEAN")), ("BIGINT",)),
    "g_swapped": ((compare("b", "<", "BIGINT", 0), compare("a", "=", "INT", 1)), ("BIGINT", "BIGINT")),
}
_SMALL = st.one_of(st.integers(0, 2), st.integers(0, 2), st.none())


@st.composite
def _entry(draw: st.DrawFn) -> tuple[str, tuple, tuple[int | None, int | None], tuple[int, ...]]:
    group = draw(st.sampled_from(sorted(_PLANS)))
    one = st.lists(_SMALL, min_size=1, max_size=3).map(tuple)
    values = tuple(draw(one if kind.startswith("SET") else _SMALL) for kind in _PLANS[group][1])
    window = draw(st.sampled_from([(None, None), (None, None), (1, None), (None, 2)]))
    return group, values, window, draw(st.sampled_from([(), (), (2,), (0, 9)]))


def _tables(store: Store) -> ConstantTables:
    for group, (conjuncts, _) in _PLANS.items():
        store.known_plans[group] = GroupPlan(group, "s", "", conjuncts)
    return ConstantTables("s")


@settings(max_examples=150, deadline=None)
@given(st.lists(_entry(), min_size=1, max_size=20), st.data())
def test_together_as_by_themselves(drawn: list, data: st.DataObject) -> None:
    """Keys, sets, bounds, filters, windows, rows that leave and are gone: the shared index changes nothing."""
    store = Store()
    tables = _tables(store)
    entries = [
        entry(n, _PLANS[group][1], values, group=group, window=window, until=until)
        for n, (group, values, window, until) in enumerate(drawn)
    ]
    # They come in three versions, some are gone with the second, and shared indexes are brought forward.
    first, second = sorted(data.draw(st.tuples(*[st.integers(0, len(entries))] * 2)))
    gone = data.draw(st.lists(st.sampled_from(range(first)), unique=True)) if first else []
    tables.at(store.commit((), entries[:first]), store)
    tables.at(store.commit([destination(n) for n in gone], entries[first:second]), store)
    snapshot = tables.at(store.commit((), entries[second:]), store)
    assert all(part.lookup is None for table in snapshot.tables for part in table.parts)
    columns = {name: data.draw(st.lists(_SMALL, min_size=4, max_size=4)) for name in ("a", "b")}
    events = Events({"a": ("INT", columns["a"]), "b": ("BIGINT", columns["b"])}, times=[0, 1, 2, 3])
    together = match(snapshot, events)
    assert found(match(apart(snapshot), events)) == found(together)
    groups = {destination(n): group for n, (group, *_) in enumerate(drawn)}
    ids = ["d_" + value.hex() for value in together.destination.to_pylist()]
    assert [groups[name] for name in ids] == [together.groups[number] for number in together.group]


def _three(store: Store) -> Snapshot:
    """Return tables of three groups in one shared index, of which 1 is met by two."""
    rows = [("g_key", (1,)), ("g_bound", (1, 5)), ("g_filter", (2,))]
    entries = [entry(n, _PLANS[group][1], values, group=group) for n, (group, values) in enumerate(rows)]
    return _tables(store).at(store.commit((), entries), store)


def test_each_table_is_told_its_own_costs() -> None:
    """Candidates and matches equal a table's alone, and all their time is somebody's."""
    loads, events = Loads(), Events({"a": ("INT", [1, 1, 3]), "b": ("BIGINT", [1, 9, 1])})
    [_] = matches(_three(Store()), events, loads=loads)
    taken = loads.take()
    assert {"g_key": (2, 2), "g_bound": (2, 1), "g_filter": (0, 0)} == {
        group: (load.candidates, load.matches) for group, load in taken.items()
    }
    assert all(load.micros > 0 and load.events == 3 and load.rows == 1 for load in taken.values())


def test_a_bundle_is_kept_while_its_parts_are() -> None:
    """A change of another shared index's tables makes nothing anew; one of its own does."""
    store = Store()
    tables = _tables(store)
    store.known_plans["g_other"] = GroupPlan("g_other", "s", "", (compare("b", "=", "BIGINT", 0),))
    first = tables.at(store.commit((), [entry(0, ("BIGINT",), (1,), group="g_key")]), store)
    second = tables.at(store.commit((), [entry(1, ("BIGINT",), (1,), group="g_other")]), store)
    assert first.shared_indexes[0] is second.shared_indexes[0] and 2 == len(second.shared_indexes)
    third = tables.at(store.commit([destination(0)], [entry(2, ("BIGINT",), (1,), group="g_key")]), store)
    assert not any(shared is first.shared_indexes[0] for shared in third.shared_indexes)
    assert [(0, destination(2))] == found(match(third, Events({"a": ("INT", [1]), "b": ("BIGINT", [0])})))


def test_a_change_makes_a_small_bundle_beside_the_large_one() -> None:
    """A table that changes leaves the shared index of a hundred others as it is, until many have changed."""
    store = Store()
    tables = _tables(store)
    plans = {f"g_{n}": GroupPlan(f"g_{n}", "s", "", (_KEY, compare("b", ">", "BIGINT", 1))) for n in range(100)}
    store.known_plans |= plans
    types = ("BIGINT", "BIGINT")
    snapshot = tables.at(store.commit((), [entry(group, types, (1, 1), group=group) for group in plans]), store)
    [large] = snapshot.shared_indexes
    names = list(plans)
    changes = [(1, [large.members]), (3, [large.members]), (40, [])]
    for count, kept in changes:
        added = [entry(f"{group} {count}", types, (1, 1), group=group) for group in names[:count]]
        snapshot = tables.at(store.commit((), added), store)
        assert kept == [shared.members for shared in snapshot.shared_indexes if shared is large], count
        expected = sum(len(part.rows) for table in snapshot.tables for part in table.parts)
        assert expected == match(snapshot, Events({"a": ("INT", [1]), "b": ("BIGINT", [2])})).event.size


def test_large_parts_have_an_index_of_their_own() -> None:
    """Ten thousand rows have their own index; so have a few with the same key and a bound, which decides."""
    store = Store()
    rows = [entry(n, ("BIGINT",), (n,), group="g_key") for n in range(10_000)]
    one_key = [entry(20_000 + n, ("BIGINT", "BIGINT"), (1, n), group="g_bound") for n in range(100)]
    snapshot = _tables(store).at(store.commit((), rows + one_key), store)
    assert () == snapshot.shared_indexes
    result = match(snapshot, Events({"a": ("INT", [1]), "b": ("BIGINT", [98])}))
    assert sorted([(0, destination(1)), (0, destination(20_099))]) == found(result)
