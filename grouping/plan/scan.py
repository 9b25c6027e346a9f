"""The lowest node of each plan: the events of a stream."""

from __future__ import annotations

from typing import NamedTuple

from grouping.model.catalog import Stream
from grouping.model.expression import Column
from grouping.plan.expression_text import render_name

__all__ = ["Scan"]


class Scan(NamedTuple):
    """The events of a stream. A row's position is the partition and offset of its record, and its time is `_time`."""

    stream: Stream

    @property
    def columns(self) -> tuple[Column, ...]:
        """The declared columns."""
        return tuple(Column(column.name, column.type_text) for column in self.stream.columns)

    @property
    def record_fields(self) -> tuple[Column, ...]:
        """The record's own fields, without those that a declared column hides."""
        return tuple(Column(name, str(kind)) for name, kind in self.stream.record_fields.items())

    @property
    def signature(self) -> str:
        """The text after FROM."""
        return render_name(self.stream.name)
