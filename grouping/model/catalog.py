"""Streams, and the catalog of the streams, tables and views that queries name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

import msgspec

from grouping.model.change_format import ValueEncoding, is_change_format
from grouping.model.column import Alterations, EarlierDeclaration, EventTime, StreamColumn
from grouping.model.errors import InputError, near_name
from grouping.model.ids import StreamId
from grouping.model.source_access import Access
from grouping.model.sql_type import BIGINT, BINARY, INT, STRING, TIMESTAMP, VARIANT, SqlType, map_of
from grouping.model.table import Table, View
from grouping.model.wording import are, listed

__all__ = ["RECORD_FIELDS", "Catalog", "Stream", "StreamColumn"]

RECORD_FIELDS = {
    "_key": STRING,
    "_time": TIMESTAMP,
    "_partition": INT,
    "_offset": BIGINT,
    "_headers": map_of(STRING, BINARY),
    "_value": VARIANT,
}
"""The source record's own fields; `*` leaves them out (docs/expressions.md). Records of other formats than JSON lack
`_value`.
"""


_AnySource = TypeVar("_AnySource", bound="Stream | Table | View")

_RECORD_TIME = EventTime()
_GENERATION = 10**13
"""The difference between the positions of two generations of a topic, larger than any offset of a partition."""


class Stream(msgspec.Struct, frozen=True):
    """A source stream. Its topic may be deleted and created again, and ALTER STREAM changes its declaration.

    The place of an event is a *position*: its offset plus `base`. The positions of a topic that is created again are
    higher than the positions of the old topic. So positions in a partition only grow, and ids of results, cursors and
    cuts stay valid.
    """

    stream_id: StreamId
    """Unique to this creation: a stream that is dropped and created again gets another id (docs/statements.md)."""
    name: str
    columns: tuple[StreamColumn, ...]
    topic: str
    format: str
    """``json``, ``avro``, ``protobuf``, or a format of changes (`change_format.CHANGE_FORMATS`)."""
    start_offsets: dict[str, int]
    """By partition (as text, for JSON): the first position that belongs to the stream."""
    created_at: str
    avro_schema: str | None = None
    """The writer's schema, for Avro."""
    framing: str = "single-object"
    """``single-object``, ``confluent`` or ``raw``."""
    topic_id: str = ""
    """Kafka's own id of the topic; empty until it is known."""
    generation: int = 1
    """Number of the topic of this name: increased whenever the topic is deleted and created again."""
    owner: str = ""
    """The subscriber that created the stream; the stream counts against the limits of this subscriber. Empty for a
    stream that an earlier version created."""
    access: Access = Access()
    """The subscribers besides the owner that may read the stream."""
    lenient: bool = False
    """Whether a value that does not fit its column becomes NULL; otherwise the record becomes a dead letter."""
    timestamps: str = ""
    """The unit of numbers for TIMESTAMP columns: ``seconds``, ``millis`` or ``micros``; empty without the option."""
    explode: str | msgspec.UnsetType = msgspec.UNSET
    """The path to the elements that are events, as `explode.explode_text` writes it; unset if each record is one
    event.
    """
    decimals: str | msgspec.UnsetType = msgspec.UNSET
    """How texts for DECIMAL columns of Debezium are written: ``string`` or ``base64``; unset without the option."""
    partition_key: tuple[str, ...] = ()
    """The columns of PARTITION KEY, spelt as declared: the producer promises that events with equal values in them lie
    in one partition. Empty without a promise.
    """
    alterations: Alterations | msgspec.UnsetType = msgspec.UNSET
    """The number of the present declaration, and earlier declarations; unset for a stream that ALTER STREAM never
    changed.
    """
    schemas: str | msgspec.UnsetType = msgspec.UNSET
    """Writer schemas by the ids that records name (`schemas.avro_writers`); used in place of `avro_schema`. Unset
    without the option.
    """
    schema_id: int | msgspec.UnsetType = msgspec.UNSET
    """The schema id that the first record named, if all records must name the same id; unset until a record was
    read.
    """
    registry: str | msgspec.UnsetType = msgspec.UNSET
    """The URL of the registry that gives each id its schema, without a login; unset without the option."""
    descriptor: str | msgspec.UnsetType = msgspec.UNSET
    """For Protobuf: a FileDescriptorSet in base64."""
    message: str | msgspec.UnsetType = msgspec.UNSET
    """For Protobuf: the full name of the records' message."""
    changes_of: str | msgspec.UnsetType = msgspec.UNSET
    """The id of the table if the events are the changes of a table (`table_changes`); unset for a declared stream."""
    declared_time: EventTime | msgspec.UnsetType = msgspec.UNSET
    """The event time; unset without WATERMARK FOR and the option `idle`."""

    @property
    def event_time(self) -> EventTime:
        """The event time of the stream; with defaults for parts that are not declared."""
        return self.declared_time or _RECORD_TIME

    @property
    def has_one_schema_id(self) -> bool:
        """Whether records name a schema by an id, and all records must name the id of the first record."""
        own = self.format == "avro" and self.framing == "confluent" and not (self.schemas or self.registry)
        return own and not self.changes_of

    @property
    def encoding(self) -> ValueEncoding:
        """The form of values in changes, for records that do not state it."""
        unknown = "" if self.format == "debezium-json" else "string"
        return ValueEncoding(self.format, unknown if self.decimals is msgspec.UNSET else self.decimals, self.timestamps)

    @property
    def revision(self) -> int:
        """The number of the declaration, which ALTER STREAM increases."""
        return 1 if self.alterations is msgspec.UNSET else self.alterations.revision

    def altered(
        self,
        added: tuple[StreamColumn, ...] = (),
        lenient: bool | None = None,
        timestamps: str | None = None,
        schemas: str | None = None,
        idle_ms: int | None = None,
    ) -> Stream:
        """Return the stream with a changed declaration; None leaves an option as it is."""
        time = self.declared_time if idle_ms is None else msgspec.structs.replace(self.event_time, idle_ms=idle_ms)
        known = Alterations() if self.alterations is msgspec.UNSET else self.alterations
        before = EarlierDeclaration(len(self.columns), self.lenient, self.timestamps, self.schemas)
        return msgspec.structs.replace(
            self,
            columns=self.columns + added,
            lenient=self.lenient if lenient is None else lenient,
            timestamps=self.timestamps if timestamps is None else timestamps,
            schemas=self.schemas if schemas is None else schemas,
            declared_time=time,
            alterations=known.followed_by(before),
        )

    def declared_as(self, other: Stream, revision: int) -> Stream:
        """Return this stream with a declaration that a later state of it keeps, and with the later state's event time.

        Args:
            other: The later state of the stream, of this revision or a higher revision.
            revision: The number of the wanted declaration. If `other` does not keep this declaration any more, the
                result has the oldest declaration that `other` keeps.

        Example:
            >>> old = Stream("s_1", "quotes", (StreamColumn("a", "INT"),), "quotes", "json", {}, "")
            >>> new = old.altered((StreamColumn("b", "INT"),)).altered(lenient=True)
            >>> [(len(each.columns), each.lenient) for each in (new.declared_as(new, number) for number in (1, 2, 3))]
            [(1, False), (2, False), (2, True)]
            >>> old.declared_as(new, 1) == old
            True
        """
        known = Alterations() if other.alterations is msgspec.UNSET else other.alterations
        then = EarlierDeclaration(len(other.columns), other.lenient, other.timestamps, other.schemas)
        kept = len(known.earlier) - max(known.revision - revision, 0)
        if revision < known.revision and known.earlier:
            then = known.earlier[max(kept, 0)]
        return msgspec.structs.replace(
            self,
            columns=other.columns[: then.columns],
            lenient=then.lenient,
            timestamps=then.timestamps,
            schemas=then.schemas,
            declared_time=other.declared_time,
            alterations=msgspec.UNSET if revision == 1 else Alterations(revision, known.earlier[: max(kept, 0)]),
        )

    @property
    def record_fields(self) -> dict[str, SqlType]:
        """The record's own fields that no column hides, by name."""
        hidden = {column.name.casefold() for column in self.columns}
        if self.format != "json" and not is_change_format(self.format):
            hidden.add("_value")
        return {name: sql_type for name, sql_type in RECORD_FIELDS.items() if name not in hidden}

    @property
    def source_id(self) -> str:
        """The id of the stream's checkpoint, another id for each generation of the topic."""
        return self.stream_id if self.generation == 1 else f"{self.stream_id}.{self.generation}"

    @property
    def base(self) -> int:
        """The number to add to an offset of the topic to get a position."""
        return (self.generation - 1) * _GENERATION

    def positions(self, offsets: Mapping[str, int]) -> dict[str, int]:
        """Return the positions of the given offsets of the topic, by partition.

        Example:
            >>> stream = Stream("s_1", "quotes", (), "quotes", "json", {"0": 0}, "", generation=2)
            >>> stream.positions({"0": 7})
            {'0': 10000000000007}
        """
        return {partition: offset + self.base for partition, offset in offsets.items()}

    def evaluated(self, committed: Mapping[str, int]) -> dict[str, int]:
        """Return, by partition, the position up to which all events are evaluated.

        Args:
            committed: The positions committed by the evaluator; positions below the stream's start belong to a deleted
                topic.

        Example:
            >>> Stream("s_1", "quotes", (), "quotes", "json", {"0": 5, "1": 0}, "").evaluated({"1": 3})
            {'0': 5, '1': 3}
        """
        partitions = self.start_offsets.keys() | committed.keys()
        return {each: max(committed.get(each, 0), self.start_offsets.get(each, 0)) for each in sorted(partitions)}


