"""The node that computes window functions for each row. A frame is the row itself and earlier rows of the same key."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from grouping.model.expression import Column, Expression, Framed, read_reference
from grouping.plan.frame_value import FrameValue, frame_value
from grouping.plan.keyed_rows import KeyedRows, key_of

__all__ = ["Frames"]

_ROW_MICROS = 0.03
"""Microseconds to read one row of a frame. Measurements gave 0.025 for max, 0.03 for a sum of DOUBLEs and 0.08 for
stddev."""


class Frames(KeyedRows, frozen=True, omit_defaults=True):
    """The rows of the node below for which WHERE is TRUE, with columns of frames.

    The node does not list the columns: groups and SELECT lists above the node name them (`grouping.plan.frame_value`).
    For a query with EMIT, the node keeps the other rows too, with NULL in all of its columns: such a row is no match,
    so it ends a stay, and it moves the watermark.
    The order of rows is their order in one source partition.
    """

    batch_micros: ClassVar[float] = 2_500.0
    """Estimated fixed time in each micro-batch, in microseconds."""

    apart: tuple[str, ...] = ()
    """Stored texts of the columns of the window functions that are not shared (`FrameValue.is_shared`).

    Only queries with the same unshared window functions share the computation, so a fault in one of these functions
    stops only queries that use the function. With edges, no window function is shared.
    """

    @classmethod
    def of(
        cls,
        by: Iterable[Column],
        where: tuple[Expression, ...],
        values: Iterable[FrameValue] = (),
        *,
        shares: bool = True,
    ) -> Frames:
        """Return the node.

        Args:
            by: The key.
            where: The conditions, in canonical order.
            values: The window functions of a query.
            shares: Whether queries with other window functions may share the node, as they may without edges.
        """
        apart = {value.column.stored for value in values if not (shares and value.is_shared)}
        return cls(key_of(by), where, tuple(sorted(apart)))

    @property
    def event_micros(self) -> float:
        """Expected microseconds for each event: the time to read the rows of frames for unshared window functions."""
        references = map(read_reference, self.apart)
        return _ROW_MICROS * sum(frame_value(each).read_rows for each in references if isinstance(each, Framed))

    @property
    def identity(self) -> dict[str, Any]:
        """The fields that are hashed to an id."""
        return {"frames": [column.stored for column in self.by], "where": self.where, "apart": self.apart}

    @property
    def key(self) -> str:
        """The clause of a signature that names the key."""
        return f" PARTITION BY {self.key_text}"
