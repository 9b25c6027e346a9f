"""Stays by several workers: states are lost, batches and marks of the clock replayed, without a change of any.

The rows are those of a stream, of its join with a table whose rows change between the batches, or the changes of a
table.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grouping.model.expression import Call, Column, TableColumn, Value
from grouping.model.ids import StreamId
from grouping.model.query import Edge
from grouping.model.table import Table
from grouping.plan.computation import Computation
from grouping.plan.group import GroupPlan, SelectItem, SelectList
from grouping.plan.lasting import Height, LastingMatches
from grouping.plan.lookup_join import JoinKey, LookupJoin
from grouping.plan.stay import Stay, StayBound
from grouping.store.constant_table import Entry
from spark_jobs.engine.operators.lookup_join.table_view import TableView
from tests.unit.joins.join_queries import view_of
from tests.unit.matching.event_batches import header, stream
from tests.unit.matching.matching import Store, destination, entry
from tests.unit.states.partition_workers import PARTITION, ClockDriver, PartitionTopic, PartitionWorker, befall, turns
from tests.unit.states.table_workers import changes_of

STREAM = stream("k STRING", "n INT", "b BOOLEAN", "r STRING")
CHANGES = changes_of(Table("t_2", "quotes", STREAM.columns, ("k",), STREAM.topic, "json", ""))
"""The changes of a table with the same columns."""
LIMITS = Table("t_1", "limits", stream("r STRING", "n INT").columns, ("r",), "limits", "json", "")
K, N, B, R = (Column(column.name, str(column.type)) for column in STREAM.columns)
TRUE = Call("=", (B, Value(True, "BOOLEAN")), "BOOLEAN")
INTERVAL, DELAY = 6, 2
Row = dict[str, Any]
Join = Literal["", "inner", "left", "changes"]
"""Which join has the column `n`; "" for the column of the stream, and "changes" for changes of a table."""


def plan_of(join: Join, *, until: bool) -> GroupPlan:
    """Return the plan of the queries."""
    joined = join in ("inner", "left")
    n = Column.of(TableColumn("limits", "n"), "INT") if joined else N
    nodes = (LookupJoin("t_1", "limits", (JoinKey(R, "r", "STRING"),), outer=join == "left"),) if joined else ()
    lasting = LastingMatches.of([K], INTERVAL * 1000, Height(n), () if until else (TRUE,), until=until)
    stay = Stay(StayBound(">", n, 0), StayBound("<", n, 1))
    computation, where = Computation.of(StreamId("s_1"), nodes, lasting=lasting), (stay.begin.conjunct,)
    return GroupPlan("g_1", "s_1", "", where, computation, stay=stay if until else None)  # type: ignore[arg-type]


SELECTS = {"k": ("k",), "n": ("n", "_edge"), "kn": ("k", "n")}


class _Store(Store):
    """SELECT lists by the names of their columns."""

    def __init__(self, plan: GroupPlan) -> None:
        super().__init__()
        self.known_plans["g_1"] = plan
        lasting = plan.lasting
        assert lasting is not None and lasting.height is not None
        self._columns = {"k": K, "n": lasting.height.column, "_edge": Column("_edge", "STRING")}

    def selects(self, stream_id: str, ids: list[str]) -> dict[str, SelectList]:
        """Return SELECT lists."""
        return {
            name: SelectList(name, tuple(SelectItem(each, self._columns[each]) for each in SELECTS[name]))  # type: ignore[arg-type]
            for name in ids
        }


class Asked(NamedTuple):
    """A query, the batch at which it begins, and how many batches it lasts."""

    constant: int
    select: str
    begins: int
    lasts: int
    edge: Edge = "both"

    def entry(self, name: int, first: int, *, until: bool) -> Entry:
        """Return the entry of the query in the constant tables; the constant of UNTIL is lower by 2."""
        since, count = (0,) * PARTITION + (first,), 2 if until else 1
        values = (self.constant, self.constant - 2)[:count]
        return entry(name, ("INT",) * count, values, select=self.select, edge=self.edge, since=since)


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "k": st.sampled_from(["a", "b", None]),
            "n": st.sampled_from([0, 2, 5, 5, 7, None]),
            "b": st.sampled_from([True, True, True, False]),
            "late": st.sampled_from([0, 0, 0, 1, 4, -6]),
            "r": st.sampled_from(["x", "x", "y", None]),
            "removed": st.sampled_from([False, False, False, True]),
        }
    ),
    min_size=1,
    max_size=24,
)
EDGES: st.SearchStrategy[Edge] = st.sampled_from(["enter", "exit", "both"])
QUERIES = st.lists(
    st.builds(
        Asked,
        st.sampled_from([-1, 1, 4, 6]),
        st.sampled_from([*SELECTS]),
        st.integers(0, 5),
        st.integers(1, 9),
        EDGES,
    ),
    min_size=1,
    max_size=4,
)
TABLES = st.lists(
    st.dictionaries(st.sampled_from(["x", "y"]), st.sampled_from([0, 2, 5, 7, None])), min_size=10, max_size=10
)
"""The rows of the table at each turn: `n` by `r`."""
MARKS = st.dictionaries(st.integers(0, 9), st.lists(st.integers(0, 9), min_size=1, max_size=2), max_size=4)
"""By turn, the marks before its batch: how far each is ahead of the events so far, in seconds."""


@dataclass
class _Stay:
    """A stay of a key, from a row on."""

    row: Row
    lasts: bool = True
    """Whether each row within the interval was a match so far."""


class _Stays:
    """The stays of a query, by a fold of single events."""

    def __init__(self, constant: int, *, until: bool) -> None:
        self._constant = constant
        self._until = until
        self._inside: dict[Any, _Stay] = {}
        self._waiting: list[tuple[int, int, str, _Stay]] = []
        """The time and the place of each result, its edge, and its stay."""

    def take(self, place: int, row: Row) -> None:
        """Take an event in that is not late."""
        key, value = row["k"], row["n"]
        is_match = value is not None and value > self._constant and (row["b"] or self._until)
        if value < self._constant - 2 if self._until and value is not None else not (is_match or self._until):
            for *_, stay in self._waiting:
                if stay.row["k"] == key and row["at"] <= stay.row["at"] + INTERVAL:
                    stay.lasts = False
            if (ended := self._inside.pop(key, None)) is not None:
                self._waiting.append((row["at"], place, "exit", ended))
        elif is_match and key not in self._inside:
            self._inside[key] = _Stay(row)
            self._waiting.append((row["at"] + INTERVAL, place, "enter", self._inside[key]))

    def ended(self, watermark: int) -> list[tuple[int, str]]:
        """Return the events, and the edges, that the watermark makes results."""
        ended = [each for each in self._waiting if each[0] < watermark]
        self._waiting = [each for each in self._waiting if each[0] >= watermark]
        return [(place, edge) for _, place, edge, stay in ended if stay.lasts]


class _Fold:
    """The stays of all live queries."""

    def __init__(self, rows: list[Row]) -> None:
        self._rows = rows
        self.gone = set[int]()
        """The events without a row of the table, where the join is an inner one."""
        self._watermark = -(10**9)
        self.queries: dict[int, _Stays] = {}

    def mark(self, watermark: int) -> list[tuple[int, int, str]]:
        """Return the queries, the events and the edges that a mark makes results."""
        self._watermark = max(self._watermark, watermark)
        return [(name, *each) for name, stays in self.queries.items() for each in stays.ended(self._watermark)]

    def events(self, places: range) -> list[tuple[int, int, str]]:
        """Return the queries, the events and the edges that some events make results."""
        found = []
        for place in places:
            row = self._rows[place]
            is_late = row["at"] < self._watermark
            found += self.mark(row["at"] - DELAY)
            for each in self.queries.values():
                if not is_late and place not in self.gone:
                    each.take(place, row)
        return found


@settings(max_examples=50, deadline=None)
@given(
    rows=ROWS,
    queries=QUERIES,
    turns=turns(10, 5, 3, "lost"),
    gap=st.sampled_from([1, 3]),
    marks=MARKS,
    edge=EDGES,
    until=st.booleans(),
    join=st.sampled_from(["", "inner", "left", "changes"]),
    tables=TABLES,
)
def test_stays_survive_workers_and_replays(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[Row],
    queries: list[Asked],
    turns: list[tuple[int, int, int, str]],
    gap: int,
    marks: dict[int, list[int]],
    edge: Edge,
    until: bool,  # noqa: FBT001  # drawn
    join: Join,
    tables: list[dict[str, int | None]],
) -> None:
    """Each batch has the stays of a fold over single events, in any worker and after any number of replays.

    The first query lasts, since a state that begins anew knows no earlier watermark.
    """
    is_table = join == "changes"
    until = until and not is_table
    rows = [{**row, "at": 100 + 2 * place - row["late"]} for place, row in enumerate(rows)]
    rows = [{**row, "k": row["k"] or "c"} if is_table else {**row, "removed": False} for row in rows]
    queries = [Asked(1, "kn", 0, 99, edge), *queries]
    topic, folder = PartitionTopic(CHANGES if is_table else STREAM, rows, gap), tmp_path_factory.mktemp("states")
    clock, plan = [0.0], plan_of(join, until=until)
    rows = [{**row, "n": None} if row["removed"] else dict(row) for row in rows]
    views: dict[str, TableView] = {}
    workers = [PartitionWorker(topic, folder, clock) for _ in range(2)]
    driver, store, fold = ClockDriver(workers[0].settings, topic.stream), _Store(plan), _Fold(rows)
    at = 0
    for number, (count, turn, pieces, fate) in enumerate(turns):
        first, last = at * gap, min(at + count, len(rows))
        began = [name for name, query in enumerate(queries) if query.begins == number]
        gone = [name for name in fold.queries if queries[name].begins + queries[name].lasts == number]
        fold.queries |= {name: _Stays(queries[name].constant, until=until) for name in began}
        for name in gone:
            del fold.queries[name]
        version = store.commit(
            [destination(name) for name in gone], [queries[name].entry(name, first, until=until) for name in began]
        )
        if join in ("inner", "left"):
            views = {"t_1": view_of(LIMITS, [{"r": r, "n": n} for r, n in tables[number].items()])}
            for place in range(at, last):
                rows[place]["n"] = tables[number].get(rows[place]["r"])
                if join == "inner" and rows[place]["r"] not in tables[number]:
                    fold.gone.add(place)
        # Over a join, the files stay: the log does not have the rows that the table had.
        befall(fate, workers, turn, topic, folder, clock, keeps_files=bool(views))
        steps = [(first, first, ahead) for ahead in marks.get(number, ())]
        for begin, end, ahead in [*steps, (first, last * gap, None)]:
            if ahead is None:
                state_clock, wanted = driver.at(first), fold.events(range(at, last))
            else:
                watermark = max((row["at"] for row in rows[:at]), default=100) + ahead
                state_clock, wanted = driver.mark(first, watermark * 1000), fold.mark(watermark)
            run = (store, version, begin, end, pieces)
            if fate == "stopped" and ahead is None:
                workers[turn].run(*run, complete=False, views=views, clock=state_clock)
            if fate == "again":
                workers[turn].run(*run, complete=True, views=views, clock=state_clock)
            if fate == "elsewhere" and ahead is None:
                workers[1 - turn].run(*run, complete=False, views=views, clock=state_clock)
            made = workers[turn].run(*run, complete=True, views=views, clock=state_clock)
            expected = [
                _result(name, queries[name], place, edge, rows[place], gap)
                for name, place, edge in wanted
                if queries[name].edge in (edge, "both")
            ]
            assert plan.computation is not None
            assert sorted(_result_of(each, plan.computation) for each in made) == sorted(expected)
        at = last


def _result_of(row: dict[str, Any], computation: Computation) -> tuple[str, str, str, str, int]:
    assert header(row, "ce_source") == computation.computation_id
    shard, position = header(row, "ce_id").removeprefix(f"{computation.computation_id}/").split("/")
    assert int(shard) == PARTITION
    edge = header(row, "edge")
    return row["key"].decode(), header(row, "cause"), edge, repr(json.loads(row["value"])), int(position)


def _result(name: int, query: Asked, place: int, edge: str, row: Row, gap: int) -> tuple[str, str, str, str, int]:
    """Return the result of a stay that began or ended with a row."""
    values = {**row, "_edge": edge}
    shown = {each: values[each] for each in SELECTS[query.select]}
    at = row["at"] + INTERVAL if edge == "enter" else row["at"]
    position = (at * 1000 << 21) + place * gap
    return destination(name), f"quotes/{PARTITION}/{place * gap}", edge, repr(shown), position
