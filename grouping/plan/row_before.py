"""The node that pairs each row with the previous row of the same key, for edges (EMIT ON ENTER, ON EXIT)."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from grouping.model.expression import Column, Expression
from grouping.plan.expression_text import render_reference
from grouping.plan.switch import Switch

__all__ = ["EDGE", "RowBefore"]

EDGE = Column("_edge", "STRING")
"""The column of SELECT lists that has the edge of a result, ``enter`` or ``exit``; a declared column of this name hides
it."""


class RowBefore(msgspec.Struct, frozen=True, omit_defaults=True):
    """Pairs of a row and the previous row with equal values of BY, in the order of one source partition.

    In a key, NULL equals NULL, NaN equals NaN, and -0.0 equals 0.0. A row keeps its columns, position and time.
    """

    batch_micros: ClassVar[float] = 1_500.0
    """Fixed time in each micro-batch, in microseconds: the same as for a join."""
    single: ClassVar[bool] = True
    """Each row stays a single row."""

    by: tuple[Column, ...]
    """The columns of the key, without repetitions, in the order of their stored texts."""
    switch: Switch | None = None
    """Adds the column `SWITCH` to each row; None without such a column."""
    of_from: tuple[Expression, ...] = msgspec.field(default=(), name="where")
    """The conditions of views, subqueries and joins of FROM, with their constants, in canonical order. A row for which
    one of them is not TRUE is left out, so it is not the previous row of any row."""
    reads: tuple[str, ...] = ()
    """Above `Frames`: the stored texts of the columns that groups read, ascending. So only queries that read the same
    columns share the node. Empty without `Frames`: queries that read other columns share the node."""

    @classmethod
    def of(cls, by: frozenset[Column], of_from: tuple[Expression, ...] = ()) -> RowBefore:
        """Return the node for a key."""
        return cls(tuple(sorted(by, key=lambda column: column.stored)), of_from=of_from)

    @property
    def identity(self) -> dict[str, Any]:
        """The fields that are hashed to an id."""
        switch = {} if self.switch is None else {"switch": [self.switch.enters, self.switch.leaves]}
        where = {"where": self.of_from} if self.of_from else {}
        reads = {"reads": self.reads} if self.reads else {}
        return {"by": [column.stored for column in self.by], **switch, **where, **reads}

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The expressions of the node over the rows below."""
        return (*self.by, *self.of_from, *(self.switch.expressions if self.switch else ()))

    @property
    def signature(self) -> str:
        """The clause of a signature, which follows WHERE; WHERE is evaluated for both rows of a pair."""
        return f" EMIT BY {', '.join(render_reference(column.reference) for column in self.by)}"
