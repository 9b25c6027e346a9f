"""Silences by several workers: states are lost, batches and marks of the clock replayed, without a change of any.

The rows are those of a stream, or of its join with a table whose rows change between the batches.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grouping.model.column import EventTime
from grouping.model.expression import Call, Column, Slot, TableColumn, Value
from grouping.model.ids import StreamId
from grouping.model.table import Table
from grouping.plan.computation import Computation
from grouping.plan.group import GroupPlan, SelectItem, SelectList
from grouping.plan.lookup_join import JoinKey, LookupJoin
from grouping.plan.silence import SilentKeys
from grouping.store.constant_table import FRAMES, Entry
from spark_jobs.engine.operators.lookup_join.table_view import TableView
from tests.unit.joins.join_queries import view_of
from tests.unit.matching.event_batches import header, stream
from tests.unit.matching.matching import Store, destination, entry
from tests.unit.states.partition_workers import PARTITION, ClockDriver, PartitionTopic, PartitionWorker, befall, turns

STREAM = stream("k STRING", "n INT", "r STRING")
TIMED = msgspec.structs.replace(
    stream("k STRING", "n INT", "r STRING", "t TIMESTAMP"), timestamps="seconds", declared_time=EventTime("t")
)
"""The same stream with the event time in a column."""
LIMITS = Table("t_1", "limits", stream("r STRING", "n INT").columns, ("r",), "limits", "json", "")
K, N, R = (Column(column.name, str(column.type)) for column in STREAM.columns)
INTERVAL, DELAY = 8, 2
SELECTS = {"k": ("k",), "n": ("n", "_time"), "kn": ("k", "n"), "all": ("k", "n", "_time")}
Row = dict[str, Any]


class _Store(Store):
    """The plans of both groups, and SELECT lists by the names of their columns.

    The column `n` is that of the stream, or of the joined table.
    """

    def __init__(self, *, joined: bool) -> None:
        super().__init__()
        n = Column.of(TableColumn("limits", "n"), "INT") if joined else N
        nodes = (LookupJoin("t_1", "limits", (JoinKey(R, "r", "STRING"),)),) if joined else ()
        silence = SilentKeys.of([K], INTERVAL * 1000, (Call(">", (n, Value(1, "INT")), "BOOLEAN"),))
        self.computation = Computation.of(StreamId("s_1"), nodes, silence=silence)
        for name, where in (("g_all", ()), ("g_key", (Call("=", (K, Slot(0)), "BOOLEAN"),))):
            self.known_plans[name] = GroupPlan(name, "s_1", "", where, self.computation)  # type: ignore[arg-type]
        self._columns = {"k": K, "n": n, "_time": Column("_time", "TIMESTAMP")}

    def selects(self, stream_id: str, ids: list[str]) -> dict[str, SelectList]:
        """Return SELECT lists."""
        return {
            name: SelectList(name, tuple(SelectItem(each, self._columns[each]) for each in SELECTS[name]))  # type: ignore[arg-type]
            for name in ids
        }


class Asked(NamedTuple):
    """A query, the batch at which it begins, and how many batches it lasts."""

    key: str | None
    select: str
    begins: int
    lasts: int

    def entry(self, name: int, first: int) -> Entry:
        """Return the entry of the query in the constant tables."""
        since = (0,) * PARTITION + (first,)
        types, values = ((), ()) if self.key is None else (("STRING",), (self.key,))
        group = "g_all" if self.key is None else "g_key"
        return entry(name, types, values, group=group, select=self.select, edge=FRAMES, since=since)


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "k": st.sampled_from(["a", "b", "c", None]),
            "n": st.sampled_from([0, 2, 5, None]),
            "late": st.sampled_from([0, 0, 0, 1, 4, -6]),
            "r": st.sampled_from(["x", "x", "y", None]),
        }
    ),
    min_size=1,
    max_size=24,
)
QUERIES = st.lists(
    st.builds(
        Asked,
        st.sampled_from(["a", "b", None]),
        st.sampled_from(["k", "n", "kn"]),
        st.integers(0, 5),
        st.integers(1, 9),
    ),
    min_size=1,
    max_size=4,
)
TABLES = st.lists(
    st.dictionaries(st.sampled_from(["x", "y"]), st.sampled_from([0, 2, 5, None])), min_size=10, max_size=10
)
"""The rows of the table at each turn: `n` by `r`."""
MARKS = st.dictionaries(st.integers(0, 9), st.lists(st.integers(0, 9), min_size=1, max_size=2), max_size=4)
"""By turn, the marks before its batch: how far each is ahead of the events so far, in seconds."""


def _timed(rows: list[Row]) -> list[Row]:
    return [{**row, "at": 100 + 2 * place - row["late"]} for place, row in enumerate(rows)]


@settings(max_examples=60, deadline=None)
@given(
    rows=ROWS,
    queries=QUERIES,
    turns=turns(10, 5, 3, "lost"),
    gap=st.sampled_from([1, 3]),
    marks=MARKS,
    declared=st.booleans(),
    joined=st.booleans(),
    tables=TABLES,
)
def test_silences_survive_workers_and_replays(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[Row],
    queries: list[Asked],
    turns: list[tuple[int, int, int, str]],
    gap: int,
    marks: dict[int, list[int]],
    declared: bool,
    joined: bool,
    tables: list[dict[str, int | None]],
) -> None:
    """Each batch has the silences of a fold over single events, in any worker and after any number of replays.

    The event time is the record's, or a column, whatever the record's time is then.

    The first query lasts, since a state that begins anew knows no earlier watermark. Over a join it reads all columns,
    since files of changes are of no use to a state with a further column.
    """
    rows, queries = _timed(rows), [Asked(None, "all" if joined else "kn", 0, 99), *queries]
    records = [row | {"t": row["at"], "at": 900 - place} for place, row in enumerate(rows)] if declared else rows
    topic = PartitionTopic(TIMED if declared else STREAM, records, gap)
    folder, clock = tmp_path_factory.mktemp("states"), [0.0]
    workers = [PartitionWorker(topic, folder, clock) for _ in range(2)]
    driver, store, views = ClockDriver(workers[0].settings, STREAM), _Store(joined=joined), dict[str, TableView]()
    rows = [dict(row) for row in rows]
    live: dict[int, int] = {}
    fold = _Fold(rows)
    at = 0
    for number, (count, turn, pieces, fate) in enumerate(turns):
        first, last = at * gap, min(at + count, len(rows))
        began = [name for name, query in enumerate(queries) if query.begins == number]
        gone = [name for name, query in enumerate(queries) if query.begins + query.lasts == number]
        live |= dict.fromkeys(began, at)
        for name in gone:
            live.pop(name, None)
        version = store.commit(
            [destination(name) for name in gone], [queries[name].entry(name, first) for name in began]
        )
        if joined:
            views = {"t_1": view_of(LIMITS, [{"r": r, "n": n} for r, n in tables[number].items()])}
            for place in range(at, last):
                rows[place]["n"] = tables[number].get(rows[place]["r"])
        # Over a join, the files stay: the log does not have the rows that the table had.
        befall(fate, workers, turn, topic, folder, clock, keeps_files=joined)
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
            expected = _results(rows, records, queries, live, wanted, gap)
            assert sorted(_result_of(each, store.computation) for each in made) == sorted(expected)
        at = last


class _Fold:
    """The silences by a fold over single events."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows
        self._watermark = -(10**9)
        self._latest: dict[Any, tuple[int, int]] = {}

    def mark(self, watermark: int) -> list[int]:
        """Return the rows of the keys that are silent by a mark."""
        self._watermark = max(self._watermark, watermark)
        return self._silent()

    def events(self, places: range) -> list[int]:
        """Return the rows of the keys that fall silent with some events."""
        found = []
        for place in places:
            row = self.rows[place]
            is_late = row["at"] < self._watermark
            self._watermark = max(self._watermark, row["at"] - DELAY)
            found += self._silent()
            if not is_late and row["n"] is not None and row["n"] > 1:
                if row["at"] >= self._latest.get(row["k"], (row["at"], 0))[0]:
                    self._latest[row["k"]] = row["at"], place
        return found

    def _silent(self) -> list[int]:
        ended = [key for key, (at, _) in self._latest.items() if at + INTERVAL <= self._watermark]
        return sorted(self._latest.pop(key)[1] for key in ended)


def _result_of(row: dict[str, Any], computation: Computation) -> tuple[str, str, str]:
    assert header(row, "ce_source") == computation.computation_id
    cause = int(header(row, "cause").rpartition("/")[2])
    shard, position = header(row, "ce_id").removeprefix(f"{computation.computation_id}/").split("/")
    assert int(shard) == PARTITION
    assert int(position) % (1 << 21) == cause
    return row["key"].decode(), header(row, "cause"), repr(json.loads(row["value"]))


def _results(
    rows: list[Row], records: list[Row], queries: list[Asked], live: dict[int, int], places: list[int], gap: int
) -> list[tuple[str, str, str]]:
    """Return the results of silences: an entry has those of rows from its begin on."""
    found = []
    for place in places:
        row, at = rows[place], records[place]["at"]
        time = f"1970-01-01T00:{at // 60:02}:{at % 60:02}Z"
        values = {"k": row["k"], "n": row["n"], "_time": time}
        for name, begin in live.items():
            if place >= begin and queries[name].key in (None, row["k"]):
                shown = {each: values[each] for each in SELECTS[queries[name].select]}
                found.append((destination(name), f"quotes/{PARTITION}/{place * gap}", repr(shown)))
    return found
