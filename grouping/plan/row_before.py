"""The node that gives each row the row before it of the same key, for edges (EMIT ON ENTER, ON EXIT)."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from grouping.model.expression import Column, Expression
from grouping.plan.expression_text import render_reference

__all__ = ["EDGE", "RowBefore"]

EDGE = Column("_edge", "STRING")
"""The edge of a result, ``enter`` or ``exit``, as SELECT lists read it; a declared column of this name hides it."""


class RowBefore(msgspec.Struct, frozen=True):
    """Pairs of a row and the row before it with equal values of BY, in the order of one source partition.

    NULL is a value like another, NaN equals NaN, and -0.0 equals 0.0. A row keeps its columns, position and time.
    """

    batch_micros: ClassVar[float] = 1_500.0
    """Time in each micro-batch of few events: as a join's."""
    single: ClassVar[bool] = True
    """A row stays one row."""

    by: tuple[Column, ...]
    """The key: columns of the rows below, in the order of their stored texts, each once."""

    @classmethod
    def of(cls, by: frozenset[Column]) -> RowBefore:
        """Return the node of a key."""
        return cls(tuple(sorted(by, key=lambda column: column.stored)))

    @property
    def identity(self) -> dict[str, Any]:
        """The fields that make an id."""
        return {"by": [column.stored for column in self.by]}

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The expressions over the rows below that the node computes with."""
        return self.by

    @property
    def signature(self) -> str:
        """The clause of a signature; it stands behind WHERE, since WHERE decides about both rows of a pair."""
        return f" EMIT BY {', '.join(render_reference(column.reference) for column in self.by)}"
