"""The work of `mapInArrow` for a batch, in this process: decode, match, split; without Spark, Kafka and Redis."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from grouping.settings.settings import Settings
from grouping.store.notes import TableVersion
from spark_jobs.engine.constants.constant_cache import ConstantTables, Snapshot
from spark_jobs.engine.constants.load import Loads
from spark_jobs.engine.decode.decode import decode
from spark_jobs.engine.match.evaluate import matches
from spark_jobs.engine.match.residual import evaluate_expression
from spark_jobs.engine.operators.lookup_join.join import join
from spark_jobs.engine.operators.lookup_join.table_view import TableView
from spark_jobs.engine.results.split import split
from spark_jobs.engine.rows.events import Events
from spark_jobs.engine.rows.row_source import RowSource
from tests.benchmarks.material.tables import Contents

__all__ = ["Spent", "Worker"]


@dataclass(slots=True)
class Spent:
    """CPU seconds by step, of this process."""

    decode: float = 0.0
    match: float = 0.0
    output: float = 0.0
    events: int = 0
    results: int = 0

    @property
    def micros(self) -> dict[str, float]:
        """CPU time per event, µs."""
        steps = {"decode": self.decode, "match": self.match, "output": self.output}
        return {name: seconds / self.events * 1e6 for name, seconds in steps.items()}


@dataclass(slots=True)
class Worker:
    """A worker with the constant tables of a stream, whose queries may be over joins."""

    contents: Contents
    views: Mapping[str, TableView] = field(default_factory=dict)
    """By id, the tables that they join."""
    settings: Settings = field(default_factory=Settings)
    loads: Loads = field(default_factory=Loads)
    snapshot: Snapshot = field(init=False)

    def __post_init__(self) -> None:
        """Load the tables as a worker does."""
        tables = ConstantTables(self.contents.stream.stream_id)
        self.snapshot = tables.at(TableVersion(1, 1), self.contents)

    def run(self, batches: Sequence[pa.RecordBatch]) -> Spent:
        """Evaluate batches, and return the times of each step."""
        stream, spent = self.contents.stream, Spent()
        for batch in batches:
            began = time.process_time()
            events, _ = decode(batch, stream, self.settings)
            for column in stream.columns:
                events.values(column.name)
            decoded = time.process_time()
            found = [
                (rows, part)
                for rows, snapshot in self._rows(events)
                for part in matches(snapshot, rows, loads=self.loads)
            ]
            matched = time.process_time()
            for rows, part in found:
                for records in split(rows, part, stream, self.settings, evaluate_expression):
                    spent.results += records.num_rows
            spent.decode += decoded - began
            spent.match += matched - decoded
            spent.output += time.process_time() - matched
            spent.events += events.count
        return spent

    def _rows(self, events: Events) -> Iterator[tuple[RowSource, Snapshot]]:
        """Yield the inputs of the queries: the events, and for each join their rows with those of tables."""
        parts = self.snapshot.by_computation()
        if "" in parts:
            yield events, parts[""]
        for computation in self.snapshot.computations:
            yield join(events, computation, self.views), parts[computation.computation_id]
