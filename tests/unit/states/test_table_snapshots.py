"""Rows of a table for snapshots, beside a fold of one record at a time."""

from __future__ import annotations

import json
import math

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.evaluation.one_entry import VERSION
from grouping.compiler.compiler import compile_select
from grouping.model.catalog import Catalog
from grouping.plan.group import GroupPlan, SelectList
from grouping.settings.settings import Settings
from grouping.store.constant_table import Block, Entry, Segment
from grouping.store.snapshot_notes import SnapshotNote
from spark_jobs.engine.isolation.not_evaluated import NotEvaluatedLetters
from spark_jobs.engine.isolation.unit_guard import UnitGuard
from spark_jobs.engine.isolation.unit_selection import UnitSelection
from spark_jobs.engine.operators.lookup_join.table_events import decode_stream
from spark_jobs.engine.pipeline import ROWS, evaluate
from spark_jobs.engine.rows.cpu_budget import CpuBudget
from spark_jobs.engine.rows.output import dead_letter_code
from spark_jobs.engine.stages.table_rows import TableRows
from spark_jobs.engine.stages.task import GroupRows, Task
from spark_jobs.runtime.worker.table_snapshots import end_record, one_query
from tests.stack.changes.table_oracle import QUERIES, Row, TableRecord
from tests.unit.matching.event_batches import batch, headers
from tests.unit.matching.matching import destination
from tests.unit.states.table_workers import PARTITION
from tests.unit.states.test_table_changes import RECORDS, STREAM, TABLE

_SETTINGS = Settings(prefix="cq.")
_CHANGES = tuple(query for query in QUERIES if not query.has_edges)


class _Definitions:
    """The plans and SELECT lists that the gateway has stored."""

    def __init__(self, number: int) -> None:
        self.query = compile_select(_CHANGES[number].select.format(table="profiles"), Catalog(tables=[TABLE]))

    def plans(self, stream_id: str, ids: list[str]) -> dict[str, GroupPlan]:
        """Return plans."""
        return {self.query.plan.group_id: self.query.plan}

    def selects(self, stream_id: str, ids: list[str]) -> dict[str, SelectList]:
        """Return SELECT lists."""
        return {self.query.select.select_id: self.query.select}

    def note(self, since: int) -> SnapshotNote:
        """Return the note of a CQ that begins at an offset."""
        block = Block(
            self.query.plan.group_id,
            self.query.row.type_texts,
            self.query.select.select_id,
            "shared",
            edge=self.query.edge,
        )
        entry = Entry(block, destination(0), self.query.row, 0, 3, since=(0,) * PARTITION + (since,))
        segment = Segment.of((), [entry]).encode()
        return SnapshotNote(STREAM.stream_id, "alice", "mine", 7, entry.since, "shared", 3, segment)


def _records(some: list[TableRecord], first: int) -> pa.RecordBatch:
    keys = [key and key.encode() for key, _ in some]
    return batch([value for _, value in some], keys, [PARTITION] * len(some), first)


def _folded(records: list[TableRecord]) -> dict[str, tuple[int, Row]]:
    """Return by key the offset of the record that set the row, and the row."""
    rows: dict[str, tuple[int, Row]] = {}
    for offset, (record_key, value) in enumerate(records):
        row = None if value is None else json.loads(value)
        key = record_key if row is None else row.get("k")
        if key is not None and row is None:
            rows.pop(key, None)
        elif key is not None and row is not None:
            rows[key] = (offset, row)
    return rows


@settings(max_examples=60, deadline=None)
@given(
    records=RECORDS,
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=18),
    number=st.integers(0, len(_CHANGES) - 1),
    base=st.sampled_from([0, 1000]),
)
def test_a_snapshot_is_the_rows_of_a_fold(records: list[TableRecord], sizes: list[int], number: int, base: int) -> None:
    """Any cutting into batches gives the rows of the table that match, by offset, under the ids of their records."""
    rows, at = TableRows(STREAM, PARTITION), 0
    while at < len(records):
        count = sizes[at % len(sizes)]
        for events, _ in decode_stream(_records(records[at : at + count], base + at), STREAM, _SETTINGS):
            rows.fold(events)
        at += count
    definitions, query = _Definitions(number), _CHANGES[number]
    note = definitions.note(base + len(records))
    constants = one_query(STREAM.stream_id, note, definitions)  # type: ignore[arg-type]
    guard = UnitGuard(UnitSelection(), NotEvaluatedLetters(STREAM, _SETTINGS), set(), CpuBudget(math.inf))
    task = Task.of(STREAM, _SETTINGS, VERSION, guard, constants, {})
    [joined] = task.joins
    found = []
    table = rows.snapshot()
    for made in evaluate(task, GroupRows(table, joined.snapshot), ROWS) if table.count else ():
        assert dead_letter_code(made) is None
        found += made.to_pylist()
    headers_of = [dict(headers(each)) for each in found]
    assert {each["op"] for each in headers_of} <= {b"snapshot"}
    expected = sorted((at, query.shown(row)) for at, row in _folded(records).values() if query.matches(row))
    assert [
        (each["ce_id"].decode(), json.loads(one["value"])) for each, one in zip(headers_of, found, strict=True)
    ] == [(f"profiles/{PARTITION}/{base + at}", row) for at, row in expected]
    assert {each["key"].decode() for each in found} <= {destination(0)}


def test_the_end_of_a_snapshot_is_a_record_of_the_destination() -> None:
    """The record `cq.snapshot` says how many rows came before, under an id of the destination."""
    [row] = end_record(STREAM, "d_1", _Definitions(0).note(5), 3, _SETTINGS).to_pylist()
    assert (row["key"], row["value"], row["topic"], row["partition"]) == (b"d_1", b'{"rows":3}', "cq.results", 3)
    assert dict(headers(row)) == {
        "ce_specversion": b"1.0",
        "ce_type": b"cq.snapshot",
        "ce_source": b"profiles",
        "ce_id": b"d_1/snapshot",
        "ce_time": b"1970-01-01T00:00:00.007Z",
    }
