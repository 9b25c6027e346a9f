"""Tables brought forward by deltas equal tables loaded at once."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from grouping.model.errors import OperationalError
from grouping.model.expression import Column, Expression
from grouping.plan.group import GroupPlan
from grouping.store.constant_table import Entry, Segment
from grouping.store.segment_log import PIECE_BYTES
from spark_jobs.engine.constants import table_shape
from spark_jobs.engine.constants.constant_cache import ConstantTables, Snapshot
from spark_jobs.engine.constants.constant_part import ConstantPart
from spark_jobs.engine.match.evaluate import match
from tests.unit.matching.matching import Events, Store, Version, compare, destination, entry, found

_EVENTS = Events({"a": ("INT", [0, 1, 2, 3]), "s": ("STRING", ["x", "y", "x", None])})
_PLANS = {
    "g_1": (compare("a", "=", "INT", 0),),
    "g_2": (compare("s", "=", "STRING", 0), compare("a", "<", "INT", 1)),
    "g_3": (compare("a", ">=", "INT", 0), compare("a", "<=", "INT", 1)),
}
_SHAPES = {
    "g_1": st.tuples(st.integers(0, 3)),
    "g_2": st.tuples(st.sampled_from(["x", "y"]), st.integers(0, 4)),
    "g_3": st.tuples(st.integers(0, 2), st.integers(1, 4)),
}
_TYPES = {"g_1": ("BIGINT",), "g_2": ("STRING", "BIGINT"), "g_3": ("BIGINT", "BIGINT")}


def _store(piece_bytes: int = PIECE_BYTES) -> Store:
    store = Store(piece_bytes)
    store.known_plans = {group: GroupPlan(group, "s", "", conjuncts) for group, conjuncts in _PLANS.items()}
    return store


@st.composite
def _entries(draw: st.DrawFn) -> list[Entry]:
    entries = {}
    for name in draw(st.lists(st.integers(0, 15), max_size=6, unique=True)):
        group = draw(st.sampled_from(sorted(_PLANS)))
        mode = draw(st.sampled_from(["shared", "dedicated", "pending"]))
        entries[name] = entry(name, _TYPES[group], draw(_SHAPES[group]), group=group, mode=mode)
    return list(entries.values())


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(st.lists(st.integers(0, 15), max_size=5), _entries(), st.booleans()), max_size=8))
def test_any_sequence_of_changes_equals_loading_at_once(changes: list) -> None:
    """After rows are added, removed and replaced, skipped versions included, matches equal a fresh worker's."""
    store, tables = _store(piece_bytes=100), ConstantTables("s")
    live: set[str] = set()
    for removed, added, seen in changes:
        names = {item.destination for item in added}
        gone = {destination(name) for name in removed} | (live & names)  # a row that comes again is replaced
        live = (live - gone) | names
        version = store.commit(sorted(gone), added)
        if seen:
            fresh = match(ConstantTables("s").at(version, store), _EVENTS)
            grown = match(tables.at(version, store), _EVENTS)
            assert found(fresh) == found(grown)
            assert {name for _, name in found(grown)} <= live


def test_a_removed_row_is_gone_at_the_next_version() -> None:
    """A removal takes effect at its own version, and a replacement counts once."""
    store, tables = _store(), ConstantTables("s")
    first = store.commit((), [entry(n, ("BIGINT",), (n,)) for n in range(3)])
    assert 3 == len(found(match(tables.at(first, store), _EVENTS)))
    second = store.commit([destination(0), destination(1)], [entry(1, ("BIGINT",), (3,))])
    assert sorted([(2, destination(2)), (3, destination(1))]) == found(match(tables.at(second, store), _EVENTS))


