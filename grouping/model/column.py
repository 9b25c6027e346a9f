"""A column of a stream or of a table."""

from __future__ import annotations

import msgspec

from grouping.model.column_place import ColumnPlace
from grouping.model.sql_type import SqlType

__all__ = ["StreamColumn"]


class StreamColumn(msgspec.Struct, frozen=True, omit_defaults=True):
    """A declared column."""

    name: str
    type_text: str = msgspec.field(name="type")
    from_text: str = msgspec.field(default="", name="from")
    """The text behind FROM; empty where the column is the record's field of its name."""

    @property
    def type(self) -> SqlType:
        """The column's type."""
        return SqlType.of(self.type_text)

    @property
    def place(self) -> ColumnPlace:
        """The place of the column's values in the record."""
        return ColumnPlace.of(self.from_text) if self.from_text else ColumnPlace("value", (self.name,))
