"""Events with computed keys: values of expressions over an event's columns, which are looked up like columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grouping.model.expression import Key, Reference
from spark_jobs.engine.match.residual import evaluate_expression
from spark_jobs.engine.rows.columns import Columns
from spark_jobs.engine.rows.cpu_budget import charged
from spark_jobs.engine.rows.event_column import VALUE_BYTES, as_plain
from spark_jobs.engine.rows.partners import Partners, partners

__all__ = ["KeySource"]


class KeySource:
    """Events with `grouping.model.expression.Key`s as further columns, each computed once per batch."""

    def __init__(self, source: Columns, value_bytes: int = VALUE_BYTES) -> None:
        """Wrap the events; a computed text with more than `value_bytes` bytes is NULL."""
        self._source = source
        self._value_bytes = value_bytes
        self._computed: dict[Key, pa.Array] = {}

    @property
    def count(self) -> int:
        """The number of events."""
        return self._source.count

    def partners(self, prefix: str, rows: NDArray[np.integer]) -> Partners:
        """Return the join partners of rows in a LEFT JOIN."""
        return partners(self._source, prefix, rows)

    def column(self, name: Reference) -> pa.Array:
        """Return the values of a column, or of the expression that a key column stands for."""
        if not isinstance(name, Key):
            return self._source.column(name)
        found = self._computed.get(name)
        if found is None:
            rows = np.arange(self._source.count)
            with charged(name):
                found = as_plain(evaluate_expression(name.expression, self._source, rows, self._value_bytes))
            self._computed[name] = found
        return found

    def encoded(self, name: Reference) -> pa.Array:
        """Return a column like `column`, but dictionary-encoded if the source has the column dictionary-encoded."""
        return self.column(name) if isinstance(name, Key) else self._source.encoded(name)
