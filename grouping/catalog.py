"""Streams and their columns: what a query may name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from grouping.errors import InputError, near_name

__all__ = ["RECORD_FIELDS", "Catalog", "Stream", "StreamColumn"]

RECORD_FIELDS = {"_key": "STRING", "_time": "TIMESTAMP", "_partition": "INT", "_offset": "BIGINT"}
"""The source record's own fields, which every stream has; `*` leaves them out (contract §4)."""


class StreamColumn(msgspec.Struct, frozen=True):
    """One declared column."""

    name: str
    type: str


class Stream(msgspec.Struct, frozen=True):
    """A source stream as it was created; never changed afterwards."""

    stream_id: str
    """Unique to this creation: a stream dropped and made anew is another one (contract §4)."""
    name: str
    columns: tuple[StreamColumn, ...]
    topic: str
    format: str
    """``json`` or ``avro``."""
    start_offsets: dict[str, int]
    """Partition number (as text, for JSON) to the first offset that belongs to the stream."""
    created_at: str
    avro_schema: str | None = None
    """The writer's schema, for Avro."""
    framing: str = "single-object"
    """``single-object``, ``confluent`` or ``raw``."""

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
    """The live streams by name; names are not case-sensitive."""

    def __init__(self, streams: Iterable[Stream] = ()) -> None:
        self._by_name = {stream.name.casefold(): stream for stream in streams}

    def stream(self, name: str) -> Stream:
        """Return the live stream of that name.

        Raises:
            InputError: ``unknown-stream``, with a near name.
        """
        stream = self._by_name.get(name.casefold())
        if stream is None:
            names = sorted(stream.name for stream in self._by_name.values())
            raise InputError(
                f'stream "{name}" does not exist',
                code="unknown-stream",
                detail=f"There are the streams {', '.join(names)}." if names else "There are no streams yet.",
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
