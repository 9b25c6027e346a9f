"""Changes of a table by workers that lose their states and replay batches, beside a fold of one record at a time."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.evaluation.one_entry import VERSION
from grouping.compiler.compiler import compile_select
from grouping.model.catalog import Catalog, StreamColumn
from grouping.model.table import Table
from grouping.plan.group import SelectList
from grouping.plan.table_changes import table_changes
from grouping.settings.settings import Settings
from grouping.store.constant_table import Block, Entry
from spark_jobs.engine.constants.constant_cache import ConstantTables
from spark_jobs.engine.isolation.not_evaluated import NotEvaluatedLetters
from spark_jobs.engine.isolation.unit_guard import UnitGuard
from spark_jobs.engine.isolation.unit_selection import UnitSelection
from spark_jobs.engine.pipeline import evaluate
from spark_jobs.engine.rows.cpu_budget import CpuBudget
from spark_jobs.engine.rows.output import dead_letter_code
from spark_jobs.engine.stages.task import Task
from spark_jobs.runtime.kafka.range_reader import SourceRange
from spark_jobs.runtime.states.log_states import LogStates
from spark_jobs.runtime.states.row_snapshots import RowSnapshots
from tests.stack.changes.table_oracle import QUERIES, TableChange, TableFold, TableQuery, TableRecord
from tests.unit.matching.event_batches import batch, headers
from tests.unit.matching.matching import Store, apart, destination
from tests.unit.states.partition_workers import turns

_COLUMNS = (("k", "STRING"), ("p", "DOUBLE"), ("s", "STRING"), ("l", "MAP<STRING,INT>"))
TABLE = Table("t_1", "profiles", tuple(StreamColumn(*each) for each in _COLUMNS), ("k",), "source", "json", "")
STREAM = msgspec.structs.replace(table_changes(TABLE), start_offsets={"3": 0})
PARTITION = 3
_SETTINGS = Settings(prefix="cq.")
Row = dict[str, Any]
Result = tuple[str, str, TableChange]
"""Destination, id and change."""


class _Tables(Store):
    """The constant tables, with the queries' own SELECT lists."""

    def __init__(self) -> None:
        super().__init__()
        catalog = Catalog(tables=[TABLE])
        self.queries = [compile_select(each.select.format(table="profiles"), catalog) for each in QUERIES]
        self.known_plans = {each.plan.group_id: each.plan for each in self.queries}

    def selects(self, stream_id: str, ids: list[str]) -> dict[str, SelectList]:
        """Return SELECT lists."""
        return {each.select.select_id: each.select for each in self.queries if each.select.select_id in ids}

    def entry(self, number: int, since: int) -> Entry:
        """Return the entry of a query whose results begin at an offset."""
        query = self.queries[number]
        block = Block(query.plan.group_id, query.row.type_texts, query.select.select_id, "shared", edge=query.edge)
        return Entry(block, destination(number), query.row, number, 3, since=(0,) * PARTITION + (since,))


class _Topic:
    """The table's only partition, which `RangeReader` reads."""

    def __init__(self, records: Sequence[TableRecord]) -> None:
        self.records = records

    def between(self, first: int, end: int) -> pa.RecordBatch:
        """Return the records with offsets in [first, end)."""
        some = self.records[first:end]
        return batch(
            [value for _, value in some], [key and key.encode() for key, _ in some], [PARTITION] * len(some), first
        )

    def read(self, ranges: Sequence[SourceRange]) -> Iterator[tuple[SourceRange, Iterator[pa.RecordBatch]]]:
        """As `RangeReader.read`: a range in batches of two records."""
        [each] = ranges
        starts = range(each.first, each.end, 2)
        yield each, (self.between(first, min(first + 2, each.end)) for first in starts)


