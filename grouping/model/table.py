"""Tables: the latest row for each key of a topic, which queries join with their stream's events."""

from __future__ import annotations

import msgspec

from grouping.model.column import StreamColumn
from grouping.model.ids import GroupId, StreamId
from grouping.model.source_access import Access

__all__ = ["DroppedTable", "Table"]


class Table(msgspec.Struct, frozen=True):
    """A table as it was created; afterwards only its topic may change under it.

    Its topic is read from the beginning. Changes of one key lie in one partition, and count in its order.
    """

    table_id: str
    """Unique to this creation: a table dropped and made anew is another one."""
    name: str
    columns: tuple[StreamColumn, ...]
    key: tuple[str, ...]
    """The columns of the PRIMARY KEY, in their order there, spelt as declared."""
    topic: str
    format: str
    """``json``, ``avro`` or ``debezium-json``."""
    created_at: str
    avro_schema: str | None = None
    """The writer's schema, for Avro."""
    framing: str = "single-object"
    """``single-object``, ``confluent`` or ``raw``."""
    topic_id: str = ""
    """Kafka's own id of the topic; empty until it is known."""
    owner: str = ""
    """The subscriber that created the table; the table counts against its limits."""
    access: Access = Access()
    """Who else may read it."""

    @property
    def source_id(self) -> str:
        """The id of its rows: a topic that is deleted and made anew has others, and counts its offsets anew."""
        return f"{self.table_id}.{self.topic_id}"


class DroppedTable(msgspec.Struct, frozen=True):
    """A dropped table that micro-batches may still join, for CQs dropped earlier."""

    table: Table
    groups: tuple[tuple[StreamId, GroupId], ...]
    """Streams, and their groups that join it: the table goes with the last plan of these."""
    lost: bool = False
    """Whether its topic is gone too: then the groups that join the table have no results any more."""
