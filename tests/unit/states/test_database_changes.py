"""Changes of tables in the formats of databases, beside a fold of one record at a time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import count as counter
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grouping.model.catalog import StreamColumn
from grouping.model.expression import Column
from grouping.model.table import Table
from grouping.plan.row_before import RowBefore
from grouping.settings.settings import Settings
from spark_jobs.engine.operators.lookup_join.table_events import TableEvents, decode_stream
from spark_jobs.engine.operators.row_before.operator import RowBeforeOperator
from spark_jobs.engine.rows.cpu_budget import CpuBudget
from spark_jobs.engine.rows.events import column_array
from spark_jobs.engine.stages.table_rows import TableRows
from spark_jobs.engine.stages.task import KeptRows
from spark_jobs.engine.stages.whole_rows import whole_rows
from tests.stack.changes.table_oracle import QUERIES, UNSENT, DatabaseFold, TableFold, TableQuery, TableRecord
from tests.unit.matching.matching import destination
from tests.unit.states.partition_workers import turns
from tests.unit.states.table_workers import (
    PARTITION,
    RowTopic,
    TableConstants,
    TableWorker,
    by_destination,
    changes_of,
)
from tests.unit.states.test_table_changes import TABLE

_KEYS = st.sampled_from(["a", "b", "é"])
_ROWS = st.fixed_dictionaries(
    {
        "k": _KEYS,
        "p": st.sampled_from([0.5, 1.0, 2.5, None]),
        "s": st.sampled_from(["a", "b", None, UNSENT, UNSENT]),
        "l": st.sampled_from([{"x": 1}, {}, None]),
    }
)
_BEFORE = st.none() | st.fixed_dictionaries({"k": _KEYS})
_BAD = st.sampled_from([{"op": "z"}, {"op": "c", "after": {"k": None}}, {}, {"op": "m"}])
_DEBEZIUM = st.one_of(
    st.builds(lambda row: {"op": "c", "before": None, "after": row}, _ROWS),
    st.builds(lambda row, old: {"op": "u", "before": old, "after": row}, _ROWS, _BEFORE),
    st.builds(lambda key: {"op": "d", "before": {"k": key}, "after": None}, _KEYS),
    st.just({"op": "t"}),
    _BAD,
)
_TEXTS = st.fixed_dictionaries(
    {"k": _KEYS, "p": st.sampled_from(["0.5", "1.0", "2.5", None]), "s": st.sampled_from(["a", "b", None])}
)
_CHANGED = st.tuples(_TEXTS, st.one_of(st.just({"p": "1"}), st.fixed_dictionaries({"k": _KEYS})))
_CANAL = st.one_of(
    st.builds(lambda rows: {"type": "INSERT", "data": rows}, st.lists(_TEXTS, min_size=1, max_size=4)),
    st.builds(lambda rows: {"type": "DELETE", "data": rows}, st.lists(_TEXTS, min_size=1, max_size=2)),
    st.builds(
        lambda pairs: {"type": "UPDATE", "data": [row for row, _ in pairs], "old": [old for _, old in pairs]},
        st.lists(_CHANGED, min_size=1, max_size=4),
    ),
    st.just({"type": "TRUNCATE", "isDdl": True}),
)
_RECORDS = st.one_of(
    st.tuples(st.just("debezium-json"), st.lists(st.none() | _DEBEZIUM, min_size=1, max_size=18)),
    st.tuples(st.just("canal-json"), st.lists(st.none() | _CANAL, min_size=1, max_size=10)),
)


def _table(form: str) -> Table:
    return msgspec.structs.replace(TABLE, format=form)


def _records(changes: Sequence[Any]) -> list[TableRecord]:
    return [TableRecord("k", None if change is None else json.dumps(change).encode()) for change in changes]


@settings(max_examples=60, deadline=None)
@given(
    given=_RECORDS,
    begins=st.lists(st.integers(0, 4), min_size=len(QUERIES), max_size=len(QUERIES)),
    turns=turns(6, 6, 4),
    lost=st.booleans(),
    own_indexes=st.booleans(),
)
def test_changes_are_those_of_a_fold(
    tmp_path_factory: pytest.TempPathFactory,
    given: tuple[str, list[Any]],
    begins: list[int],
    turns: list[tuple[int, int, int, str]],
    lost: bool,
    own_indexes: bool,
) -> None:
    """Truncates, changed keys, values that were not sent and records of several rows, however they are cut."""
    table, records = _table(given[0]), _records(given[1])
    stream, topic = changes_of(table), RowTopic(records)
    folder, clock = tmp_path_factory.mktemp("states"), [0.0]
    workers = [TableWorker(stream, topic, folder, clock, own_indexes) for _ in range(2)]
    store, rows, fold, live = TableConstants(table), DatabaseFold(), TableFold(), dict[object, TableQuery]()
    at = 0
    for number, (count, turn, piece, fate) in enumerate(turns):
        first, end = at, min(at + count, len(records))
        new = [name for name, begin in enumerate(begins) if begin == number]
        live |= {name: QUERIES[name] for name in new}
        version = store.commit((), [store.entry(name, first) for name in new])
        if fate == "killed":
            workers[turn] = TableWorker(stream, topic, folder, clock, own_indexes)
            for path in (*folder.rglob("*.rows"), *folder.rglob("*.changes")) if lost else ():
                path.write_bytes(path.read_bytes()[:-3])
        if fate == "minute":
            clock[0] += 61
        if fate in ("stopped", "again"):
            workers[turn].run(store, version, first, end, piece, complete=fate == "again")
        if fate == "elsewhere":
            workers[1 - turn].run(store, version, first, end, piece, complete=False)
        made = workers[turn].run(store, version, first, end, piece, complete=True)
        expected = [
            (destination(name), f"profiles/{PARTITION}/{place}" + (f"/{n}" if n else ""), change)
            for place in range(first, end)
            for n, single in enumerate(rows.changes(records[place].value))
            for name, change in fold.changes(single, live.items())
        ]
        assert by_destination(made) == by_destination(expected)
        at = end


@settings(max_examples=60, deadline=None)
@given(given=_RECORDS, size=st.integers(1, 7))
def test_rows_are_those_of_a_fold(given: tuple[str, list[Any]], size: int) -> None:
    """A snapshot and a digest have each row once, in the order of the changes that set the rows."""
    table, records, fold = _table(given[0]), _records(given[1]), DatabaseFold()
    stream, topic = changes_of(table), RowTopic(records)
    rows = TableRows(stream, PARTITION)
    for first in range(0, len(records), size):
        batch = topic.between(first, min(first + size, len(records)))
        for events, _ in decode_stream(batch, stream, Settings(prefix="cq.")):
            rows.fold(events)
    expected: dict[str | None, tuple[int, int, Any]] = {}
    for place, record in enumerate(records):
        for n, (key, value) in enumerate(fold.changes(record.value)):
            expected.pop(key, None)
            if value is not None:
                expected[key] = place, n, json.loads(value)
    found, wanted = rows.events(), list(expected.values())
    assert found.number is not None
    assert [*zip(found.offsets.tolist(), found.number.tolist(), strict=True)] == [each[:2] for each in wanted]
    for column in table.columns if wanted else ():
        values = column_array([row[column.name] for *_, row in wanted], column.type)
        assert found.column(column.name).to_pylist() == values.to_pylist()


def test_a_truncate_removes_keys_of_all_types() -> None:
    """The state of rows before has the keys in another form, and gives them back in their order."""
    kinds = {
        "day": "DATE",
        "at": "TIMESTAMP",
        "f": "FLOAT",
        "d": "DOUBLE",
        "n": "INT",
        "b": "BOOLEAN",
        "x": "DECIMAL(9,2)",
        "raw": "BINARY",
        "t": "STRING",
    }
    columns = tuple(StreamColumn(*each) for each in (*kinds.items(), ("other", "STRING")))
    stream = changes_of(Table("t_1", "all", columns, tuple(kinds), "source", "canal-json", ""))
    row = {"day": "2026-11-29", "at": "2026-11-29 10:00:00.5", "f": "0.1", "d": "-1.5", "n": "7", "b": "1", "x": "1.50"}
    row |= {"raw": "AP8=", "t": "é", "other": "o"}
    rows = [row, row | {"day": "1969-01-01"}, row | {"d": "-1e300"}, row | {"t": "a"}]
    records = _records([{"type": "INSERT", "data": rows}, {"type": "TRUNCATE"}])
    plain, *pieces = (each for each, _ in decode_stream(RowTopic(records).between(0, 2), stream, Settings()))
    by = RowBefore.of(frozenset(Column.of(name, kind) for name, kind in kinds.items())).by
    operator = RowBeforeOperator.of(stream, RowBefore(by), [], 30)
    kept = KeptRows(operator, operator.begin())
    operator.fold(kept.state, plain)
    found = whole_rows(pieces[0], kept)
    assert found.removals is not None and found.number is not None
    assert (found.removals.tolist(), found.number.tolist()) == ([True] * 4, [0, 1, 2, 3])
    places = pa.array([1, 2, 3, 0])
    for name in kinds:
        assert found.column(name).equals(plain.column(name).take(places)), name
    assert found.column("other").null_count == 4
    operator.fold(kept.state, found)
    assert kept.state.present().size == 0


def test_a_record_of_many_rows_is_kept_once() -> None:
    """The rows of a record share its text: a megabyte for each of thousands of rows is more than Arrow can hold."""
    rows = [{"k": f"k{number}", "p": "1", "s": "x" * 100} for number in range(3000)]
    records = _records([{"type": "INSERT", "data": rows}, {"type": "TRUNCATE", "sql": "x" * 500_000}])
    stream = changes_of(_table("canal-json"))
    found = [events for events, _ in decode_stream(RowTopic(records).between(0, 2), stream, Settings(prefix="cq."))]
    folded = TableRows(stream, PARTITION)
    folded.fold(found[0])
    removals = whole_rows(found[1], folded)
    for events in (found[0], removals):
        assert isinstance(events, TableEvents)
        assert events.count == 3000
        assert events.source.nbytes < 1_000_000
        assert 4 <= events.longest_record <= 120


def test_a_truncate_has_the_time_of_its_removals(tmp_path: Path) -> None:
    """Removals of rows have as much CPU time as if each had come in a record of its own."""
    ticks = counter()
    rows = [{"k": f"k{number}", "p": "2", "s": "a"} for number in range(500)]
    table, records = _table("canal-json"), _records([{"type": "INSERT", "data": rows}, {"type": "TRUNCATE"}])
    store, stream = TableConstants(table), changes_of(table)
    worker = TableWorker(stream, RowTopic(records), tmp_path, [0.0], own_indexes=False)
    worker.budget = CpuBudget(2.0, 1.0, lambda: float(next(ticks)))
    version = store.commit((), [store.entry(number, 0) for number in range(len(QUERIES))])
    inserts = worker.run(store, version, 0, 1, 1, complete=True)
    deletes = worker.run(store, version, 1, 2, 1, complete=True)
    assert len(deletes) == len(inserts) > 500


def test_a_truncate_needs_one_partition() -> None:
    """With several partitions the record is a dead letter, as it is for joins."""
    stream = msgspec.structs.replace(changes_of(_table("debezium-json")), start_offsets={"3": 0, "4": 0})
    [(events, letters)] = decode_stream(RowTopic(_records([{"op": "t"}])).between(0, 1), stream, Settings(prefix="cq."))
    assert (events.count, letters is not None and letters.num_rows) == (0, 1)
