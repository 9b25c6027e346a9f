"""The node that gives each row the values of frames: the row itself and rows before it of the same key."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import msgspec

from grouping.model.expression import Call, Column, Expression, Slot, Value
from grouping.model.reference import Framed, read_reference
from grouping.plan.expression_text import render_reference
from grouping.plan.frame_value import FrameValue, frame_value

__all__ = ["HIDDEN", "Frames", "without_values"]

HIDDEN = ("?",)
"""The text in the place of the constants of `conditions`, for `render_part`."""
_ROW_MICROS = 0.03
"""Microseconds to read one row of a frame: measured 0.025 for max, 0.03 for a sum of DOUBLEs, 0.08 for stddev."""


class Frames(msgspec.Struct, frozen=True, omit_defaults=True):
    """The rows below that WHERE lets through, with columns of frames.

    Which columns there are is not part of the node: the groups above it and their SELECT lists name them
    (`grouping.plan.frame_value`). The order of rows is their order in one source partition.
    """

    batch_micros: ClassVar[float] = 2_500.0
    """Time in each micro-batch of few events, estimated."""

    by: tuple[Column, ...]
    """The key, in the order of the stored texts, each column once: PARTITION BY, and the columns that WHERE compares
    with constants, which the group decides. NULL is a value like another, NaN equals NaN, and -0.0 equals 0.0."""
    where: tuple[Expression, ...] = ()
    """The conditions of WHERE that decide which rows exist, with their constants, in canonical order."""
    apart: tuple[str, ...] = ()
    """The values that queries without them do not share a computation with (`FrameValue.is_shared`), by the stored
    texts of their columns: a fault in such a value stops the queries alone that have the value."""

    @classmethod
    def of(cls, by: Iterable[Column], where: tuple[Expression, ...], values: Iterable[FrameValue] = ()) -> Frames:
        """Return the node of a key, of conditions, and of a query's values."""
        apart = {value.column.stored for value in values if not value.is_shared}
        return cls(tuple(sorted(set(by), key=lambda column: column.stored)), where, tuple(sorted(apart)))

    @property
    def event_micros(self) -> float:
        """Expected time for each event in microseconds, by the rows that the values read."""
        references = map(read_reference, self.apart)
        return _ROW_MICROS * sum(frame_value(each).read_rows for each in references if isinstance(each, Framed))

    @property
    def identity(self) -> dict[str, Any]:
        """The fields that make an id."""
        return {"frames": [column.stored for column in self.by], "where": self.where, "apart": self.apart}

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The expressions over the rows below that the node computes with."""
        return (*self.by, *self.where)

    @property
    def conditions(self) -> list[Expression]:
        """The conditions with slot 0 for each constant, since signatures hide constants."""
        return [without_values(each) for each in self.where]

    @property
    def key(self) -> str:
        """The clause of a signature that names the key."""
        return f" PARTITION BY {', '.join(render_reference(column.reference) for column in self.by)}"


def without_values(expression: Expression) -> Expression:
    """Return an expression with slot 0 for each constant."""
    if isinstance(expression, Call):
        return Call(expression.op, tuple(map(without_values, expression.args)), expression.type_text)
    return Slot(0) if isinstance(expression, Value) else expression
