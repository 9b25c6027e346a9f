"""The node of EMIT ON SILENCE: the latest match of a key becomes a row after an interval without a match."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, ClassVar

import isodate
import msgspec

from grouping.model.expression import Column, Expression
from grouping.plan.expression_text import render_reference
from grouping.plan.frames import without_values

__all__ = ["SilentKeys"]


class SilentKeys(msgspec.Struct, frozen=True, omit_defaults=True):
    """The latest rows of keys, when the watermark of the source partition passes the time of the row plus an interval.

    Rows are the events for which WHERE is TRUE. A row keeps its columns; the time of the result is the time of the row
    plus the interval.
    """

    batch_micros: ClassVar[float] = 1_500.0
    """Time in each micro-batch of few events, estimated: as for rows before."""

    by: tuple[Column, ...]
    """The key, in the order of the stored texts, without repeats: BY of EMIT, and columns with an equality in WHERE,
    which the group decides. NULL is a value, NaN equals NaN, and -0.0 equals 0.0."""
    milliseconds: int
    """The interval."""
    where: tuple[Expression, ...] = ()
    """The conditions of WHERE below the group, with constants, in canonical order."""

    @classmethod
    def of(cls, by: Iterable[Column], milliseconds: int, where: tuple[Expression, ...]) -> SilentKeys:
        """Return the node of a key, an interval and conditions."""
        return cls(tuple(sorted(set(by), key=lambda column: column.stored)), milliseconds, where)

    @property
    def identity(self) -> dict[str, Any]:
        """The fields that make an id."""
        return {"silence": self.milliseconds, "by": [column.stored for column in self.by], "where": self.where}

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The expressions over the rows below that the node computes with."""
        return (*self.by, *self.where)

    @property
    def conditions(self) -> list[Expression]:
        """The conditions with slot 0 for each constant, since signatures hide constants."""
        return [without_values(each) for each in self.where]

    @property
    def signature(self) -> str:
        """The clause of a signature; it stands behind WHERE."""
        by = ", ".join(render_reference(column.reference) for column in self.by)
        interval = isodate.duration_isoformat(timedelta(milliseconds=self.milliseconds))
        return f" EMIT ON SILENCE '{interval}' BY {by}"
