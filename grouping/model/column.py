"""Parts of a declaration: a column, the event time, and the earlier declarations that ALTER STREAM keeps."""

from __future__ import annotations

import msgspec

from grouping.model.column_place import ColumnPlace
from grouping.model.sql_type import SqlType

__all__ = ["Alterations", "EarlierDeclaration", "EventTime", "StreamColumn"]

_MOST_EARLIER = 100
"""The largest number of declarations that are kept for replays. A micro-batch is replayed with its first declaration,
but only seconds after the first attempt, or at the next start of the evaluator."""
_EARLIER_CHARACTERS = 1 << 20
"""The largest number of characters in the schemas of all kept declarations, since the catalog has the stream with its
declarations in one record."""


class StreamColumn(msgspec.Struct, frozen=True, omit_defaults=True):
    """A declared column."""

    name: str
    type_text: str = msgspec.field(name="type")
    from_text: str = msgspec.field(default="", name="from")
    """The text after FROM; empty if the column reads the record's field of the same name."""

    @property
    def type(self) -> SqlType:
        """The column's type."""
        return SqlType.of(self.type_text)

    @property
    def place(self) -> ColumnPlace:
        """The place of the column's values in the record."""
        return ColumnPlace.of(self.from_text) if self.from_text else ColumnPlace("value", (self.name,))


class EventTime(msgspec.Struct, frozen=True, omit_defaults=True):
    """The declared event time of a stream: WATERMARK FOR and the option `idle`."""

    column: str | None = None
    """The column, spelt as declared; None for the time of the record."""
    delay_ms: int | None = None
    """The delay of the watermark behind the latest event time; None without WATERMARK FOR."""
    idle_ms: int | None = None
    """If no new event comes for this time, the clock moves the watermark on. None without the option."""

    def delay_or(self, default_seconds: float) -> int:
        """Return the delay in milliseconds; without WATERMARK FOR, the default, which is given in seconds."""
        return round(default_seconds * 1000) if self.delay_ms is None else self.delay_ms

    def idle_or(self, default_seconds: float) -> int:
        """Return the idle time in milliseconds; without the option, the default, which is given in seconds."""
        return round(default_seconds * 1000) if self.idle_ms is None else self.idle_ms


class EarlierDeclaration(msgspec.Struct, frozen=True):
    """A declaration of a stream before ALTER STREAM changed it."""

    columns: int
    """The number of columns; ALTER STREAM adds columns at the end."""
    lenient: bool = False
    timestamps: str = ""
    schemas: str | msgspec.UnsetType = msgspec.UNSET


class Alterations(msgspec.Struct, frozen=True):
    """The changes of a stream by ALTER STREAM; a script of Redis reads the revision."""

    revision: int = 1
    """The number of the declaration."""
    earlier: tuple[EarlierDeclaration, ...] = ()
    """The latest declarations before this one, for replays of micro-batches."""

    def followed_by(self, before: EarlierDeclaration) -> Alterations:
        """Return these alterations with one more declaration; the oldest are dropped if there are too many."""
        earlier = (*self.earlier, before)[-_MOST_EARLIER:]
        size = 0
        for at in range(len(earlier) - 1, -1, -1):
            size += len(earlier[at].schemas or "")
            if size > _EARLIER_CHARACTERS:
                return Alterations(self.revision + 1, earlier[at + 1 :])
        return Alterations(self.revision + 1, earlier)