class Catalog:
    """The live streams, tables and views by name; names are not case-sensitive, and unique across all three.

    `seen_by` gives the same catalog without the sources that a subscriber may not read.
    """

    def __init__(
        self, streams: Iterable[Stream] = (), tables: Iterable[Table] = (), views: Iterable[View] = ()
    ) -> None:
        self._streams: dict[str, Stream] = {}
        self._tables: dict[str, Table] = {}
        self._views: dict[str, View] = {}
        self._may_read: Callable[[Stream | Table | View], bool] | None = None
        self.whole: Catalog = self
        """The catalog with all sources, with which the texts of views are compiled."""
        for stream in streams:
            self.add(stream)
        for table in tables:
            self.add(table)
        for view in views:
            self.add(view)

    def seen_by(self, may_read: Callable[[Stream | Table | View], bool]) -> Catalog:
        """Return the sources of this catalog that a subscriber may read, as a catalog that later changes show in."""
        seen = Catalog()
        seen._streams, seen._tables, seen._views = self._streams, self._tables, self._views
        seen._may_read, seen.whole = may_read, self.whole
        return seen

    def source(self, name: str) -> Stream | Table | View:
        """Return the stream, table or view of a name, for a query that reads it.

        Raises:
            InputError: ``unknown-stream``, with a similar name if there is one.
        """
        found = self.find_source(name)
        if found is None:
            raise self._unknown("stream", name, streams=self._streams, tables=self._tables, views=self._views)
        return found

    def stream(self, name: str) -> Stream:
        """Return the live stream of a name.

        Raises:
            InputError: ``unknown-stream``, with a similar name if there is one.
        """
        found = self.find(name)
        if found is None:
            raise self._unknown("stream", name, streams=self._streams)
        return found

    def table(self, name: str) -> Table:
        """Return the live table of a name; raises as `stream` does."""
        found = self._shown(self._tables.get(name.casefold()))
        if found is None:
            raise self._unknown("table", name, tables=self._tables)
        return found

    def view(self, name: str) -> View:
        """Return the live view of a name; raises as `stream` does."""
        found = self._shown(self._views.get(name.casefold()))
        if found is None:
            raise self._unknown("view", name, views=self._views)
        return found

    def _shown(self, source: _AnySource | None) -> _AnySource | None:
        """Return a source if this catalog shows it, otherwise None."""
        if source is None or self._may_read is None or self._may_read(source):
            return source
        return None

    def _unknown(self, kind: str, name: str, **known: Mapping[str, Stream | Table | View]) -> InputError:
        by_kind = [
            (noun[:-1], sorted(source.name for source in sources.values() if self._shown(source) is not None))
            for noun, sources in known.items()
        ]
        there = [(noun, some) for noun, some in by_kind if some]
        names = [each for _, some in there for each in some]
        shown = ", ".join(listed(some, noun) for noun, some in there)
        return InputError(
            f'{kind} "{name}" does not exist',
            code="unknown-stream",
            detail=f"There {are(len(there[0][1]))} {shown}." if there else f"There are no {kind}s yet.",
            hint=near_name(name, names) or f"CREATE {kind.upper()} declares one.",
        )

    def find(self, name: str) -> Stream | None:
        """Return the live stream of a name, or None."""
        return self._shown(self._streams.get(name.casefold()))

    def find_source(self, name: str) -> Stream | Table | View | None:
        """Return the live stream, table or view of a name, or None."""
        folded = name.casefold()
        found: Stream | Table | View | None = self._streams.get(folded)
        return self._shown(found or self._tables.get(folded) or self._views.get(folded))

    def add(self, source: Stream | Table | View) -> None:
        """Add a stream, table or view, or replace a source of the same name."""
        match source:
            case Stream(changes_of=changes_of):
                if not changes_of:  # else the table has the name
                    self._streams[source.name.casefold()] = source
            case Table():
                self._tables[source.name.casefold()] = source
            case View():
                self._views[source.name.casefold()] = source

    def remove(self, source: Stream | Table | View) -> None:
        """Forget a stream, table or view."""
        for known in (self._streams, self._tables, self._views):
            known.pop(source.name.casefold(), None)

    def tables(self) -> list[Table]:
        """Return the live tables in the order of their names."""
        return [table for name in sorted(self._tables) if (table := self._shown(self._tables[name])) is not None]

    def views(self) -> list[View]:
        """Return the live views in the order of their names."""
        return [view for name in sorted(self._views) if (view := self._shown(self._views[name])) is not None]

    def __iter__(self) -> Iterator[Stream]:
        shown = (stream for stream in self._streams.values() if self._shown(stream) is not None)
        return iter(sorted(shown, key=lambda stream: stream.name.casefold()))
