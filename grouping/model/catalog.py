"""Streams and their columns: what a query may name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec

from grouping.model.errors import InputError, near_name
from grouping.model.wording import are, listed

if TYPE_CHECKING:
    from grouping.model.table import Table
    from grouping.model.view import View

__all__ = ["RECORD_FIELDS", "Catalog", "Stream", "StreamColumn"]

RECORD_FIELDS = {"_key": "STRING", "_time": "TIMESTAMP", "_partition": "INT", "_offset": "BIGINT"}
"""The source record's own fields, which every stream has; `*` leaves them out (docs/expressions.md)."""


class StreamColumn(msgspec.Struct, frozen=True):
    """One declared column."""

    name: str
    type: str


_GENERATION = 10**13
"""Offsets of one generation of a topic: more than a partition will have."""


class Stream(msgspec.Struct, frozen=True):
    """A source stream as it was created; afterwards only its topic may change under it.

    Places of events are *positions*: offsets, raised so that those of a topic that was deleted and made again lie above
    those of the topic before. So ids of results, cursors and cuts go on, and positions of a partition only grow.
    """

    stream_id: str
    """Unique to this creation: a stream dropped and made anew is another one (docs/statements.md)."""
    name: str
    columns: tuple[StreamColumn, ...]
    topic: str
    format: str
    """``json`` or ``avro``."""
    start_offsets: dict[str, int]
    """Partition number (as text, for JSON) to the first position that belongs to the stream."""
    created_at: str
    avro_schema: str | None = None
    """The writer's schema, for Avro."""
    framing: str = "single-object"
    """``single-object``, ``confluent`` or ``raw``."""
    topic_id: str = ""
    """Kafka's own id of the topic; empty until it is known."""
    generation: int = 1
    """Which topic of its name it is: one more each time that the topic is deleted and made again."""
    owner: str = ""
    """The subscriber that created it, against whose limits it counts; empty where an earlier version made it."""

    @property
    def source_id(self) -> str:
        """What its checkpoint belongs to: one topic of the stream's."""
        return self.stream_id if self.generation == 1 else f"{self.stream_id}.{self.generation}"

    @property
    def base(self) -> int:
        """What is added to an offset of the topic to make it a position."""
        return (self.generation - 1) * _GENERATION

    def positions(self, offsets: Mapping[str, int]) -> dict[str, int]:
        """Return the positions of some offsets of the topic, by partition.

        Example:
            >>> stream = Stream("s_1", "quotes", (), "quotes", "json", {"0": 0}, "", generation=2)
            >>> stream.positions({"0": 7})
            {'0': 10000000000007}
        """
        return {partition: offset + self.base for partition, offset in offsets.items()}

    def evaluated(self, committed: Mapping[str, int]) -> dict[str, int]:
        """Return by partition the position up to which all is evaluated.

        Args:
            committed: The positions that the evaluator has committed; below those where the stream starts they are of a
                topic that is gone.

        Example:
            >>> Stream("s_1", "quotes", (), "quotes", "json", {"0": 5, "1": 0}, "").evaluated({"1": 3})
            {'0': 5, '1': 3}
        """
        partitions = self.start_offsets.keys() | committed.keys()
        return {each: max(committed.get(each, 0), self.start_offsets.get(each, 0)) for each in sorted(partitions)}

    def column(self, name: str) -> StreamColumn:
        """Return the column of that name, in any case.

        Raises:
            InputError: ``unknown-column``, with the columns there are and a near one.
        """
        wanted = name.casefold()
        for column in self.columns:
            if column.name.casefold() == wanted:
                return column
        if wanted in RECORD_FIELDS:
            return StreamColumn(wanted, RECORD_FIELDS[wanted])
        names = [column.name for column in self.columns]
        raise InputError(
            f'column "{name}" does not exist',
            code="unknown-column",
            detail=f'Stream "{self.name}" has the columns {", ".join(names)}.',
            hint=near_name(name, [*names, *RECORD_FIELDS]),
        )


class Catalog:
    """The live streams, tables and views by name; names are not case-sensitive, and one is of one of them."""

    def __init__(
        self, streams: Iterable[Stream] = (), tables: Iterable[Table] = (), views: Iterable[View] = ()
    ) -> None:
        self._by_name = {stream.name.casefold(): stream for stream in streams}
        self._others: dict[str, Table | View] = {each.name.casefold(): each for each in tables}
        self._others |= {each.name.casefold(): each for each in views}

    def source(self, name: str) -> Stream | Table | View:
        """Return what a query reads from: the stream, table or view of that name.

        Raises:
            InputError: ``unknown-stream``, with a near name.
        """
        return self._others.get(name.casefold()) or self.stream(name)

    def stream(self, name: str) -> Stream:
        """Return the live stream of that name.

        Raises:
            InputError: ``unknown-stream``, with a near name.
        """
        stream = self._by_name.get(name.casefold())
        if stream is None:
            names = sorted(each.name for each in (*self._by_name.values(), *self._others.values()))
            raise InputError(
                f'stream "{name}" does not exist',
                code="unknown-stream",
                detail=f"There {are(len(names))} {listed(names, 'stream')}." if names else "There are no streams yet.",
                hint=near_name(name, names) or "CREATE STREAM declares one.",
            )
        return stream

    def find(self, name: str) -> Stream | None:
        """Return the live stream of that name, or None."""
        return self._by_name.get(name.casefold())

    def add(self, stream: Stream) -> None:
        """Make a stream known; it replaces one of the same name."""
        self._by_name[stream.name.casefold()] = stream

    def remove(self, stream: Stream) -> None:
        """Forget a stream."""
        del self._by_name[stream.name.casefold()]

    def __iter__(self) -> Iterator[Stream]:
        return iter(sorted(self._by_name.values(), key=lambda stream: stream.name.casefold()))
