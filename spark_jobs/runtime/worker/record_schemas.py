"""The schemas that records name by ids. They are read before a batch is decoded; a replay uses the same schemas."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from grouping.model.catalog import Stream
from grouping.process.schema_registry import SchemaAway, SchemaRegistry
from grouping.settings.registries import allowed_registries
from grouping.settings.settings import Settings
from grouping.store.task_notes import SchemaNotes, UnknownIds
from schemas.avro_writers import MOST_ID, MOST_SCHEMAS
from spark_jobs.engine.decode.framing import schema_ids

__all__ = ["RecordSchemas"]

_MOST_QUESTIONS = 100
"""The largest number of ids that a registry is asked for in a batch; records with further ids are dead letters."""
_PATIENCE_SECONDS = 3.0
"""The longest time that all requests of a batch to a registry may take together."""
_ABSENT_SECONDS = 60.0
"""If the registry does not know an id, the registry is asked again only after this time."""
_MOST_ABSENT = 10_000


class RecordSchemas:
    """The schemas of a stream's records, as a worker knows them. Only a single thread may use them."""

    def __init__(
        self,
        settings: Settings,
        notes: SchemaNotes,
        open_registry: Callable[[str, str], SchemaRegistry] = SchemaRegistry,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin without schemas.

        Args:
            settings: The evaluator's settings, which name the registries that streams may read.
            notes: The schemas and ids that tasks have noted in Redis.
            open_registry: Opens a registry by its URL and login.
            clock: Monotonic seconds.
        """
        self._settings = settings
        self._notes = notes
        self._open_registry = open_registry
        self._clock = clock
        self._first: int | None = None
        self._found: dict[int, str] = {}
        """By id: the schema, or a sentence that says why there is none; both as JSON."""
        self._absent: dict[int, float] = {}
        """For each id that the registry does not know: the time before which the registry is not asked again."""
        self._begun: dict[int, int] = {}
        """By source partition, the offset of the task's first record."""

    def begin_task(self) -> None:
        """Begin a task."""
        self._begun = {}

    def parts(
        self, stream: Stream, batch: pa.RecordBatch, *, again: bool = False
    ) -> Iterator[tuple[Stream, pa.RecordBatch]]:
        """Yield the records in parts, each with the stream and the schemas that decode the part.

        Args:
            stream: The stream, with the declaration that the micro-batch pins.
            batch: At least one record; all records must be of the same partition.
            again: Whether earlier tasks have evaluated the records. Then no ids are noted as unknown.

        Raises:
            SchemaAway: The registry does not answer with a schema. The records must be evaluated again later: they are
                not decoded, and are no dead letters.
            OperationalError: Redis does not answer, or another evaluator has taken the stream.
        """
        if stream.registry:
            yield from self._by_registry(stream, stream.registry, batch, again=again)
        elif stream.has_one_schema_id and stream.schema_id is msgspec.UNSET:
            yield self._with_first(stream, batch), batch
        else:
            yield stream, batch

    def _with_first(self, stream: Stream, batch: pa.RecordBatch) -> Stream:
        """Return the stream with the schema id of its very first record, whichever task read that record."""
        if self._first is None:
            ids = schema_ids(batch["value"])
            if not ids:
                return stream
            self._first = self._notes.first_id(stream.stream_id, ids[0])
        return msgspec.structs.replace(stream, schema_id=self._first)

    def _by_registry(
        self, stream: Stream, url: str, batch: pa.RecordBatch, *, again: bool
    ) -> Iterator[tuple[Stream, pa.RecordBatch]]:
        partition, offsets = batch["partition"][0].as_py(), batch["offset"]
        first, last = offsets[0].as_py(), offsets[-1].as_py()
        begun = first if again else self._begun.setdefault(partition, first)
        new = [each for each in self._ids(batch) if each not in self._found]
        found, unknown = self._notes.schemas(stream.stream_id, new, partition)
        self._found |= found
        before = pc.sum(pc.less_equal(offsets, unknown.until)).as_py() or 0
        if before:  # a replay, in which ids must stay unknown even if the registry knows them by now
            replayed = batch.slice(0, before)
            yield self._decoding(stream, set(self._ids(replayed)) - unknown.ids), replayed
        rest = batch.slice(before)
        if not rest.num_rows:
            return
        ids = self._ids(rest)
        self._ask(stream, url, [each for each in ids if each not in self._found])
        if (absent := frozenset(ids) - self._found.keys()) and not again:
            known = unknown.ids if unknown.until >= begun else frozenset()
            self._notes.keep_unknown(stream.stream_id, partition, UnknownIds(last, known | absent))
        yield self._decoding(stream, ids), rest

    @staticmethod
    def _ids(batch: pa.RecordBatch) -> list[int]:
        return [each for each in schema_ids(batch["value"]) if each <= MOST_ID]

    def _decoding(self, stream: Stream, ids: Iterable[int]) -> Stream:
        """Return the stream with the known schemas of some ids."""
        found = ", ".join(f'"{each}": {self._found[each]}' for each in sorted(ids) if each in self._found)
        return msgspec.structs.replace(stream, schemas=f"{{{found}}}" if found else msgspec.UNSET)

    def _ask(self, stream: Stream, url: str, ids: list[int]) -> None:
        """Ask the registry for schemas, and store the answers before any record is decoded with them."""
        now = began = self._clock()
        wanted = [each for each in ids if self._absent.get(each, now) <= now]
        if not wanted or len(self._found) >= MOST_SCHEMAS:
            return
        login = allowed_registries(self._settings).get(url)
        if login is None:
            raise SchemaAway(f'registry "{url}" is not in the setting CQ_STREAMS_REGISTRIES any more')
        registry = self._open_registry(url, login)
        found: dict[int, str] = {}
        try:
            for each in wanted[:_MOST_QUESTIONS]:
                if self._clock() - began > _PATIENCE_SECONDS:
                    raise SchemaAway(f'registry "{url}" takes long to give {len(wanted)} schemas')
                schema = registry.schema(each)
                if schema is None:
                    self._absent[each] = self._clock() + _ABSENT_SECONDS
                else:
                    found[each] = schema
        finally:
            if found:
                self._notes.keep_schemas(stream.stream_id, found)
                self._found |= self._notes.schemas(stream.stream_id, list(found), 0)[0]
            if len(self._absent) > _MOST_ABSENT:
                self._absent.clear()
