"""Data types for aggregates of digests: the questions to the evaluator's code, and the answers of this code.

The code is in `spark_jobs/engine/operators/aggregate/`: `aggregate_digests.py` asks, and the other files answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from grouping.digests.rows import DigestRows
from grouping.model.group import ConstantRow

__all__ = ["DigestAggregates", "AggregateDestination", "TooManyAggregates", "TooManyTogether"]


class TooManyAggregates(Exception):
    """Some questions have more aggregates than a digest may hold."""

    def __init__(self, questions: Iterable[int]) -> None:
        """Name the questions by their numbers."""
        super().__init__("too many aggregates")
        self.questions = frozenset(questions)


class TooManyTogether(Exception):
    """The aggregates of several questions together exceed the memory limit; the questions must be split."""


class AggregateDestination(NamedTuple):
    """A destination of a query."""

    aggregates: Any
    """The aggregates from `AggregateMerge.aggregates`. Destinations that differ only in HAVING share them."""
    row: ConstantRow
    with_none: bool
    """Whether the digest has a row even without matches, as for queries without GROUP BY."""


class DigestAggregates(NamedTuple):
    """The contents of a destination's digest."""

    rows: DigestRows
    """The aggregates that satisfy HAVING, as JSON objects in the order of their keys."""
    matches: int
    """The number of counted matches, including aggregates that do not satisfy HAVING."""
    left_out: str = ""
    """Why some of the rows are missing, as a full sentence; "" if no row is missing."""
    failure: str = ""
    """Why there are no rows; empty if there is no failure."""
