"""The node of EMIT ON ENTER or EXIT with FOR: a key that enters and stays in for an interval becomes a row."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, ClassVar

import isodate
import msgspec

from grouping.model.expression import Column, Expression
from grouping.plan.keyed_rows import KeyedRows, key_of
from grouping.plan.switch import Switch

__all__ = ["Height", "LastingMatches"]


class Height(msgspec.Struct, frozen=True, omit_defaults=True):
    """The column of the comparison with a constant in WHERE; the group decides the comparison."""

    column: Column
    above: bool = True
    """Whether large values are matches."""


class LastingMatches(KeyedRows, frozen=True, omit_defaults=True, kw_only=True):
    """The rows with which keys enter and then stay in for an interval.

    A row becomes a result once the watermark has passed the row's time plus the interval, if each row of the key within
    the interval was a match too. A row keeps its columns; the time of the result is the time of the row plus the
    interval. The row with which such a stay ends is a result too: an exit, with the row's own time. A row is no match
    for any group unless `where` is TRUE.
    """

    batch_micros: ClassVar[float] = 1_500.0
    """Estimated fixed time in each micro-batch, in microseconds: the same as for `RowBefore`."""

    milliseconds: int
    """The interval."""
    height: Height | None = None
    """The column that WHERE compares with a constant. None without such a comparison: then each row for which `where`
    is TRUE is a match."""
    until: bool = False
    """Whether UNTIL ends a stay. UNTIL is then a bound of the column of `height` from the other side, and `where` is
    empty."""
    switch: Switch | None = None
    """If `height` has the column `SWITCH`, the conditions of this column; otherwise None."""
    of_from: tuple[Expression, ...] = ()
    """The conditions of views, subqueries and joins of FROM, as in `RowBefore.of_from`. A row for which one of them is
    not TRUE neither begins nor ends a stay, but it moves the watermark."""
    reads: tuple[str, ...] = ()
    """Above `Frames`: the stored texts of the columns that results read, as in `RowBefore.reads`."""

    @classmethod
    def of(
        cls,
        by: Iterable[Column],
        milliseconds: int,
        height: Height | None,
        where: tuple[Expression, ...],
        *,
        until: bool = False,
        switch: Switch | None = None,
    ) -> LastingMatches:
        """Return the node of a key, an interval and conditions."""
        return cls(key_of(by), where, milliseconds=milliseconds, height=height, until=until, switch=switch)

    @property
    def due_after(self) -> int:
        """The number of milliseconds after a row's time that the watermark must reach before the row is a result.

        A row at the end of the interval still belongs to the interval, and is not late while the watermark is at the
        end. So the watermark must be a millisecond later than the end.
        """
        return self.milliseconds + 1

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The expressions over the rows below that the node computes with."""
        compared = () if self.height is None else (self.height.column,)
        return (*self.by, *(compared if self.switch is None else self.switch.expressions), *self.where, *self.of_from)

    @property
    def identity(self) -> dict[str, Any]:
        """The fields that are hashed to an id."""
        height = None if self.height is None else [self.height.column.stored, self.height.above]
        by = [column.stored for column in self.by]
        more: dict[str, Any] = {"until": True} if self.until else {}
        if self.switch is not None:
            more["switch"] = [self.switch.enters, self.switch.leaves]
        if self.of_from:
            more["from"] = self.of_from
        if self.reads:
            more["reads"] = self.reads
        return {"for": self.milliseconds, "by": by, "height": height, "where": self.where, **more}

    @property
    def signature(self) -> str:
        """The clause of a signature, which follows WHERE."""
        interval = isodate.duration_isoformat(timedelta(milliseconds=self.milliseconds))
        return f" EMIT BY {self.key_text} FOR '{interval}'"
