"""A column of a stream or of a table."""

from __future__ import annotations

import msgspec

from grouping.model.sql_type import SqlType

__all__ = ["StreamColumn"]


class StreamColumn(msgspec.Struct, frozen=True):
    """One declared column."""

    name: str
    type_text: str = msgspec.field(name="type")

    @property
    def type(self) -> SqlType:
        """The column's type."""
        return SqlType.of(self.type_text)