class _Worker:
    """A worker process with its states."""

    def __init__(self, topic: _Topic, folder: Path, clock: list[float], own_indexes: bool) -> None:
        config = Settings(prefix="cq.", data=folder)
        self.states = LogStates(
            config,
            lambda _: topic,  # type: ignore[arg-type, return-value]
            lambda config: RowSnapshots(config, lambda: clock[0]),
        )
        self._tables = ConstantTables(STREAM.stream_id)
        self._topic = topic
        self._own_indexes = own_indexes

    def run(self, store: _Tables, version: Any, first: int, end: int, piece: int, *, complete: bool) -> list[Result]:
        """Evaluate a batch in Arrow batches of some records; an incomplete one stops before its last piece."""
        snapshot = self._tables.at(version, store)
        if not snapshot.computations or first == end:
            return []
        if self._own_indexes:
            snapshot = apart(snapshot)
        states = self.states.begun(STREAM, snapshot, {}, PARTITION, first)
        guard = UnitGuard(UnitSelection(), NotEvaluatedLetters(STREAM, _SETTINGS), set(), CpuBudget(60.0, 1.0))
        task = Task.of(STREAM, _SETTINGS, VERSION, guard, snapshot, {}, states=states)
        found: list[Result] = []
        for begin in range(first, end, piece):
            if not complete and begin + piece >= end:
                return found
            for made in evaluate(task, self._topic.between(begin, min(begin + piece, end))):
                if dead_letter_code(made) is None:
                    found += map(_result, made.to_pylist())
        self.states.ended(STREAM, PARTITION, end, states)
        return found


def _result(row: Row) -> Result:
    told = dict(headers(row))
    assert ("op" in told) != ("edge" in told)
    change = TableChange(
        (told.get("op") or told["edge"]).decode(),
        json.loads(told["before"]) if "before" in told else None,
        json.loads(row["value"]),
    )
    return row["key"].decode(), told["ce_id"].decode(), change


def _set(row: Row) -> TableRecord:
    return TableRecord("other", json.dumps(row).encode())


RECORDS = st.lists(
    st.one_of(
        st.builds(
            _set,
            st.fixed_dictionaries(
                {
                    "k": st.sampled_from(["a", "b", "é"]),
                    "p": st.sampled_from([0.5, 1.0, 2.5, None]),
                    "s": st.sampled_from(["a", "b", None]),
                    "l": st.sampled_from([{"x": 1}, {}, None]),
                }
            ),
        ),
        st.sampled_from([TableRecord(key, None) for key in ("a", "b", "é", "never", None)]),
        st.sampled_from([TableRecord("a", b'{"k": null, "p": 2}'), TableRecord("a", b'{"p": 2}')]),
    ),
    min_size=1,
    max_size=18,
)
TURNS = turns(6, 6, 4)


@settings(max_examples=40, deadline=None)
@given(
    records=RECORDS,
    begins=st.lists(st.integers(0, 4), min_size=len(QUERIES), max_size=len(QUERIES)),
    turns=TURNS,
    lost=st.booleans(),
    own_indexes=st.booleans(),
)
def test_changes_are_those_of_a_fold(
    tmp_path_factory: pytest.TempPathFactory,
    records: list[TableRecord],
    begins: list[int],
    turns: list[tuple[int, int, int, str]],
    lost: bool,
    own_indexes: bool,
) -> None:
    """Each batch has the changes and edges of a fold of single records, whoever evaluates it, and however often."""
    topic, folder, clock = _Topic(records), tmp_path_factory.mktemp("states"), [0.0]
    workers = [_Worker(topic, folder, clock, own_indexes) for _ in range(2)]
    store, fold, live = _Tables(), TableFold(), dict[object, TableQuery]()
    at = 0
    for number, (count, turn, piece, fate) in enumerate(turns):
        first, end = at, min(at + count, len(records))
        new = [name for name, begin in enumerate(begins) if begin == number]
        live |= {name: QUERIES[name] for name in new}
        version = store.commit((), [store.entry(name, first) for name in new])
        if fate == "killed":
            workers[turn] = _Worker(topic, folder, clock, own_indexes)
        if lost and fate == "killed":
            for path in (*folder.rglob("*.rows"), *folder.rglob("*.changes")):
                path.write_bytes(path.read_bytes()[:-3])
        if fate == "minute":
            clock[0] += 61
        if fate in ("stopped", "again"):
            workers[turn].run(store, version, first, end, piece, complete=fate == "again")
        if fate == "elsewhere":
            workers[1 - turn].run(store, version, first, end, piece, complete=False)
        made = workers[turn].run(store, version, first, end, piece, complete=True)
        expected = [
            (destination(name), f"profiles/{PARTITION}/{place}", change)
            for place in range(first, end)
            for name, change in fold.changes(records[place], live.items())
        ]
        assert _by_destination(made) == _by_destination(expected)
        at = end


def _by_destination(results: Sequence[Result]) -> dict[str, list[Any]]:
    """Return the results of each destination, in their order."""
    found = defaultdict(list)
    for name, *rest in results:
        found[name].append(rest)
    return dict(found)
