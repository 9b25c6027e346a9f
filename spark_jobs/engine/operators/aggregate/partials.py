"""Partial aggregates: matches aggregated by the keys of GROUP BY and by some further columns, as a table of states.

A table has a row for each aggregate. Its first columns, called `by`, distinguish rows with equal keys; in a task they
are the store and the pane, for example. Then come the keys `k0`, `k1`, …, the number of matches `n`, and the columns of
the states, whose names begin with `a0.`, `a1.`, ….
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from grouping.model.expression import Reference
from grouping.plan.aggregate import Aggregate, AggregateValue
from spark_jobs.engine.expressions.types import polars_type
from spark_jobs.engine.operators.aggregate.states import one_zero, state_of
from spark_jobs.engine.operators.aggregate.value_lists import state_key

__all__ = ["Partials", "packed_states"]

_COUNT = "n"
_ALL = "all"
_OF_NONE: dict[str, Any] = {"count": 0, "approx_count_distinct": 0, "collect_list": [], "collect_set": []}
"""By function: its value if there is no match; all other functions give NULL."""


class Partials:
    """Makes and merges partial aggregates for one GROUP BY and its aggregate functions."""

    def __init__(self, aggregation: Aggregate) -> None:
        self.aggregation = aggregation
        # HAVING and the SELECT list may have the same aggregate function under two names, and several percentiles use
        # one list of values. Each state is kept only once.
        stems: dict[AggregateValue, str] = {}
        self._stems = [
            stems.setdefault(state_key(aggregate), f"a{number}.")
            for number, aggregate in enumerate(aggregation.aggregates)
        ]
        """For each aggregate function, the beginning of the names of its state's columns."""
        self._values = [state_of(aggregate) for aggregate in aggregation.aggregates]
        """For each aggregate function, the state that makes its final value."""
        self._states = [(stem, self._values[self._stems.index(stem)]) for stem in stems.values()]
        self.keys = [f"k{number}" for number in range(len(aggregation.keys))]
        """The names of the keys' columns."""
        self.form = (
            tuple(key.column.type for key in aggregation.keys),
            tuple(
                (stem, each.function, each.distinct, each.type, tuple(arg.type for arg in each.args))  # type: ignore[union-attr]  # no argument is a slot
                for each, stem in stems.items()
            ),
        )
        """If two aggregations have equal forms, their tables have the same columns and are merged in the same way."""

    def lifted(
        self,
        by: Mapping[str, pl.Series],
        keys: Sequence[pl.Series],
        args: Sequence[tuple[Sequence[pl.Series], NDArray[np.bool_] | None]],
        offsets: NDArray[np.int64],
    ) -> pl.DataFrame:
        """Return matches as rows for `counted`.

        Args:
            by: Columns that, together with the keys, decide to which aggregate a match belongs.
            keys: For each key, its values by match.
            args: For each aggregate function, the values of its arguments, and for which matches FILTER is TRUE.
            offsets: The offset of each match's event.
        """
        columns = [series.alias(name) for name, series in by.items()]
        columns += [
            (one_zero(values) if values.dtype.is_float() else values).alias(name)
            for name, values in zip(self.keys, keys, strict=True)
        ]
        columns.append(pl.Series(_COUNT, np.ones(len(offsets), np.int64)))
        values_of = dict(zip(self._stems, args, strict=True))
        for stem, state in self._states:
            values, wanted = values_of[stem]
            lifted = state.lift(values, wanted, offsets)
            columns += [series.alias(f"{stem}{name}") for name, series in lifted.items()]
        return pl.DataFrame(columns)

    def counted(self, lifted: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
        """Return the aggregates of lifted matches: a row for each combination of `by` and the keys."""
        states = [each for stem, state in self._states for each in state.begin(stem)]
        return _grouped(lifted, [*by, *self.keys], states)

    def merged(self, parts: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
        """Merge partial aggregates that have equal values in the columns `by` and equal keys."""
        states = [each for stem, state in self._states for each in state.merge(stem)]
        return _grouped(parts, [*by, *self.keys], states)

    def values(self, aggregates: pl.DataFrame) -> dict[Reference, pl.Series]:
        """Return the keys and the final values of the functions for each aggregate, by column."""
        found = {
            key.column.reference: aggregates[name] for key, name in zip(self.aggregation.keys, self.keys, strict=True)
        }
        for aggregate, stem, state in zip(self.aggregation.aggregates, self._stems, self._values, strict=True):
            found[aggregate.column.reference] = state.value(stem, aggregates)
        return found

    def no_aggregates(self) -> dict[Reference, pl.Series]:
        """Return the columns of `values` without any row."""
        columns = (key.column for key in self.aggregation.keys)
        found = {column.reference: pl.Series([], dtype=polars_type(column.type)) for column in columns}
        return found | {name: values.clear() for name, values in self.empty().items()}

    def empty(self) -> dict[Reference, pl.Series]:
        """Return the functions' columns of the single row that a query without GROUP BY has if there is no match."""
        found: dict[Reference, pl.Series] = {}
        for aggregate in self.aggregation.aggregates:
            value = _OF_NONE.get(aggregate.function)
            found[aggregate.column.reference] = pl.Series([value], dtype=polars_type(aggregate.type))
        return found


def packed_states(table: pl.DataFrame) -> bytes:
    """Return a table of states as an Arrow stream.

    Texts are in Arrow's oldest layout. In Polars' own layout, a slice would be written with the texts of all rows.
    """
    return table.write_ipc_stream(None, compat_level=pl.CompatLevel.oldest()).getvalue()


def _grouped(frame: pl.DataFrame, by: Sequence[str], states: Sequence[pl.Expr]) -> pl.DataFrame:
    if not by:
        frame, by = frame.with_columns(pl.lit(0).alias(_ALL)), [_ALL]
        return frame.group_by(by).agg(pl.col(_COUNT).sum(), *states).drop(_ALL)
    return frame.group_by(by, maintain_order=True).agg(pl.col(_COUNT).sum(), *states)
