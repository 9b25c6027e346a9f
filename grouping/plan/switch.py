"""The switch of a query with UNTIL: a column that tells whether a row lets its key enter or leave."""

from __future__ import annotations

import msgspec

from grouping.model.expression import Column, Computed, Expression
from grouping.plan.expression_text import HIDDEN, all_of, render_part, without_values
from grouping.plan.passing import PASSING
from grouping.plan.stay import Stay, StayBound

__all__ = ["SWITCH", "SWITCH_STAY", "Switch"]

SWITCH = Column.of(Computed("switch"), "TINYINT")
"""The column: -1 in a row for which UNTIL is TRUE, 1 in any other row for which WHERE is TRUE, else NULL."""
SWITCH_STAY = Stay(StayBound(">", SWITCH), StayBound("<", SWITCH))
"""The bounds of a group over rows with the column: a key enters with 1, and leaves with -1."""


class Switch(msgspec.Struct, frozen=True):
    """The conditions of WHERE and UNTIL from which the column is computed, with their constants."""

    enters: tuple[Expression, ...]
    """The conditions of WHERE; empty if each row lets its key enter."""
    leaves: tuple[Expression, ...]
    """The conditions of UNTIL, all of which must be TRUE."""

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """All conditions."""
        return (*self.enters, *self.leaves)

    @property
    def conditions(self) -> list[Expression]:
        """The conditions of WHERE, in which slot 0 stands for each constant, since signatures hide constants."""
        return [without_values(each) for each in self.enters if each != PASSING]

    @property
    def until(self) -> str:
        """UNTIL's condition as SQL, without its constants."""
        condition = all_of([without_values(each) for each in self.leaves])
        assert condition is not None, "UNTIL has a condition"
        return render_part(condition, HIDDEN)
