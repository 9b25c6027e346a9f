"""Merges partial aggregates while they are gathered for digests, in bounded memory."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import polars as pl

from grouping.digests.aggregate_gather import AggregatePart
from grouping.digests.digest_aggregates import TooManyAggregates, TooManyTogether
from grouping.plan.group import SelectList
from spark_jobs.engine.operators.aggregate.partials import Partials

__all__ = ["MOST_AGGREGATES", "AggregateMerge", "MergedAggregates", "partials_of"]

MOST_AGGREGATES = 1_000_000
"""The largest number of aggregates of one digest. All other work waits two seconds while this many are merged."""
_MOST_BYTES = 256 << 20
"""The largest number of bytes of the states of one digest's aggregates; a state may be a set of distinct values."""
_TOGETHER = 2
"""The limits of one digest, multiplied by this number, are the limits of all digests that are merged together."""


class MergedAggregates(NamedTuple):
    """The aggregates of a question: the rows in [begin, end) of a table that several questions share."""

    table: pl.DataFrame
    begin: int
    end: int


class AggregateMerge:
    """Merges the parts of aggregates while they are read, so that no record of the log stays in memory."""

    def __init__(
        self, select: SelectList, questions: int, most_aggregates: int = MOST_AGGREGATES, most_bytes: int = _MOST_BYTES
    ) -> None:
        self._partials = partials_of(select)
        self._count = questions
        self._most = (most_aggregates, most_bytes)
        self._next = self._most
        """When there are more aggregates or bytes than this, the tables are merged, and the limits are checked
        again."""
        self._tables: list[pl.DataFrame] = []
        self.size = 0
        """The bytes of all aggregates; 0 until `aggregates` has returned them."""
        self.late = np.zeros(questions, np.int64)
        """For each question, the number of matches whose times are before the beginning of the digest."""

    def take(self, parts: Sequence[AggregatePart]) -> None:
        """Take in parts of aggregates from some records, which must be in the order of the log.

        Raises:
            TooManyAggregates: At least one question exceeds a limit for a digest.
            TooManyTogether: No single question exceeds a limit, but all questions together do.
        """
        own = []
        for part in parts:
            states = pl.read_ipc_stream(part.record.values[0])[part.rows]
            np.add.at(self.late, part.question[part.late], states["n"].to_numpy()[part.late])
            own.append(states.with_columns(pl.Series("question", part.question)))
        merged = self._partials.merged(pl.concat(own, how="diagonal_relaxed"), ["question"])
        self._tables.append(merged)
        aggregates, size = (sum(each) for each in zip(*map(_extent, self._tables), strict=True))
        if len(self._tables) > _MOST_TABLES or aggregates > self._next[0] or size > self._next[1]:
            self._tables = [self._whole()]
            self._check(self._tables[0])

    def _check(self, whole: pl.DataFrame) -> None:
        """Raise TooManyAggregates or TooManyTogether if the aggregates exceed a limit."""
        most_aggregates, most_bytes = self._most
        aggregates, size = _extent(whole)
        large: set[int] = set()
        if aggregates > most_aggregates:
            large.update(np.flatnonzero(np.bincount(whole["question"].to_numpy()) > most_aggregates).tolist())
        if size > most_bytes:
            large.update(
                int(number) for (number,), own in whole.group_by("question") if own.estimated_size() > most_bytes
            )
        if large:
            raise TooManyAggregates(large)
        if self._count > 1 and (aggregates > _TOGETHER * most_aggregates or size > _TOGETHER * most_bytes):
            raise TooManyTogether
        self._next = max(most_aggregates, 2 * aggregates), max(most_bytes, 2 * size)

    def _whole(self) -> pl.DataFrame:
        whole = pl.concat(self._tables, how="diagonal_relaxed")
        return whole if len(self._tables) == 1 else self._partials.merged(whole, ["question"])

    def aggregates(self) -> list[MergedAggregates]:
        """Return the aggregates of each question.

        Raises:
            TooManyAggregates: At least one question exceeds a limit for a digest.
            TooManyTogether: No single question exceeds a limit, but all questions together do.
        """
        if not self._tables:
            return [MergedAggregates(_NO_AGGREGATES, 0, 0)] * self._count
        whole = self._whole()
        self._check(whole)
        table = whole.sort("question", *self._partials.keys, nulls_last=True)
        self.size = _extent(table)[1]
        bounds = np.searchsorted(table["question"].to_numpy(), np.arange(self._count + 1)).tolist()
        return [MergedAggregates(table, *bounds[number : number + 2]) for number in range(self._count)]


def _extent(table: pl.DataFrame) -> tuple[int, int]:
    """Return the number of aggregates in a table, and their bytes."""
    return table.height, int(table.estimated_size())


_MOST_TABLES = 16
"""The largest number of tables before they are merged into one."""
_NO_AGGREGATES = pl.DataFrame({"n": pl.Series([], dtype=pl.Int64)})


@lru_cache(maxsize=256)
def partials_of(select: SelectList) -> Partials:
    """Return the `Partials` of a SELECT list."""
    assert select.aggregation is not None, "the SELECT list has aggregates"
    return Partials(select.aggregation)
