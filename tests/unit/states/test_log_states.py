"""Edges by several workers: states are lost, batches replayed, and states stored, without a change of any edge."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grouping.model.expression import Call, Column, Expression, Slot
from grouping.model.ids import StreamId
from grouping.plan.computation import Computation
from grouping.plan.group import GroupPlan
from grouping.plan.row_before import RowBefore
from grouping.plan.stay import Stay, StayBound
from grouping.settings.settings import Settings
from grouping.store.constant_table import Entry
from spark_jobs.engine.constants.constant_cache import ConstantTables
from spark_jobs.engine.operators.row_before.last_rows import LastRows
from spark_jobs.runtime.states.row_snapshots import RowSnapshots, SnapshotPlace
from tests.unit.joins.join_queries import PROFILES, QUOTES, compiled, view_of
from tests.unit.matching.event_batches import header, stream
from tests.unit.matching.matching import Store, destination, entry
from tests.unit.states.partition_workers import PARTITION, PartitionTopic, PartitionWorker, turns

STREAM = stream("k STRING", "p DOUBLE", "n INT")
BEFORE = RowBefore.of(frozenset([Column("k", "STRING")]))
COMPUTATION = Computation.of(StreamId("s_1"), (), BEFORE)
_TYPES = {"p": ("DOUBLE", "DOUBLE"), "n": ("INT", "INT")}
Row = dict[str, Any]
Result = tuple[str, str, str]
"""Destination, id and edge."""


def _over(name: str) -> Expression:
    return Call(">", (Column(name, _TYPES[name][0]), Slot(0)), "BOOLEAN")


def results_of(rows: list[dict[str, Any]]) -> list[Result]:
    """Return the results among output rows."""
    return [(row["key"].decode(), header(row, "ce_id"), header(row, "edge")) for row in rows]


PLANS = {name: GroupPlan(f"g_{name}", "s_1", "", (_over(name),), COMPUTATION) for name in _TYPES}  # type: ignore[arg-type]
_STAY = Stay(*(StayBound(op, Column("p", "DOUBLE"), slot) for slot, op in enumerate("><")))
PLANS["u"] = GroupPlan("g_u", "s_1", "", (_over("p"),), COMPUTATION, stay=_STAY)  # type: ignore[arg-type]


class Asked(NamedTuple):
    """A query, and the batches between which it comes and goes."""

    column: str
    value: int
    begins: int
    lasts: int


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "k": st.sampled_from(["a", "b", None]),
            "p": st.sampled_from([-0.5, 0.5, 1.5, None]),
            "n": st.sampled_from([0, 2, None]),
        }
    ),
    min_size=1,
    max_size=16,
)
QUERIES = st.lists(
    st.builds(Asked, st.sampled_from("pnu"), st.sampled_from([0, 1]), st.integers(0, 5), st.integers(1, 9)),
    min_size=1,
    max_size=4,
)
TURNS = turns(10, 5, 3)


@settings(max_examples=120, deadline=None)
@given(rows=ROWS, queries=QUERIES, turns=TURNS, gap=st.sampled_from([1, 3]), lost=st.booleans())
def test_edges_survive_workers_and_replays(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[Row],
    queries: list[Asked],
    turns: list[tuple[int, int, int, str]],
    gap: int,
    lost: bool,
) -> None:
    """Each batch has the edges of a fold over single events, in any worker and after any number of replays."""
    topic, folder, clock = PartitionTopic(STREAM, rows, gap), tmp_path_factory.mktemp("states"), [0.0]
    workers = [PartitionWorker(topic, folder, clock) for _ in range(2)]
    store, found, expected = Store(), set[Result](), set[Result]()
    store.known_plans |= {f"g_{name}": plan for name, plan in PLANS.items()}
    inside: dict[tuple[int, Any], bool] = {}
    begins: dict[int, int] = {}
    live: set[int] = set()
    at = 0
    for number, (count, turn, pieces, fate) in enumerate(turns):
        first, end = at * gap, min(at + count, len(rows)) * gap
        added: list[Entry] = []
        for name, query in enumerate(queries):
            if query.begins == number:
                live.add(name)
                begins[name] = first
                since = (0,) * PARTITION + (first,)
                group = f"g_{query.column}"
                constants = {"n": (query.value,), "u": (float(query.value), query.value - 1.0)}
                types = {"n": ("INT",), "u": ("DOUBLE", "DOUBLE")}
                added.append(
                    entry(
                        name,
                        types.get(query.column, ("DOUBLE",)),
                        constants.get(query.column, (float(query.value),)),
                        group=group,
                        edge="both",
                        since=since,
                    )
                )
        gone = [name for name, query in enumerate(queries) if query.begins + query.lasts == number]
        live.difference_update(gone)
        version = store.commit([destination(name) for name in gone], added)
        if lost and fate == "killed":
            for path in (*folder.rglob("*.rows"), *folder.rglob("*.changes")):
                path.write_bytes(path.read_bytes()[:-3])
        if fate == "killed":
            workers[turn] = PartitionWorker(topic, folder, clock)
        if fate == "minute":
            clock[0] += 61
        if fate == "stopped":
            workers[turn].run(store, version, first, end, pieces, complete=False)
        if fate == "again":
            workers[turn].run(store, version, first, end, pieces, complete=True)
        if fate == "elsewhere":
            workers[1 - turn].run(store, version, first, end, pieces, complete=False)
        made = results_of(workers[turn].run(store, version, first, end, pieces, complete=True))
        assert len(set(made)) == len(made)
        found.update(made)
        for place in range(at, min(at + count, len(rows))):
            for name in live:
                query, key = queries[name], (name, rows[place]["k"])
                value, was = rows[place]["n" if query.column == "n" else "p"], inside.get(key, False)
                now = value is not None and value > query.value
                if query.column == "u" and was:
                    now = value is None or value >= query.value - 1
                if now != was:
                    edge = "enter" if now else "exit"
                    expected.add((destination(name), f"quotes/{PARTITION}/{place * gap}", edge))
                inside[key] = now
        assert found == expected
        at = min(at + count, len(rows))


def test_a_state_that_is_too_large_is_dropped(tmp_path: Path) -> None:
    """The computation is reported; while it is stopped nothing is kept or stored, and later the log is read again."""
    rows = [{"k": str(place), "p": 2.0} for place in range(40)]
    topic, clock, store = PartitionTopic(STREAM, rows, 1), [0.0], Store()
    store.known_plans["g_p"] = PLANS["p"]
    version = store.commit((), [entry(0, ("DOUBLE",), (1.0,), group="g_p", edge="enter", since=())])
    large, small = PartitionWorker(topic, tmp_path, clock), PartitionWorker(topic, tmp_path, clock, megabytes=0)
    name = COMPUTATION.computation_id
    snapshot = ConstantTables(StreamId("s_1")).at(version, store)

    def stored() -> list[Path]:
        clock[0] += 61
        return sorted(tmp_path.rglob("*.rows"))

    assert 10 == len(small.run(store, version, 0, 10, 10, complete=True))
    states = small.states.begun(STREAM, snapshot, {}, PARTITION, 10)
    assert [name] == small.states.full(states)
    states = small.states.begun(STREAM, snapshot, {}, PARTITION, 10, [name])
    assert states[name].torn and not small.states.full(states) and not stored()
    small.states.ended(STREAM, PARTITION, 20, states)
    states = small.states.begun(STREAM, snapshot, {}, PARTITION, 20)
    assert states[name].torn and [name] == small.states.full(states) and not stored()
    assert 10 == topic.read_records
    states = large.states.begun(STREAM, snapshot, {}, PARTITION, 20)
    assert not states[name].torn and not large.states.full(states)
    assert 10 == len(large.run(store, version, 20, 30, 10, complete=True))


def test_a_worker_reads_only_what_it_lacks(tmp_path: Path) -> None:
    """A worker reads nothing twice, another worker the missing part of the log, and a new worker begins with a file."""
    rows = [{"k": str(place % 7), "p": float(place % 3)} for place in range(70)]
    topic, clock, store = PartitionTopic(STREAM, rows, 1), [0.0], Store()
    store.known_plans["g_p"] = PLANS["p"]
    version = store.commit((), [entry(0, ("DOUBLE",), (1.0,), group="g_p", edge="enter", since=())])
    one, other = (PartitionWorker(topic, tmp_path, clock) for _ in range(2))

    def read(worker: PartitionWorker, first: int, end: int) -> int:
        before = topic.read_records
        worker.run(store, version, first, end, 10, complete=True)
        return topic.read_records - before

    assert [read(one, 0, 10), read(one, 10, 20), read(one, 10, 20)] == [0, 0, 0]
    assert [read(other, 20, 30), read(one, 30, 40)] == [0, 0]
    for path in tmp_path.rglob("*.changes"):
        path.unlink()
    assert read(other, 40, 50) == 10
    clock[0] += 61
    assert read(other, 50, 60) == 0
    assert [path.name for path in tmp_path.rglob("*.rows")] == [f"{50:020}.rows"]
    assert read(PartitionWorker(topic, tmp_path, clock), 60, 70) == 0
    for path in tmp_path.rglob("*.changes"):
        path.unlink()
    assert read(PartitionWorker(topic, tmp_path, clock), 60, 70) == 10


def test_a_new_state_has_rows_as_they_were_joined(tmp_path: Path) -> None:
    """A worker without a state takes the rows of the last batch as another worker joined them, and not as of now."""
    query = compiled(
        "SELECT q.n FROM quotes q JOIN profiles p ON q.symbol = p.symbol WHERE p.staff > 1 EMIT ON ENTER BY _key"
    )
    topic, clock, store = PartitionTopic(QUOTES, [{"symbol": "a", "n": 1}] * 3, 1), [0.0], Store()
    store.known_plans[query.plan.group_id] = query.plan
    about = {"group": query.plan.group_id, "edge": "enter", "since": (0,)}
    version = store.commit((), [entry(0, tuple(map(str, query.row.types)), query.row.values, **about)])  # type: ignore[arg-type]
    for at, (staff, edges) in enumerate([(0, 0), (2, 1), (2, 0)]):
        views = {"t_1": view_of(PROFILES, [{"symbol": "a", "industry": "x", "staff": staff}])}
        worker = PartitionWorker(topic, tmp_path, clock)
        assert edges == len(worker.run(store, version, at, at + 1, 1, complete=True, views=views))
    assert 0 == topic.read_records


def test_all_changes_of_a_joined_state_since_its_last_but_one_file_are_kept(tmp_path: Path) -> None:
    """A new worker reads them in place of the log, over gaps between the offsets, too; older ones go."""
    query = compiled("SELECT q.n FROM quotes q JOIN profiles p ON q.symbol = p.symbol EMIT ON ENTER BY _key")
    topic, clock, store = PartitionTopic(QUOTES, [{"symbol": "a", "n": 1}] * 40, 3), [0.0], Store()
    store.known_plans[query.plan.group_id] = query.plan
    version = store.commit((), [entry(0, (), (), group=query.plan.group_id, edge="enter", since=(0,))])
    worker, counts = PartitionWorker(topic, tmp_path, clock), list[int]()
    for at in range(40):
        views = {"t_1": view_of(PROFILES, [{"symbol": "a"}])}
        worker.run(store, version, 3 * at, 3 * at + 1, 1, complete=True, views=views)
        if at % 12 == 5:
            worker = PartitionWorker(topic, tmp_path, clock)
        if at % 12 == 11:
            clock[0] += 61
        counts.append(len([*tmp_path.rglob("*.changes")]))
    assert counts[:12] == [*range(1, 13)]
    assert max(counts) <= 26
    assert 0 == topic.read_records


@pytest.mark.parametrize("away", ["long", "while a column was dropped"])
def test_a_worker_that_was_away_has_rows_as_they_were_joined(tmp_path: Path, away: str) -> None:
    """The worker takes a stored state where changes since its own are gone, and changes that have fewer columns."""
    texts = ("p.staff > 1", "p.industry = 'x'")
    queries = [
        compiled(f"SELECT q.n FROM quotes q JOIN profiles p ON q.symbol = p.symbol WHERE {text} EMIT ON ENTER BY _key")
        for text in texts
    ]
    topic, clock, store = PartitionTopic(QUOTES, [{"symbol": "a", "n": 1}] * 6, 1), [0.0], Store()
    store.known_plans |= {query.plan.group_id: query.plan for query in queries}
    entries = [
        entry(number, tuple(map(str, row.types)), row.values, group=query.plan.group_id, edge="enter", since=(0,))
        for number, query in enumerate(queries)
        for row in [query.row]
    ]
    version = store.commit((), entries)
    one, other = (PartitionWorker(topic, tmp_path, clock) for _ in range(2))

    def edges(worker: PartitionWorker, at: int, staff: int) -> int:
        views = {"t_1": view_of(PROFILES, [{"symbol": "a", "industry": "y", "staff": staff}])}
        return len(worker.run(store, version, at, at + 1, 1, complete=True, views=views))

    assert 0 == edges(other, 0, 0)
    if away != "long":
        version = store.commit([destination(1)], [])
        one = PartitionWorker(topic, tmp_path, clock)
    for at in range(1, 5):
        assert 0 == edges(one, at, 0)
        clock[0] += 61 if away == "long" else 0
    assert 1 == edges(other, 5, 2)
    assert 0 == topic.read_records


def test_two_files_of_a_state_are_kept(tmp_path: Path) -> None:
    """Older files go, and all files of a computation without queries."""
    topic, clock, store = PartitionTopic(STREAM, [{"k": "a", "p": 2.0}] * 50, 1), [0.0], Store()
    store.known_plans["g_p"] = PLANS["p"]
    version = store.commit((), [entry(0, ("DOUBLE",), (1.0,), group="g_p", edge="enter", since=())])
    worker = PartitionWorker(topic, tmp_path, clock)
    for first in range(0, 40, 10):
        worker.run(store, version, first, first + 10, 10, complete=True)
        clock[0] += 61
    names = sorted(path.name for path in tmp_path.rglob("*.rows"))
    assert names == [f"{position:020}.rows" for position in (20, 30)]
    snapshots = RowSnapshots(Settings(prefix="cq.", data=tmp_path))
    place = SnapshotPlace(STREAM.source_id, PARTITION, COMPUTATION.computation_id)
    assert [found and found.position for found in (snapshots.last(place, at, LastRows) for at in (19, 29, 99))] == [
        None,
        20,
        30,
    ]
    snapshots.forget(place)
    assert not [*tmp_path.rglob("*.rows")]
    PartitionWorker(topic, tmp_path, clock).run(store, version, 40, 50, 10, complete=True)
    assert [path.suffix for path in tmp_path.rglob("*") if path.is_file()] == [".changes"]
    snapshots.forget(place)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_place_that_cannot_be_reached_costs_no_result(tmp_path: Path) -> None:
    """A folder that cannot be written costs no edges, and is tried again minutes later."""
    topic, clock, store = (
        PartitionTopic(STREAM, [{"k": "a", "p": float(place % 2)} for place in range(30)], 1),
        [0.0],
        Store(),
    )
    store.known_plans["g_p"] = PLANS["p"]
    version = store.commit((), [entry(0, ("DOUBLE",), (0.5,), group="g_p", edge="enter", since=())])
    (tmp_path / "last-rows").write_text("no folder")
    worker = PartitionWorker(topic, tmp_path, clock)
    for first in (0, 10):
        assert len(worker.run(store, version, first, first + 10, 10, complete=True)) == 5
        clock[0] += 61
    (tmp_path / "last-rows").unlink()
    clock[0] += 301
    assert len(worker.run(store, version, 20, 30, 10, complete=True)) == 5
    assert [path.name for path in tmp_path.rglob("*.rows")] == [f"{20:020}.rows"]
    away = RowSnapshots(Settings(prefix="cq.", evaluator={"checkpoints": "nowhere://bucket/cq"}))  # type: ignore[arg-type]
    place = SnapshotPlace(STREAM.source_id, PARTITION, COMPUTATION.computation_id)
    assert away.last(place, 99, LastRows) is None
