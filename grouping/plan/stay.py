"""The bounds of UNTIL: a key enters when the bound of WHERE is TRUE, and exits when the bound of UNTIL is TRUE."""

from __future__ import annotations

import msgspec

from grouping.model.expression import Call, Column, Expression, Slot, Value

__all__ = ["Stay", "StayBound"]


class StayBound(msgspec.Struct, frozen=True, omit_defaults=True):
    """A comparison of a column with a constant."""

    op: str
    """``<``, ``<=``, ``>`` or ``>=``."""
    column: Column
    slot: int | None = None
    """The slot of the constant; None for the constant 0."""

    @property
    def above(self) -> bool:
        """Whether large values satisfy the bound."""
        return self.op in (">", ">=")

    @property
    def conjunct(self) -> Expression:
        """The comparison as an expression."""
        constant = Value(0, self.column.type_text) if self.slot is None else Slot(self.slot)
        return Call(self.op, (self.column, constant), "BOOLEAN")

    def opposes(self, other: StayBound) -> bool:
        """Tell whether two bounds are on the same column, one as a lower and the other as an upper bound."""
        return self.column == other.column and self.above != other.above


class Stay(msgspec.Struct, frozen=True):
    """The bound with which a key enters, and the bound with which the key leaves."""

    begin: StayBound
    end: StayBound
