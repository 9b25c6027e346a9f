"""Edges over frames by several workers: states are lost, batches replayed, and states stored, without other edges."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grouping.model.expression import Call, Column, Slot, Value
from grouping.model.ids import StreamId
from grouping.plan.computation import Computation
from grouping.plan.frame_value import LAG, FrameValue
from grouping.plan.frames import Frames
from grouping.plan.group import GroupPlan, SelectItem, SelectList
from grouping.plan.passing import PASSING
from grouping.plan.row_before import RowBefore
from grouping.store.constant_table import Entry
from tests.unit.matching.event_batches import header, stream
from tests.unit.matching.matching import Store, destination, entry
from tests.unit.states.partition_workers import PARTITION, PartitionTopic, PartitionWorker, befall, turns

STREAM = stream("k STRING", "n INT", "ok BOOLEAN")
K, N = Column("k", "STRING"), Column("n", "INT")
WHERE = Call("=", (Column("ok", "BOOLEAN"), Value(True, "BOOLEAN")), "BOOLEAN")
VALUES = {
    "lag": FrameValue(LAG, (N,), "INT", rows=2),
    "count": FrameValue("count", (N,), "BIGINT", rows=3),
    "sum": FrameValue("sum", (N,), "BIGINT", milliseconds=4_000),
}
Row = dict[str, Any]
Result = tuple[str, str, str, str]
"""Destination, id, edge and SELECT list."""


class _Store(Store):
    """SELECT lists of the values in their names."""

    def selects(self, stream_id: str, ids: list[str]) -> dict[str, SelectList]:
        """Return SELECT lists by names of two values."""
        return {
            name: SelectList(name, tuple(SelectItem(each, VALUES[each].column) for each in name.split("+")))  # type: ignore[arg-type]
            for name in ids
        }


class Asked(NamedTuple):
    """A query, and the batches at the begin and end of its life.

    The query begins `early` events before its first batch: they came after its begin was noted, but were evaluated
    without it.
    """

    value: str
    select: str
    over: int
    begins: int
    lasts: int
    early: int

    @property
    def group(self) -> str:
        """The group of the query."""
        return f"g_{self.value} {self.select}"

    @property
    def plan(self) -> GroupPlan:
        """The plan of the group, whose computation has all that the query reads in its id."""
        value, reads = VALUES[self.value], sorted({self.value, *self.select.split("+")})
        before = RowBefore((K,), reads=(value.column.stored,))
        frames = Frames.of([K], (WHERE,), [VALUES[each] for each in reads], shares=False)
        conjuncts = (Call(">", (value.column, Slot(0)), "BOOLEAN"), PASSING)
        return GroupPlan(self.group, "s_1", "", conjuncts, Computation.of(StreamId("s_1"), (), before, frames))  # type: ignore[arg-type]


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "k": st.sampled_from(["a", "b", None]),
            "n": st.sampled_from([0, 2, 5, None]),
            "ok": st.sampled_from([True, True, False, None]),
        }
    ),
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
        st.integers(0, 2),
    ),
    min_size=1,
    max_size=4,
)
TURNS = turns(10, 5, 3, "lost", "paused")


@settings(max_examples=80, deadline=None)
@given(rows=ROWS, queries=QUERIES, turns=TURNS, gap=st.sampled_from([1, 3]))
def test_edges_over_frames_survive_workers_and_replays(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[Row],
    queries: list[Asked],
    turns: list[tuple[int, int, int, str]],
    gap: int,
) -> None:
    """Each batch has the edges of a fold over single events, in any worker and after any number of replays.

    A query ends only if the frames of the other queries then begin with the same events as before. A group is paused
    for some batches.
    """
    topic, folder, clock = PartitionTopic(STREAM, rows, gap), tmp_path_factory.mktemp("states"), [0.0]
    workers = [PartitionWorker(topic, folder, clock) for _ in range(2)]
    store = _Store()
    store.known_plans |= {query.group: query.plan for query in queries}
    begins: dict[int, int] = {}
    inside: dict[tuple[int, Any], bool] = {}
    at = 0
    for number, (count, turn, pieces, fate) in enumerate(turns):
        first, end = at * gap, min(at + count, len(rows)) * gap
        gone = []
        for name in [name for name in begins if queries[name].begins + queries[name].lasts == number]:
            others = {other: begin for other, begin in begins.items() if other != name}
            if _visible(queries, others, queries[name]) in (None, _visible(queries, begins, queries[name])):
                gone.append(name)
                begins = others
        added: list[Entry] = []
        for name, query in enumerate(queries):
            if query.begins == number:
                begins[name] = max([at - query.early, 0, *begins.values()])
                since = (0,) * PARTITION + (begins[name] * gap,)
                constants = ("INT",), (query.over,)
                added.append(entry(name, *constants, group=query.group, select=query.select, edge="both", since=since))
                _expected(rows, queries, {name: begins[name]}, begins, inside, range(begins[name], at), gap)
        version = store.commit([destination(name) for name in gone], added)
        run = (store, version, first, end, pieces)
        befall(fate, workers, turn, topic, folder, clock)
        if fate == "stopped":
            workers[turn].run(*run, complete=False)
        if fate == "again":
            workers[turn].run(*run, complete=True)
        if fate == "elsewhere":
            workers[1 - turn].run(*run, complete=False)
        paused = {queries[0].group} if fate == "paused" else set()
        made = workers[turn].run(*run, complete=True, paused=paused)
        last = min(at + count, len(rows))
        heard = {destination(name) for name in begins if queries[name].group not in paused}
        expected = _expected(rows, queries, begins, begins, inside, range(at, last), gap)
        assert sorted(map(_result_of, made)) == sorted(each for each in expected if each[0] in heard)
        at = last


def _result_of(row: dict[str, Any]) -> Result:
    return row["key"].decode(), header(row, "ce_id"), header(row, "edge"), repr(json.loads(row["value"]))


def _visible(queries: list[Asked], begins: dict[int, int], query: Asked) -> int | None:
    """Return the first event that a frame may hold: the begin of the first live query of the same group."""
    return min((begins[name] for name in begins if queries[name].group == query.group), default=None)


def _expected(
    rows: list[Row],
    queries: list[Asked],
    asked: Iterable[int],
    begins: dict[int, int],
    inside: dict[tuple[int, Any], bool],
    places: range,
    gap: int,
) -> list[Result]:
    """Return the results of some events.

    Args:
        rows: All events.
        queries: All queries.
        asked: The queries to answer.
        begins: The live queries, with their first events.
        inside: By query and key, whether the key is in before the events; changed to after the events.
        places: The events.
        gap: The distance of offsets.
    """
    found = []
    for place in places:
        for name in asked:
            query, key = queries[name], (name, rows[place]["k"])
            values = {value: _value(value, rows, place, _visible(queries, begins, query) or 0) for value in VALUES}
            compared = values[query.value]
            now = compared is not None and compared > query.over
            if now != inside.get(key, False):
                shown = repr({each: values[each] for each in query.select.split("+")})
                edge = "enter" if now else "exit"
                found.append((destination(name), f"quotes/{PARTITION}/{place * gap}", edge, shown))
            inside[key] = now
    return found


def _value(value: str, rows: list[Row], place: int, visible: int) -> int | None:
    """Return a value of an event, by the event's own row and earlier rows from `visible` on."""
    if rows[place]["ok"] is not True:
        return None
    passing = [each for each in range(visible, place + 1) if rows[each]["ok"] is True]
    own = [each for each in passing if rows[each]["k"] == rows[place]["k"]]
    if value == "lag":
        return rows[own[-3]]["n"] if len(own) > 2 else None
    if value == "count":
        return sum(rows[each]["n"] is not None for each in own[-4:])
    known = [rows[each]["n"] for each in own if each >= place - 4 and rows[each]["n"] is not None]
    return sum(known) if known else None
