"""Tables and views. A table has the latest row for each key of a topic, and a view is a name for a SELECT.

Queries join tables with the events of a stream, and read FROM a view as FROM a subquery with the view's text.
"""

from __future__ import annotations

import msgspec

from grouping.model.change_format import ValueEncoding
from grouping.model.column import StreamColumn
from grouping.model.ids import GroupId, StreamId
from grouping.model.source_access import Access

__all__ = ["DroppedTable", "Table", "View"]


class Table(msgspec.Struct, frozen=True):
    """A table. After its creation, GRANT and REVOKE change its access, and its topic may be deleted and created again.

    The topic is read from its beginning. All changes of a key must be in one partition, since only a partition
    keeps their order.
    """

    table_id: str
    """Unique to this creation: a table that is dropped and created again gets another id."""
    name: str
    columns: tuple[StreamColumn, ...]
    key: tuple[str, ...]
    """The columns of the PRIMARY KEY, in its order, spelt as declared."""
    topic: str
    format: str
    """``json``, ``avro``, or a format of changes (`change_format.CHANGE_FORMATS`)."""
    created_at: str
    avro_schema: str | None = None
    """The writer's schema, for Avro."""
    framing: str = "single-object"
    """``single-object``, ``confluent`` or ``raw``."""
    topic_id: str = ""
    """Kafka's own id of the topic; empty until it is known."""
    owner: str = ""
    """The subscriber that created the table; the table counts against the limits of this subscriber."""
    access: Access = Access()
    """The subscribers besides the owner that may read the table."""
    decimals: str | msgspec.UnsetType = msgspec.UNSET
    """The form of texts for DECIMAL columns of Debezium: ``string``, ``base64``, or empty for unknown. Unset for other
    formats. A table that an earlier version created has the field unset, and its texts are read as decimal numbers.
    """
    timestamps: str | msgspec.UnsetType = msgspec.UNSET
    """The unit of numbers for TIMESTAMP columns, as for a stream; unset without the option."""

    @property
    def encoding(self) -> ValueEncoding:
        """The form of values in changes, for records that do not state it.

        Example:
            >>> Table("t_1", "prices", (), ("id",), "prices", "debezium-json", "").encoding.decimals
            'string'
        """
        decimals = "string" if self.decimals is msgspec.UNSET else self.decimals
        return ValueEncoding(self.format, decimals, "" if self.timestamps is msgspec.UNSET else self.timestamps)

    @property
    def source_id(self) -> str:
        """The id of the table with its present topic; a topic that is created again has other rows and offsets."""
        return f"{self.table_id}.{self.topic_id}"


class DroppedTable(msgspec.Struct, frozen=True):
    """A dropped table that micro-batches may still join, for CQs that were dropped before the table."""

    table: Table
    groups: tuple[tuple[StreamId, GroupId], ...]
    """Groups that join the table, with their streams. The table is forgotten when no plan of these groups is left."""
    lost: bool = False
    """Whether the topic is gone too: then the groups that join the table have no further results."""


class View(msgspec.Struct, frozen=True):
    """A view. After its creation, only GRANT and REVOKE change it."""

    name: str
    select: str
    """The SELECT's text."""
    reads: tuple[str, ...]
    """The names of the streams, tables and views after its FROM and JOIN, spelt as these were created."""
    created_at: str
    owner: str = ""
    """The subscriber that created the view; the view counts against the limits of this subscriber."""
    access: Access = Access()
    """The subscribers besides the owner that may read the view; they need no grant on the view's sources."""
