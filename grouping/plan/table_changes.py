"""The changes of a table as a stream: each change of a row is an event, and its key is the row's PRIMARY KEY.

In a format of changes (`change_format.py`), a record may change several rows. In the other formats, each record is one
event.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from grouping.model.catalog import Catalog, Stream
from grouping.model.ids import StreamId
from grouping.model.table import Table

__all__ = ["changed_table", "changes_id", "is_changes", "readable_streams", "table_changes"]

_PREFIX = "c_"


def is_changes(stream_id: StreamId) -> bool:
    """Tell whether a stream is the stream of a table's changes."""
    return stream_id.startswith(_PREFIX)


def changes_id(table_id: str) -> StreamId:
    """Return the id of the stream of a table's changes."""
    return StreamId(f"{_PREFIX}{table_id}")


@lru_cache(maxsize=1024)
def table_changes(table: Table) -> Stream:
    """Return the stream of a table's changes, without start offsets.

    The PRIMARY KEY is its partition key. No subscriber owns the stream, since its table counts against the limits.

    Example:
        >>> stream = table_changes(Table("t_1", "prices", (), ("id",), "prices", "json", ""))
        >>> (stream.stream_id, stream.partition_key, changed_table(stream).key)
        ('c_t_1', ('id',), ('id',))
    """
    return Stream(
        changes_id(table.table_id),
        table.name,
        table.columns,
        table.topic,
        table.format,
        {},
        table.created_at,
        avro_schema=table.avro_schema,
        framing=table.framing,
        topic_id=table.topic_id,
        timestamps=table.encoding.timestamps,
        decimals=table.decimals,
        partition_key=table.key,
        changes_of=table.table_id,
    )


def readable_streams(catalog: Catalog) -> list[StreamId]:
    """Return the ids of the streams of a catalog, and of the changes of its tables."""
    return [
        *(stream.stream_id for stream in catalog),
        *(changes_id(table.table_id) for table in catalog.tables()),
    ]


def changed_table(changes: Stream) -> Table:
    """Return the table of a stream from `table_changes`, so that its records are decoded as records of the table."""
    return Table(
        str(changes.changes_of),
        changes.name,
        changes.columns,
        changes.partition_key,
        changes.topic,
        changes.format,
        changes.created_at,
        avro_schema=changes.avro_schema,
        framing=changes.framing,
        topic_id=changes.topic_id,
        decimals=changes.decimals,
        timestamps=changes.timestamps or msgspec.UNSET,
    )
