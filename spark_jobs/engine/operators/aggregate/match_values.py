"""Computes the keys and arguments of aggregates for each match; an expression is computed only once for each event."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from grouping.model.expression import Column, Expression, Reference
from grouping.plan.aggregate import AggregateValue
from spark_jobs.engine.index import Ints
from spark_jobs.engine.results.encode import EvaluateExpression
from spark_jobs.engine.rows.row_source import RowSource
from spark_jobs.engine.rows.value_sizes import value_sizes

__all__ = ["MatchValues"]


class MatchValues:
    """Keys and arguments of some matches."""

    def __init__(
        self,
        evaluate: EvaluateExpression,
        events: RowSource,
        event: NDArray[np.int32],
        columns: dict[Reference, pl.Series],
    ) -> None:
        """Begin with nothing computed.

        Args:
            evaluate: Computes expressions.
            events: The batch.
            event: The event of each match.
            columns: The columns of the batch that were read before; newly read columns are added.
        """
        self._evaluate = evaluate
        self._events = events
        self._columns = columns
        self._event = event
        self._rows, which = np.unique(event, return_inverse=True)
        self._which = None if which.size == self._rows.size and np.array_equal(self._rows, event) else which
        """For each match, the place of its event in `_rows`; None if `_rows` is equal to the events of the matches."""
        self._known: dict[Expression, pl.Series] = {}

    def at(self, matches: Ints) -> MatchValues:
        """Return the values of some of the matches."""
        some = MatchValues(self._evaluate, self._events, self._event[matches], self._columns)
        some._known = {expression: values[matches] for expression, values in self._known.items()}
        return some

    def of(self, expression: Expression) -> pl.Series:
        """Return the value of an expression for each match."""
        found = self._known.get(expression)
        if found is None:
            if isinstance(expression, Column):
                found = self._column(expression.reference)[self._event]
            else:
                found = pl.Series(self._evaluate(expression, self._events, self._rows))
                if self._which is not None:
                    found = found[self._which]
            self._known[expression] = found
        return found

    def _column(self, name: Reference) -> pl.Series:
        found = self._columns.get(name)
        if found is None:
            found = self._columns[name] = pl.Series(self._events.column(name))
        return found

    def arguments(self, aggregate: AggregateValue) -> tuple[list[pl.Series], NDArray[np.bool_] | None]:
        """Return the arguments of an aggregate function for each match, and for which matches FILTER is TRUE.

        The second result is None if the function has no FILTER.
        """
        wanted = aggregate.condition
        counted = None
        if wanted is not None:
            true = self.of(wanted)
            counted = (true.fill_null(False) if true.null_count() else true).to_numpy()
        return [self.of(argument) for argument in aggregate.args], counted

    def text_bytes(self) -> Ints:
        """Return for each match the bytes of all texts and binary values that were computed so far."""
        total = np.zeros(self._event.size, np.int64)
        for values in self._known.values():
            if values.dtype in (pl.String, pl.Binary):
                total += value_sizes(values.to_arrow())
        return total
