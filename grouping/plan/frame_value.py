"""Window functions with their frames, such as `lag` or `count(*) OVER …`.

A frame is the event's own row and earlier rows of the same key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

import msgspec

from grouping.model.expression import Column, Expression, Framed, Slot, walk
from grouping.model.sql_type import DOUBLE, FLOAT, SqlType

__all__ = ["LAG", "FrameValue", "frame_value", "frame_values"]

LAG = "lag"
"""The function that reads an earlier row; all other functions aggregate the rows of the frame."""


class FrameValue(msgspec.Struct, frozen=True, omit_defaults=True):
    """A window function and its frame. The key belongs to the computation (`grouping.plan.frames.Frames`)."""

    function: str
    """`LAG`, or an aggregate by its canonical name (`grouping.functions.aggregates`)."""
    args: tuple[Expression, ...]
    """The arguments, over the rows for which WHERE is TRUE; empty for ``count(*)``."""
    type_text: str = msgspec.field(name="type")
    distinct: bool = False
    condition: Expression | None = None
    """The condition of FILTER."""
    rows: int | None = None
    """The number of rows of the frame before the event's own row; for `LAG`, the number of rows to look back."""
    milliseconds: int | None = None
    """For a frame by time, the largest difference between the event's time and the time of a row in the frame; None if
    `rows` is given."""

    @property
    def type(self) -> SqlType:
        """The type of the result."""
        return SqlType.of(self.type_text)

    @property
    def column(self) -> Column:
        """The column that has the result."""
        return Column.of(Framed(_encode(self).decode()), self.type_text)

    @property
    def is_shared(self) -> bool:
        """Whether CQs of all subscribers may share a computation with the window function.

        A shared window function takes a short constant time per event, and little memory. The function reads only
        columns of a fixed size, and is computed from one earlier row or from the difference of two sums. Other window
        functions may be slow, have large results, or raise errors.
        """
        sized = any(not isinstance(each, Column) or each.type.is_sized for each in self.expressions)
        inexact = any(isinstance(each, Column) and each.type in (FLOAT, DOUBLE) for each in self.args)
        if sized or self.distinct:
            return False
        return self.function in (LAG, "count") or (self.function in ("sum", "avg") and not inexact)

    @property
    def read_rows(self) -> int:
        """The number of rows in the frame if the worker reads all of them for each event; otherwise 0.

        `LAG` reads a single row. Counts, and sums and means of exact numbers, are computed as differences of cumulative
        sums. The number of rows in a frame by time is unknown, and is also given as 0.
        """
        inexact = any(not isinstance(each, Slot) and each.type in (FLOAT, DOUBLE) for each in self.args)
        is_sum = self.function == "count" or (self.function in ("sum", "avg") and not inexact)
        return 0 if self.function == LAG or (is_sum and not self.distinct) else (self.rows or 0)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The expressions over the rows of FROM."""
        return self.args if self.condition is None else (*self.args, self.condition)


@lru_cache(maxsize=65_536)
def frame_value(reference: Framed) -> FrameValue:
    """Return the window function of a column.

    Example:
        >>> back = FrameValue("lag", (Column("price", "DOUBLE"),), "DOUBLE", rows=1)
        >>> frame_value(back.column.reference) == back
        True
    """
    return _decode(reference.text)


def frame_values(expressions: Iterable[Expression]) -> Iterator[FrameValue]:
    """Yield the window functions that expressions use."""
    for expression in expressions:
        for leaf in walk(expression):
            if isinstance(leaf, Column) and isinstance(reference := leaf.reference, Framed):
                yield frame_value(reference)


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(FrameValue).decode
