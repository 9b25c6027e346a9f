"""A worker that decodes records with the schemas of a registry, and the notes of all workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import pyarrow as pa

from gateway.topics.source_policy import check_registry
from grouping.model.catalog import Stream
from grouping.settings.settings import Settings, StreamSettings
from grouping.statements.command import parse
from grouping.store.task_notes import UnknownIds
from spark_jobs.engine.decode.decode import decode
from spark_jobs.runtime.kafka.range_reader import SourceRange
from spark_jobs.runtime.states.logged_events import logged_events
from spark_jobs.runtime.worker.record_schemas import RecordSchemas
from tests.unit.matching.event_batches import SETTINGS, batch, header
from tests.unit.schemas.registry_server import Registry

__all__ = ["DecodingWorker", "MemoryNotes"]


class MemoryNotes:
    """The notes of all tasks, in memory."""

    def __init__(self) -> None:
        self.kept: dict[int, str] = {}
        self.unknown: dict[int, UnknownIds] = {}

    def schemas(self, _: str, ids: Sequence[int], partition: int) -> tuple[dict[int, str], UnknownIds]:
        found = {each: self.kept[each] for each in ids if each in self.kept}
        return found, self.unknown.get(partition, UnknownIds())

    def keep_schemas(self, _: str, schemas: Mapping[int, str]) -> None:
        self.kept = dict(schemas) | self.kept

    def keep_unknown(self, _: str, partition: int, unknown: UnknownIds) -> None:
        self.unknown[partition] = unknown


class DecodingWorker:
    """A worker and the records that it decodes."""

    def __init__(self, server: Registry, notes: MemoryNotes) -> None:
        settings = Settings(streams=StreamSettings(registries=f"{server.url}/"))  # type: ignore[arg-type]
        self.now = 0.0
        self.schemas = RecordSchemas(settings, notes, clock=lambda: self.now)  # type: ignore[arg-type]
        text = f"CREATE STREAM q (symbol STRING, n BIGINT) WITH (topic = 't', format = 'avro', framing = 'confluent', registry = '{server.url}/')"  # noqa: E501
        statement = parse(text)
        check_registry(settings, statement.registry)
        self.stream = Stream(
            "s_1", "q", statement.stream_columns, "t", "avro", {}, "", framing="confluent", registry=statement.registry
        )

    def task(self, *values: Sequence[bytes], first: int = 100) -> tuple[list[int], list[str]]:
        """Return the events and the details of dead letters of a task that has these batches."""
        self.schemas.begin_task()
        found: list[int] = []
        details: list[str] = []
        for some in values:
            for stream, part in self.schemas.parts(self.stream, batch(some, first=first)):
                events, letters = decode(part, stream, SETTINGS)
                found += events.values("n")
                details += [] if letters is None else [header(row, "detail") for row in letters.to_pylist()]
            first += len(some)
        return found, details

    def folded(self, *values: bytes, first: int = 100) -> list[int]:
        """Return the events of records that a worker reads again from the log."""
        records, by = batch(values, first=first), partial(self.schemas.parts, again=True)
        wanted = SourceRange("t", 3, first, first + len(values))
        found = logged_events(_Log(records), self.stream, wanted, [], by, SETTINGS)  # type: ignore[arg-type]
        return [value for events in found for value in events.values("n")]


class _Log:
    """The log of a partition (`RangeReader`), in batches of two records."""

    def __init__(self, records: pa.RecordBatch) -> None:
        self._records = records

    def read(self, ranges: Sequence[SourceRange]) -> Iterator[tuple[SourceRange, Iterator[pa.RecordBatch]]]:
        """Yield the batches of the only range."""
        yield ranges[0], (self._records.slice(first, 2) for first in range(0, self._records.num_rows, 2))
