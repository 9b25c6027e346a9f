"""The column by which the nodes above `Frames` know the rows for which WHERE is TRUE."""

from __future__ import annotations

from grouping.model.expression import Call, Column, Computed, Value

__all__ = ["PASSES", "PASSING"]

PASSES = Column.of(Computed("passes"), "TINYINT")
"""The column of rows above the frames of a query with EMIT: 1 in a row for which WHERE is TRUE, else NULL."""
PASSING = Call(">", (PASSES, Value(0, PASSES.type_text)), "BOOLEAN")
"""The condition that excludes the rows for which WHERE is not TRUE."""
