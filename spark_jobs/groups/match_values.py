"""Keys and arguments of aggregates, by match: each expression is computed once for each event."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from grouping.model.expression import Column, Expression
from grouping.model.grouping import Aggregate
from spark_jobs.batch.row_source import RowSource
from spark_jobs.index import Ints
from spark_jobs.results.encode import EvaluateExpression

__all__ = ["MatchValues"]


class MatchValues:
    """Keys and arguments of some matches."""

    def __init__(
        self,
        evaluate: EvaluateExpression,
        events: RowSource,
        event: NDArray[np.int32],
        columns: dict[str, pl.Series],
    ) -> None:
        """Begin with nothing computed.

        Args:
            evaluate: Computes expressions.
            events: The batch.
            event: By match, its event.
            columns: The columns of the batch that were read before; those that are read now are added.
        """
        self._evaluate = evaluate
        self._events = events
        self._columns = columns
        self._rows, self._which = np.unique(event, return_inverse=True)
        self._known: dict[Expression, pl.Series] = {}

    def at(self, matches: Ints) -> MatchValues:
        """Return the values of some of the matches."""
        some = MatchValues(self._evaluate, self._events, self._rows[self._which[matches]], self._columns)
        some._known = {expression: values.gather(matches) for expression, values in self._known.items()}
        return some

    def of(self, expression: Expression) -> pl.Series:
        """Return by match the value of an expression."""
        found = self._known.get(expression)
        if found is None:
            if isinstance(expression, Column):
                values = self._column(expression.name).gather(self._rows)
            else:
                values = pl.Series(self._evaluate(expression, self._events, self._rows))
            found = self._known[expression] = values.gather(self._which)
        return found

    def _column(self, name: str) -> pl.Series:
        found = self._columns.get(name)
        if found is None:
            found = self._columns[name] = pl.Series(self._events.column(name))
        return found

    def arguments(self, aggregate: Aggregate) -> tuple[list[pl.Series], NDArray[np.bool_] | None]:
        """Return by match the arguments of an aggregate, and which matches FILTER lets through, None for all."""
        wanted = aggregate.condition
        counted = None if wanted is None else self.of(wanted).fill_null(False).to_numpy()
        return [self.of(argument) for argument in aggregate.args], counted

    def text_bytes(self) -> Ints:
        """Return by match the bytes of all texts and binary values."""
        total = np.zeros(self._which.size, np.int64)
        for values in self._known.values():
            if values.dtype in (pl.String, pl.Binary):
                sizes = values.str.len_bytes() if values.dtype == pl.String else values.bin.size()
                total += sizes.fill_null(0).to_numpy().astype(np.int64)
        return total
