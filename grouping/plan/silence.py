"""The node of EMIT ON SILENCE: the latest match of a key becomes a row after an interval without a further match."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, ClassVar

import isodate

from grouping.model.expression import Column, Expression
from grouping.plan.keyed_rows import KeyedRows, key_of

__all__ = ["SilentKeys"]


class SilentKeys(KeyedRows, frozen=True, omit_defaults=True, kw_only=True):
    """The latest row of each key, as soon as the key is silent for an interval.

    A key is silent once the watermark of the source partition has reached the time of the key's latest row plus the
    interval. Rows are the events for which WHERE is TRUE. A row keeps its columns; the time of the result is the time
    of the row plus the interval.
    """

    batch_micros: ClassVar[float] = 1_500.0
    """Estimated fixed time in each micro-batch, in microseconds: the same as for `RowBefore`."""

    milliseconds: int
    """The interval."""
    reads: tuple[str, ...] = ()
    """Above `Frames`: the stored texts of the columns that results read, as in `RowBefore.reads`."""

    @classmethod
    def of(
        cls, by: Iterable[Column], milliseconds: int, where: tuple[Expression, ...], reads: tuple[str, ...] = ()
    ) -> SilentKeys:
        """Return the node for a key, an interval and conditions."""
        return cls(key_of(by), where, milliseconds=milliseconds, reads=reads)

    @property
    def due_after(self) -> int:
        """The number of milliseconds after a row's time that the watermark must reach before the row is a result."""
        return self.milliseconds

    @property
    def identity(self) -> dict[str, Any]:
        """The fields that are hashed to an id."""
        reads = {"reads": self.reads} if self.reads else {}
        return {"silence": self.milliseconds, "by": [column.stored for column in self.by], "where": self.where, **reads}

    @property
    def signature(self) -> str:
        """The clause of a signature, which follows WHERE."""
        interval = isodate.duration_isoformat(timedelta(milliseconds=self.milliseconds))
        return f" EMIT ON SILENCE '{interval}' BY {self.key_text}"
