"""Frames by several workers: states are lost, batches replayed, and states stored, without a change of any value."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grouping.model.expression import Call, Column, Slot
from grouping.model.ids import StreamId
from grouping.plan.computation import Computation
from grouping.plan.frame_value import LAG, FrameValue
from grouping.plan.frames import Frames
from grouping.plan.group import GroupPlan, SelectItem, SelectList
from grouping.store.constant_table import FRAMES, Entry
from tests.unit.matching.event_batches import header, stream
from tests.unit.matching.matching import Store, destination, entry
from tests.unit.states.partition_workers import PARTITION, PartitionTopic, PartitionWorker, befall, turns

STREAM = stream("k STRING", "n INT")
N = Column("n", "INT")
COMPUTATION = Computation.of(StreamId("s_1"), (), frames=Frames.of([Column("k", "STRING")], ()))
VALUES = {
    "lag": FrameValue(LAG, (N,), "INT", rows=2),
    "count": FrameValue("count", (N,), "BIGINT", rows=3),
    "sum": FrameValue("sum", (N,), "BIGINT", milliseconds=4_000),
}
PLANS = {
    name: GroupPlan(f"g_{name}", "s_1", "", (Call(">", (value.column, Slot(0)), "BOOLEAN"),), COMPUTATION)  # type: ignore[arg-type]
    for name, value in VALUES.items()
}
Row = dict[str, Any]


class _Store(Store):
    """SELECT lists of the values in their names."""

    def selects(self, stream_id: str, ids: list[str]) -> dict[str, SelectList]:
        """Return SELECT lists by names of two values."""
        return {
            name: SelectList(name, tuple(SelectItem(each, VALUES[each].column) for each in name.split("+")))  # type: ignore[arg-type]
            for name in ids
        }


class Asked(NamedTuple):
    """A query, and the batches at the begin and end of its life."""

    value: str
    select: str
    over: int
    begins: int
    lasts: int


ROWS = st.lists(
    st.fixed_dictionaries({"k": st.sampled_from(["a", "b", None]), "n": st.sampled_from([0, 2, 5, None])}),
    min_size=1,
    max_size=20,
)
QUERIES = st.lists(
    st.builds(
        Asked,
        st.sampled_from([*VALUES]),
        st.sampled_from(["lag", "count", "sum", "lag+sum"]),
        st.sampled_from([0, 1, 3]),
        st.integers(0, 5),
        st.integers(1, 9),
    ),
    min_size=1,
    max_size=4,
)
TURNS = turns(10, 5, 3, "lost")


@settings(max_examples=60, deadline=None)
@given(rows=ROWS, queries=QUERIES, turns=TURNS, gap=st.sampled_from([1, 3]))
def test_frames_survive_workers_and_replays(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[Row],
    queries: list[Asked],
    turns: list[tuple[int, int, int, str]],
    gap: int,
) -> None:
    """Each batch has the values of a fold over single events, in any worker and after any number of replays.

    The rows of a value count from the begin of the first live query with the value.
    """
    topic, folder, clock = PartitionTopic(STREAM, rows, gap), tmp_path_factory.mktemp("states"), [0.0]
    workers = [PartitionWorker(topic, folder, clock) for _ in range(2)]
    store = _Store()
    store.known_plans |= {f"g_{name}": plan for name, plan in PLANS.items()}
    begins: dict[int, int] = {}
    at = 0
    for number, (count, turn, pieces, fate) in enumerate(turns):
        first, end = at * gap, min(at + count, len(rows)) * gap
        added: list[Entry] = []
        for name, query in enumerate(queries):
            if query.begins == number:
                begins[name] = at
                since, group = (0,) * PARTITION + (first,), f"g_{query.value}"
                added.append(
                    entry(name, ("INT",), (query.over,), group=group, select=query.select, edge=FRAMES, since=since)
                )
        gone = [name for name, query in enumerate(queries) if query.begins + query.lasts == number]
        for name in gone:
            del begins[name]
        version = store.commit([destination(name) for name in gone], added)
        run = (store, version, first, end, pieces)
        befall(fate, workers, turn, topic, folder, clock)
        if fate == "stopped":
            workers[turn].run(*run, complete=False)
        if fate == "again":
            workers[turn].run(*run, complete=True)
        if fate == "elsewhere":
            workers[1 - turn].run(*run, complete=False)
        made = workers[turn].run(*run, complete=True)
        last = min(at + count, len(rows))
        assert sorted(map(_result_of, made)) == sorted(_expected(rows, queries, begins, range(at, last), gap))
        at = last


def _result_of(row: dict[str, Any]) -> tuple[str, str, str]:
    return row["key"].decode(), header(row, "ce_id"), repr(json.loads(row["value"]))


def _expected(
    rows: list[Row], queries: list[Asked], begins: dict[int, int], places: range, gap: int
) -> list[tuple[str, str, str]]:
    """Return the results of a batch, by its live queries."""
    visible = {
        value: min((begins[name] for name in begins if value in _reads(queries[name])), default=0) for value in VALUES
    }
    found = []
    for place in places:
        values = {value: _value(value, rows, place, visible[value]) for value in VALUES}
        for name in begins:
            query = queries[name]
            compared = values[query.value]
            if compared is not None and compared > query.over:
                shown = {each: values[each] for each in query.select.split("+")}
                found.append((destination(name), f"quotes/{PARTITION}/{place * gap}", repr(shown)))
    return found


def _reads(query: Asked) -> set[str]:
    return {query.value, *query.select.split("+")}


def _value(value: str, rows: list[Row], place: int, visible: int) -> int | None:
    """Return a value of an event, by the event's own row and earlier rows from `visible` on."""
    own = [each for each in range(visible, place) if rows[each]["k"] == rows[place]["k"]] + [place]
    if value == "lag":
        return rows[own[-3]]["n"] if len(own) > 2 else None
    if value == "count":
        return sum(rows[each]["n"] is not None for each in own[-4:])
    known = [rows[each]["n"] for each in own if each >= place - 4 and rows[each]["n"] is not None]
    return sum(known) if known else None


def test_a_worker_that_goes_on_reads_nothing(tmp_path: Path) -> None:
    """A worker reads the missing part of the log alone; for a second value of the rows, from the begin of the value."""
    rows = [{"k": str(place % 7), "n": place % 3} for place in range(50)]
    topic, clock, store = PartitionTopic(STREAM, rows, 1), [0.0], _Store()
    store.known_plans |= {f"g_{name}": plan for name, plan in PLANS.items()}
    version = store.commit((), [entry(0, ("INT",), (1,), group="g_lag", select="lag", edge=FRAMES, since=())])
    one, other = (PartitionWorker(topic, tmp_path, clock) for _ in range(2))

    def read(worker: PartitionWorker, version: Any, first: int, end: int) -> int:
        before = topic.read_records
        worker.run(store, version, first, end, 10, complete=True)
        return topic.read_records - before

    assert [read(one, version, 0, 10), read(one, version, 10, 20), read(one, version, 10, 20)] == [0, 0, 0]
    assert [read(other, version, 20, 30), read(one, version, 30, 40)] == [0, 0]
    since = (0,) * PARTITION + (37,)
    more = store.commit((), [entry(1, ("INT",), (1,), group="g_sum", select="sum", edge=FRAMES, since=since)])
    assert read(one, more, 40, 50) == 3
