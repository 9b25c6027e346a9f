"""Workers that evaluate changes of a table, and its topic with a single partition."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from gateway.evaluation.one_entry import VERSION
from grouping.compiler.compiler import compile_select
from grouping.model.catalog import Catalog, Stream
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
from tests.stack.changes.table_oracle import QUERIES, TableChange, TableRecord
from tests.unit.matching.event_batches import batch, headers
from tests.unit.matching.matching import Store, apart, destination

__all__ = ["PARTITION", "RowTopic", "TableConstants", "TableResult", "TableWorker", "by_destination", "changes_of"]

PARTITION = 3
_SETTINGS = Settings(prefix="cq.")
Row = dict[str, Any]
TableResult = tuple[str, str, TableChange]
"""Destination, id and change."""


def changes_of(table: Table) -> Stream:
    """Return the stream of a table's changes, from the beginning of the only partition."""
    return msgspec.structs.replace(table_changes(table), start_offsets={str(PARTITION): 0})


class TableConstants(Store):
    """The constant tables, with the queries' own SELECT lists."""

    def __init__(self, table: Table) -> None:
        super().__init__()
        catalog = Catalog(tables=[table])
        self.queries = [compile_select(each.select.format(table=table.name), catalog) for each in QUERIES]
        self.known_plans = {each.plan.group_id: each.plan for each in self.queries}

    def selects(self, stream_id: str, ids: list[str]) -> dict[str, SelectList]:
        """Return SELECT lists."""
        return {each.select.select_id: each.select for each in self.queries if each.select.select_id in ids}

    def entry(self, number: int, since: int) -> Entry:
        """Return the entry of a query whose results begin at an offset."""
        query = self.queries[number]
        block = Block(query.plan.group_id, query.row.type_texts, query.select.select_id, "shared", edge=query.edge)
        return Entry(block, destination(number), query.row, number, 3, since=(0,) * PARTITION + (since,))


class RowTopic:
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


class TableWorker:
    """A worker process with its states."""

    def __init__(self, stream: Stream, topic: RowTopic, folder: Path, clock: list[float], own_indexes: bool) -> None:
        config = Settings(prefix="cq.", data=folder)
        self.states = LogStates(
            config,
            lambda _: topic,  # type: ignore[arg-type, return-value]
            lambda config: RowSnapshots(config, lambda: clock[0]),
        )
        self._tables = ConstantTables(stream.stream_id)
        self._stream = stream
        self._topic = topic
        self._own_indexes = own_indexes
        self.budget = CpuBudget(60.0, 1.0)

    def run(
        self, store: TableConstants, version: Any, first: int, end: int, piece: int, *, complete: bool
    ) -> list[TableResult]:
        """Evaluate a batch in Arrow batches of some records; an incomplete one stops before its last piece."""
        snapshot = self._tables.at(version, store)
        if not snapshot.computations or first == end:
            return []
        if self._own_indexes:
            snapshot = apart(snapshot)
        states = self.states.begun(self._stream, snapshot, {}, PARTITION, first)
        guard = UnitGuard(UnitSelection(), NotEvaluatedLetters(self._stream, _SETTINGS), set(), self.budget)
        task = Task.of(self._stream, _SETTINGS, VERSION, guard, snapshot, {}, states=states)
        found: list[TableResult] = []
        for begin in range(first, end, piece):
            if not complete and begin + piece >= end:
                return found
            for made in evaluate(task, self._topic.between(begin, min(begin + piece, end))):
                if dead_letter_code(made) is None:
                    found += map(_result, made.to_pylist())
        self.states.ended(self._stream, PARTITION, end, states)
        return found


def _result(row: Row) -> TableResult:
    fields = dict(headers(row))
    assert ("op" in fields) != ("edge" in fields)
    change = TableChange(
        (fields.get("op") or fields["edge"]).decode(),
        json.loads(fields["before"]) if "before" in fields else None,
        json.loads(row["value"]),
    )
    return row["key"].decode(), fields["ce_id"].decode(), change


def by_destination(results: Sequence[TableResult]) -> dict[str, list[Any]]:
    """Return the results of each destination, in their order."""
    found = defaultdict(list)
    for name, *rest in results:
        found[name].append(rest)
    return dict(found)