def test_a_change_asks_the_tables_that_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many small tables there are, the cost of a DROP depends on the dropped CQs alone."""
    asked: list[ConstantPart] = []
    keys: list[Expression] = []
    remove, comparison = ConstantPart.remove, table_shape.comparison

    def counted(part: ConstantPart, ids: NDArray[np.void]) -> ConstantPart | None:
        asked.append(part)
        return remove(part, ids)

    def compared(conjunct: Expression) -> tuple[str, Column, int]:
        keys.append(conjunct)
        return comparison(conjunct)

    monkeypatch.setattr(ConstantPart, "remove", counted)
    monkeypatch.setattr(table_shape, "comparison", compared)
    store, tables = Store(), ConstantTables("s")
    store.known_plans = {f"g_{n}": GroupPlan(f"g_{n}", "s", "", _PLANS["g_1"]) for n in range(200)}
    made = [entry(n, ("BIGINT",), (n % 4,), group=f"g_{n}") for n in range(200)]
    tables.at(store.commit((), made), store)
    assert 200 == len(keys)
    for first in range(0, 20, 2):
        gone = [each.destination for each in made[first : first + 2]]
        snapshot = tables.at(store.commit(gone, ()), store)
    assert 20 == len(asked)
    assert 200 == len(keys)
    assert 180 == len(found(match(snapshot, _EVENTS)))


def test_a_table_of_many_small_changes_has_few_parts() -> None:
    """Rows added singly do not make look-ups ask ever more indexes."""
    store, tables = _store(), ConstantTables("s")
    tables.at(store.commit((), [entry(n, ("BIGINT",), (n % 4,)) for n in range(30_000)]), store)
    for n in range(30_000, 30_040):
        snapshot = tables.at(store.commit((), [entry(n, ("BIGINT",), (n % 4,))]), store)
    assert 2 == len(snapshot.tables[0].parts)
    assert 30_040 == len(found(match(snapshot, _EVENTS)))


def test_a_table_in_pieces_is_loaded_as_a_whole() -> None:
    """Pieces that were cut from a table anywhere, as bytes, give the rows of the table."""
    entries = [entry(n, ("BIGINT",), (n % 4,)) for n in range(3_001)]
    whole, pieces = _store(), _store(piece_bytes=10_000)
    for store in (whole, pieces):
        store.commit((), entries)
    tables = [ConstantTables("s").at(Version(1, 1), store) for store in (whole, pieces)]
    one, other = (found(match(table, _EVENTS)) for table in tables)
    assert one == other
    assert 3_001 == len(one)


def test_memory_returns_when_rows_go() -> None:
    """Removed rows are swept, and a table without rows is dropped."""
    store, tables = _store(), ConstantTables("s")
    full = tables.at(store.commit((), [entry(n, ("BIGINT",), (n % 4,)) for n in range(5_000)]), store).nbytes
    less = tables.at(store.commit([destination(n) for n in range(4_000)]), store)
    assert 1_000 == less.rows
    assert less.nbytes < full / 3
    assert () == tables.at(store.commit([destination(n) for n in range(4_000, 5_000)]), store).tables


def test_a_new_epoch_loads_afresh() -> None:
    """Tables of an earlier epoch are forgotten, whatever their version."""
    store, tables = _store(), ConstantTables("s")
    tables.at(store.commit((), [entry(0, ("BIGINT",), (0,))]), store)
    store.log = [Segment.of((), [entry(1, ("BIGINT",), (1,))])]
    assert [(1, destination(1))] == found(match(tables.at(Version(2, 1), store), _EVENTS))


def test_a_lost_boundary_loads_afresh() -> None:
    """When the segments that follow were merged with older ones, everything is read again."""
    store, tables = _store(), ConstantTables("s")
    tables.at(store.commit((), [entry(0, ("BIGINT",), (0,))]), store)
    store.commit((), [entry(1, ("BIGINT",), (1,))])
    store.compacted = 2
    snapshot = tables.at(store.commit((), [entry(2, ("BIGINT",), (2,))]), store)
    assert (0, 3) == store.reads[-1]
    assert [(n, destination(n)) for n in range(3)] == found(match(snapshot, _EVENTS))


def test_only_what_changed_is_read() -> None:
    """A later version reads the segments since the last one; the same version reads nothing."""
    store, tables = _store(), ConstantTables("s")
    tables.at(store.commit((), [entry(0, ("BIGINT",), (0,))]), store)
    version = store.commit((), [entry(1, ("BIGINT",), (1,))])
    assert tables.at(version, store) is tables.at(version, store)
    assert [(0, 1), (1, 2)] == store.reads


def test_tables_that_cannot_be_read_are_an_error() -> None:
    """Without segments nothing is evaluated, rather than an empty table."""

    class Gone(Store):
        def changes(self, stream_id: str, epoch: int, since: int, until: int) -> None:
            return None

    with pytest.raises(OperationalError):
        ConstantTables("s").at(Version(1, 1), Gone())


def test_rows_of_which_nothing_is_known_are_an_error() -> None:
    """If the plan of live rows is lost, nothing is evaluated, rather than only the other groups."""
    store, tables = _store(), ConstantTables("s")
    plan = store.known_plans.pop("g_2")
    version = store.commit((), [entry(0, ("BIGINT",), (0,)), entry(1, ("STRING", "BIGINT"), ("x", 4), group="g_2")])
    with pytest.raises(OperationalError, match="not complete"):
        tables.at(version, store)
    store.known_plans["g_2"] = plan
    assert [(0, destination(0)), (0, destination(1)), (2, destination(1))] == found(
        match(tables.at(version, store), _EVENTS)
    )


class _Plan:
    """A plan that counts how often its computation is asked for."""

    asked = 0

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def computation_id(self) -> str:
        _Plan.asked += 1
        return self._name


def test_tables_are_parted_by_computation_in_one_pass() -> None:
    """A task parts the tables of all computations at once: each table is looked at once, not once for each join."""
    names = [f"c_{number % 100}" if number < 400 else "" for number in range(500)]
    tables = tuple(SimpleNamespace(shape=SimpleNamespace(plan=_Plan(name)), name=name) for name in names)
    snapshot = Snapshot(tables, (), np.zeros(0), np.zeros(0), (), tuple(sorted({*names} - {""})))  # type: ignore[arg-type]
    parts = snapshot.by_computation()
    assert 500 == _Plan.asked
    assert {*names} == parts.keys()
    for name, part in parts.items():
        assert [table for table in tables if table.name == name] == [*part.tables] == [*snapshot.over(name).tables]
    assert () == snapshot.over("c_none").tables
