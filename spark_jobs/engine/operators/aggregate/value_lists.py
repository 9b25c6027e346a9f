"""The states of aggregate functions that need every value: percentiles, collected lists and collected sets.

A state is the list of the values that are not NULL. The limit on the bytes of a digest also limits the memory of its
states (`merging`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from msgspec.structs import replace
from numpy.typing import NDArray

from grouping.model.expression import Value
from grouping.plan.aggregate import AggregateValue
from spark_jobs.engine.operators.aggregate.aggregate_state import AggregateState, Counted, masked

__all__ = ["VALUE_LISTS", "state_key", "value_list"]

_RANKED = ("percentile", "median", "approx_percentile")
VALUE_LISTS = frozenset((*_RANKED, "collect_list", "collect_set"))
"""The functions whose state is a list of values."""


def value_list(aggregate: AggregateValue) -> AggregateState:
    """Return the state of one of `VALUE_LISTS`."""
    if aggregate.function == "collect_list":
        return _Collected()
    if aggregate.function == "collect_set":
        return _CollectedSet()
    percentage = 0.5 if aggregate.function == "median" else _number(aggregate.args[1])
    return (_Ranked if aggregate.function == "approx_percentile" else _Interpolated)(percentage)


def state_key(aggregate: AggregateValue) -> AggregateValue:
    """Return a key for the state of an aggregate function: functions with equal keys share one state.

    All percentiles of one value share their list.
    """
    if aggregate.function not in _RANKED:
        return replace(aggregate, stored="")
    kind = str(aggregate.args[0].type)  # type: ignore[union-attr]  # no argument is a slot
    return replace(aggregate, stored="", function=_RANKED[0], args=aggregate.args[:1], type_text=kind)


def _number(expression: object) -> float:
    assert isinstance(expression, Value), "the compiler takes constants only"
    return float(str(expression.value))


class _KeptValues(AggregateState):
    """The values, in any order."""

    def lift(self, args: Sequence[pl.Series], counted: Counted, offsets: NDArray[np.int64]) -> dict[str, pl.Series]:
        return {"v": masked(args[0], counted)}

    def begin(self, stem: str) -> list[pl.Expr]:
        return [pl.col(f"{stem}v").drop_nulls()]

    def merge(self, stem: str) -> list[pl.Expr]:
        return [pl.col(f"{stem}v").explode().drop_nulls()]


class _Ranked(_KeptValues):
    """The value at the rank that is the percentage of the number of values, rounded up.

    The value is exact, whereas Spark approximates the value.
    """

    def __init__(self, percentage: float) -> None:
        self._percentage = percentage

    def value(self, stem: str, frame: pl.DataFrame) -> pl.Series:
        values = frame[f"{stem}v"].list.sort()
        ranks = np.ceil(self._percentage * values.list.len().to_numpy()).astype(np.int64)
        return values.list.get(pl.Series(np.maximum(ranks - 1, 0)), null_on_oob=True)


class _Interpolated(_Ranked):
    """The value at a position, interpolated linearly between the two neighbouring values, as Spark computes it."""

    def value(self, stem: str, frame: pl.DataFrame) -> pl.Series:
        values = frame[f"{stem}v"].list.sort()
        counts = values.list.len().to_numpy().astype(np.int64)
        position = np.maximum(counts - 1, 0) * self._percentage
        lower, higher = np.floor(position), np.ceil(position)
        below, above = (
            values.list.get(pl.Series(place.astype(np.int64)), null_on_oob=True) for place in (lower, higher)
        )
        low, high = _doubles(below), _doubles(above)
        with np.errstate(invalid="ignore"):
            between = (higher - position) * low + (position - lower) * high
        same = (lower == higher) | (below == above).fill_null(False).to_numpy()
        return pl.Series(np.where(same, low, between)).set(pl.Series(counts == 0), None)


def _doubles(values: pl.Series) -> NDArray[np.float64]:
    """Return numbers as DOUBLEs, NaN for NULL.

    A DECIMAL becomes the nearest DOUBLE. Polars' own cast rounds twice.
    """
    if values.dtype.is_decimal():
        values = pl.Series([None if value is None else float(value) for value in values], dtype=pl.Float64)
    return values.cast(pl.Float64).fill_null(float("nan")).to_numpy()


class _Collected(AggregateState):
    """The values in the order of their events within a source partition; the state has the offset of each value."""

    def lift(self, args: Sequence[pl.Series], counted: Counted, offsets: NDArray[np.int64]) -> dict[str, pl.Series]:
        return {"v": masked(args[0], counted), "o": pl.Series(offsets)}

    def begin(self, stem: str) -> list[pl.Expr]:
        return self._kept([pl.col(f"{stem}{name}") for name in "vo"])

    def merge(self, stem: str) -> list[pl.Expr]:
        return self._kept([pl.col(f"{stem}{name}").explode() for name in "vo"])

    @staticmethod
    def _kept(columns: list[pl.Expr]) -> list[pl.Expr]:
        there = columns[0].is_not_null()
        return [column.filter(there) for column in columns]

    def value(self, stem: str, frame: pl.DataFrame) -> pl.Series:
        values, offsets = (pl.col(f"{stem}{name}") for name in "vo")
        # Joined rows of an event have the same offset; ordinal ranks keep the order of their values.
        order = offsets.list.eval(pl.element().rank("ordinal").arg_sort())
        return frame.select(values.list.gather(order)).to_series()


class _CollectedSet(_KeptValues):
    """The distinct values, in the order in which they first came."""

    def begin(self, stem: str) -> list[pl.Expr]:
        return [expr.unique(maintain_order=True) for expr in super().begin(stem)]

    def merge(self, stem: str) -> list[pl.Expr]:
        return [expr.unique(maintain_order=True) for expr in super().merge(stem)]

    def value(self, stem: str, frame: pl.DataFrame) -> pl.Series:
        return frame[f"{stem}v"]
