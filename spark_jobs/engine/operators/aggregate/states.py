"""The states of aggregate functions: how a state is made from matches, merged with others, and becomes a final value.

A state is some columns of a table with a row for each aggregate (a row of GROUP BY). Merging is associative, so the
result does not depend on how matches are divided into pieces. In Polars a merge is an expression. Acero's grouped
aggregations (`pyarrow.TableGroupBy`) only give final values. Acero has no states such as a sum that detects its
overflow, moments, or a set of distinct values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from grouping.model.decimal_types import WIDEST
from grouping.model.sql_type import SqlType
from grouping.plan.aggregate import AggregateValue
from spark_jobs.engine.operators.aggregate.aggregate_state import AggregateState, Counted, masked
from spark_jobs.engine.operators.aggregate.value_lists import VALUE_LISTS, value_list

__all__ = ["one_zero", "state_of"]

_MASK = 0xFFFF_FFFF
_HALF = 32
"""The number of bits of a limb. Sums of limbs have 64 bits, so they are exact for two billion matches."""
_EXACT = Context(prec=120, rounding=ROUND_HALF_UP)
_QUOTIENT_DIGITS = WIDEST + 1
"""The number of decimal places to which Spark divides before it rounds to the result type."""


def _sums(stem: str, names: Sequence[str]) -> list[pl.Expr]:
    return [pl.col(f"{stem}{name}").sum() for name in names]


class _Count(AggregateState):
    is_sum = True

    def lift(self, args: Sequence[pl.Series], counted: Counted, offsets: NDArray[np.int64]) -> dict[str, pl.Series]:
        counts = np.ones(len(offsets), np.bool_) if counted is None else counted.copy()
        for argument in args:
            if argument.null_count():
                counts &= argument.is_not_null().to_numpy()
        return {"n": pl.Series(counts.astype(np.int64))}

    def merge(self, stem: str) -> list[pl.Expr]:
        return _sums(stem, "n")

    def value(self, stem: str, frame: pl.DataFrame) -> pl.Series:
        return frame[f"{stem}n"]


class _Distinct(AggregateState):
    """The set of distinct values, each as a text. The count is exact, and the memory grows with the values."""

    def lift(self, args: Sequence[pl.Series], counted: Counted, offsets: NDArray[np.int64]) -> dict[str, pl.Series]:
        texts = [_text(argument) for argument in args]
        if len(texts) == 1:
            return {"d": masked(texts[0], counted)}
        frame = pl.DataFrame([text.alias(str(number)) for number, text in enumerate(texts)])
        parts = [
            part for name in frame.columns for part in (pl.col(name).str.len_bytes().cast(pl.String), pl.col(name))
        ]
        joined = frame.select(pl.concat_str(parts, separator=":").alias("d"))[
            "d"
        ]  # each text follows its length, so different tuples have different texts
        return {"d": masked(joined, counted)}

    def begin(self, stem: str) -> list[pl.Expr]:
        return [pl.col(f"{stem}d").drop_nulls().unique(maintain_order=True)]

    def merge(self, stem: str) -> list[pl.Expr]:
        return [pl.col(f"{stem}d").explode().drop_nulls().unique(maintain_order=True)]

    def value(self, stem: str, frame: pl.DataFrame) -> pl.Series:
        return frame[f"{stem}d"].list.len().cast(pl.Int64)


def one_zero(values: pl.Series) -> pl.Series:
    """Return values with a single zero of DOUBLE: -0.0 becomes 0.0."""
    return values.set(values == 0.0, 0.0) if values.dtype.is_float() else values  # Polars would simplify x + 0.0 to x


def _text(values: pl.Series) -> pl.Series:
    """Return values as texts; two texts are equal exactly when the two values are equal."""
    if values.dtype.is_float():
        values = one_zero(values).fill_nan(float("nan"))  # all NaNs get the same bits
    if isinstance(values.dtype, pl.Datetime):
        values = values.cast(pl.Int64)
    return values.bin.encode("hex") if values.dtype == pl.Binary else values.cast(pl.String)


class _WholeSum(AggregateState):
    """The sums of the 32-bit halves of whole numbers: exact, so that a total too large for BIGINT is detected."""

    is_sum = True

    def lift(self, args: Sequence[pl.Series], counted: Counted, offsets: NDArray[np.int64]) -> dict[str, pl.Series]:
        present, filled = _filled(args[0], counted)
        numbers = filled.cast(pl.Int64).to_numpy()
        low, high = numbers & _MASK, numbers >> _HALF
        return {"n": pl.Series(present.astype(np.int64)), "h": pl.Series(high), "l": pl.Series(low)}

    def merge(self, stem: str) -> list[pl.Expr]:
        return _sums(stem, "nhl")

    def value(self, stem: str, frame: pl.DataFrame) -> pl.Series:
        count, high, low = (frame[f"{stem}{name}"].to_numpy() for name in "nhl")
        high = high + (low >> _HALF)
        fits = (high >= -(1 << (_HALF - 1))) & (high < 1 << (_HALF - 1)) & (count > 0)
        return pl.Series((high << _HALF) | (low & _MASK)).set(pl.Series(~fits), None)


class _WholeMean(_WholeSum):
    """The mean of whole numbers, from their exact sum."""

    def value(self, stem: str, frame: pl.DataFrame) -> pl.Series:
        count, high, low = (frame[f"{stem}{name}"].to_numpy() for name in "nhl")
        total = high.astype(np.float64) * (1 << _HALF) + low
        return (pl.Series(total) / pl.Series(count)).set(pl.Series(count == 0), None)


def _present(values: pl.Series) -> NDArray[np.bool_]:
    """Return which values are not NULL. Without NULLs, Polars is not called, since a call is slow for few matches."""
    return values.is_not_null().to_numpy() if values.null_count() else np.ones(len(values), np.bool_)


def _filled(values: pl.Series, counted: Counted) -> tuple[NDArray[np.bool_], pl.Series]:
    """Return which values are counted, and all values, with 0 in place of each uncounted value."""
    present = _present(values)
    if counted is not None:
        present = present & counted
    return present, values.set(pl.Series(~present), 0) if not present.all() else values


class _DecimalSum(AggregateState):
    """The sum of DECIMALs, kept as four sums of 32-bit limbs of the unscaled numbers."""

    is_sum = True

    def __init__(self, aggregate: AggregateValue, *, mean: bool) -> None:
        self._argument: SqlType = aggregate.args[0].type  # type: ignore[union-attr]  # no argument is a slot
        self._type = aggregate.type
        self._mean = mean

    def lift(self, args: Sequence[pl.Series], counted: Counted, offsets: NDArray[np.int64]) -> dict[str, pl.Series]:
        present = _present(args[0])
        if counted is not None:
            present = present & counted
        array = args[0].to_arrow()
        halves = np.frombuffer(array.buffers()[1], np.int64)[2 * array.offset : 2 * (array.offset + len(array))]
        low, high = halves[0::2], halves[1::2]
        limbs = (low & _MASK, (low >> _HALF) & _MASK, high & _MASK, high >> _HALF)
        columns = {str(number): pl.Series(np.where(present, limb, 0)) for number, limb in enumerate(limbs)}
        return {"n": pl.Series(present.astype(np.int64)), **columns}

    def merge(self, stem: str) -> list[pl.Expr]:
        return _sums(stem, "n0123")

    def value(self, stem: str, frame: pl.DataFrame) -> pl.Series:
        columns = [frame[f"{stem}{name}"].to_list() for name in "n0123"]
        values = [self._value(*row) for row in zip(*columns, strict=True)]
        return pl.Series(values, dtype=pl.Decimal(self._type.precision, self._type.scale))

    def _value(self, count: int, *limbs: int) -> Decimal | None:
        if not count:
            return None
        unscaled = sum(limb << (_HALF * number) for number, limb in enumerate(limbs))
        digits = min(self._argument.precision + 10, WIDEST)
        if abs(unscaled) >= 10**digits:
            return None
        total = Decimal(unscaled).scaleb(-self._argument.scale, _EXACT)
        if not self._mean:
            return total
        quotient = _EXACT.quantize(_EXACT.divide(total, Decimal(count)), Decimal(1).scaleb(-_QUOTIENT_DIGITS))
        rounded = _EXACT.quantize(quotient, Decimal(1).scaleb(-self._type.scale))
        return rounded if abs(rounded) < Decimal(10) ** (self._type.precision - self._type.scale) else None


class _DoubleSum(AggregateState):
    def __init__(self, *, mean: bool) -> None:
        self._mean = mean

    def lift(self, args: Sequence[pl.Series], counted: Counted, offsets: NDArray[np.int64]) -> dict[str, pl.Series]:
        present, filled = _filled(args[0], counted)
        return {"n": pl.Series(present.astype(np.int64)), "s": filled.cast(pl.Float64)}

    def merge(self, stem: str) -> list[pl.Expr]:
        return _sums(stem, "ns")

    def value(self, stem: str, frame: pl.DataFrame) -> pl.Series:
        count, total = frame[f"{stem}n"], frame[f"{stem}s"]
        return (total / count if self._mean else total).set(count == 0, None)


class _Extreme(AggregateState):
    """The least or the greatest value; NaN is greater than all numbers."""

    def __init__(self, *, greatest: bool) -> None:
        self._greatest = greatest

    def lift(self, args: Sequence[pl.Series], counted: Counted, offsets: NDArray[np.int64]) -> dict[str, pl.Series]:
        return {"v": masked(args[0], counted)}

    def merge(self, stem: str) -> list[pl.Expr]:
        return [_ordered(pl.col(f"{stem}v"), pl.col(f"{stem}v"), self._greatest)]

    def value(self, stem: str, frame: pl.DataFrame) -> pl.Series:
        return frame[f"{stem}v"]


def _ordered(values: pl.Expr, by: pl.Expr, greatest: bool) -> pl.Expr:
    """Return the value in the row with the least or greatest `by` that is not NULL; if rows are equal, the first."""
    there = by.is_not_null()
    return values.filter(there).sort_by(by.filter(there), descending=greatest, maintain_order=True).first()


class _ExtremeNumber(_Extreme):
    """The least or the greatest of values that Polars orders as SQL does."""

    def merge(self, stem: str) -> list[pl.Expr]:
        column = pl.col(f"{stem}v")
        return [column.max() if self._greatest else column.min()]


class _ExtremeBy(AggregateState):
    """The value in the row where another column is least or greatest; of equal rows, the first is taken."""

    def __init__(self, *, greatest: bool) -> None:
        self._greatest = greatest

    def lift(self, args: Sequence[pl.Series], counted: Counted, offsets: NDArray[np.int64]) -> dict[str, pl.Series]:
        return {"v": args[0], "o": masked(args[1], counted)}

    def merge(self, stem: str) -> list[pl.Expr]:
        by = pl.col(f"{stem}o")
        return [_ordered(pl.col(f"{stem}{name}"), by, self._greatest) for name in "vo"]

    def value(self, stem: str, frame: pl.DataFrame) -> pl.Series:
        return frame[f"{stem}v"]


class _Arrival(AggregateState):
    """The value that came first, or last, within a source partition."""

    def __init__(self, *, last: bool) -> None:
        self._last = last

    def lift(self, args: Sequence[pl.Series], counted: Counted, offsets: NDArray[np.int64]) -> dict[str, pl.Series]:
        return {"v": args[0], "o": masked(pl.Series(offsets), counted)}

    def merge(self, stem: str) -> list[pl.Expr]:
        by = pl.col(f"{stem}o")
        columns = [pl.col(f"{stem}{name}") for name in "vo"]
        if not self._last:
            return [_ordered(column, by, greatest=False) for column in columns]
        there = by.is_not_null()  # joined rows of an event have the same offset: the last of these rows is taken
        return [column.filter(there).sort_by(by.filter(there), maintain_order=True).last() for column in columns]

    def value(self, stem: str, frame: pl.DataFrame) -> pl.Series:
        return frame[f"{stem}v"]


class _Moments(AggregateState):
    """Count, mean and the sum of squared deviations (Chan, Golub and LeVeque 1979), as Spark keeps them."""

    def __init__(self, *, sample: bool, root: bool) -> None:
        self._sample = sample
        self._root = root

    def lift(self, args: Sequence[pl.Series], counted: Counted, offsets: NDArray[np.int64]) -> dict[str, pl.Series]:
        present, filled = _filled(args[0], counted)
        count = present.astype(np.int64)
        return {"n": pl.Series(count), "m": filled.cast(pl.Float64), "q": pl.Series(np.zeros(count.size))}

    def merge(self, stem: str) -> list[pl.Expr]:
        count, mean, squares = (pl.col(f"{stem}{name}") for name in "nmq")
        total = count.sum()
        # Differences from the first mean are summed, so that the mean of equal values is exactly their value, and their
        # deviation exactly 0.
        first = mean.filter(count > 0).first()
        joint = pl.when(total > 0).then(first + (count * (mean - first)).sum() / total).otherwise(0.0)
        return [total, joint.alias(f"{stem}m"), (squares + count * (mean - joint) ** 2).sum().alias(f"{stem}q")]

    def value(self, stem: str, frame: pl.DataFrame) -> pl.Series:
        count, squares = frame[f"{stem}n"], frame[f"{stem}q"]
        degrees = count - int(self._sample)
        variance = (squares / degrees).set(degrees <= 0, None)
        return variance.sqrt() if self._root else variance


def state_of(aggregate: AggregateValue) -> AggregateState:
    """Return the state of an aggregate function."""
    if aggregate.function == "approx_count_distinct" or aggregate.distinct:
        return _Distinct()
    if aggregate.function in ("sum", "avg"):
        return _sum(aggregate, mean=aggregate.function == "avg")
    if aggregate.function in ("min", "max"):
        sql_type: SqlType = aggregate.args[0].type  # type: ignore[union-attr]  # no argument is a slot
        return (_Extreme if sql_type.name in ("DOUBLE", "FLOAT") else _ExtremeNumber)(
            greatest=aggregate.function == "max"
        )
    if aggregate.function in VALUE_LISTS:
        return value_list(aggregate)
    return _OTHERS[aggregate.function]()


def frame_state_of(aggregate: AggregateValue) -> AggregateState:
    """Return the state of an aggregate function for frames.

    The state of a mean of whole numbers has their exact sum, so that a frame's state is a difference of two sums. In
    the logs of digests this state is a sum of DOUBLEs, whose form must stay.
    """
    if aggregate.function == "avg" and not aggregate.distinct and _is_whole(aggregate):
        return _WholeMean()
    return state_of(aggregate)


def _is_whole(aggregate: AggregateValue) -> bool:
    sql_type: SqlType = aggregate.args[0].type  # type: ignore[union-attr]  # no argument is a slot
    return sql_type.is_whole


def _sum(aggregate: AggregateValue, *, mean: bool) -> AggregateState:
    if aggregate.type.is_decimal:
        return _DecimalSum(aggregate, mean=mean)
    return _DoubleSum(mean=mean) if mean or aggregate.type.name == "DOUBLE" else _WholeSum()


_OTHERS: dict[str, Callable[[], AggregateState]] = {
    "count": _Count,
    "min_by": lambda: _ExtremeBy(greatest=False),
    "max_by": lambda: _ExtremeBy(greatest=True),
    "first": lambda: _Arrival(last=False),
    "last": lambda: _Arrival(last=True),
    "stddev_pop": lambda: _Moments(sample=False, root=True),
    "stddev_samp": lambda: _Moments(sample=True, root=True),
    "var_pop": lambda: _Moments(sample=False, root=False),
    "var_samp": lambda: _Moments(sample=True, root=False),
    "bool_and": lambda: _ExtremeNumber(greatest=False),
    "bool_or": lambda: _ExtremeNumber(greatest=True),
}
