"""The interface of the states of aggregate functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

__all__ = ["AggregateState", "Counted", "masked"]

Counted = NDArray[np.bool_] | None
"""For each match, whether FILTER is TRUE for it; None if the function has no FILTER."""


class AggregateState:
    """The state of one aggregate function. The names of its columns begin with `stem`."""

    is_sum: ClassVar[bool] = False
    """Whether all columns are integers that `begin` and `merge` add up."""

    def lift(self, args: Sequence[pl.Series], counted: Counted, offsets: NDArray[np.int64]) -> dict[str, pl.Series]:
        """Return the state's columns for single matches.

        Args:
            args: For each argument of the function, its value by match.
            counted: For which matches FILTER is TRUE.
            offsets: The offset of each match's event, which gives the order of the matches.
        """
        raise NotImplementedError

    def begin(self, stem: str) -> list[pl.Expr]:
        """Return expressions that make an aggregate's columns from its matches' columns; `merge` by default."""
        return self.merge(stem)

    def merge(self, stem: str) -> list[pl.Expr]:
        """Return expressions that make an aggregate's columns from its parts' columns, in the order of the log."""
        raise NotImplementedError

    def value(self, stem: str, frame: pl.DataFrame) -> pl.Series:
        """Return the function's value for each aggregate, in its SQL type."""
        raise NotImplementedError


def masked(values: pl.Series, counted: Counted) -> pl.Series:
    """Return values, with NULL for the matches for which FILTER is not TRUE."""
    return values if counted is None else values.set(pl.Series(~counted), None)
