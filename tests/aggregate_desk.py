"""The gateway's timers with CQs over aggregates: partial aggregates wait instead of matches."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from grouping.digests.pending_matches import PendingAggregates, pack_aggregates
from grouping.model.catalog import StreamColumn
from grouping.model.group import ConstantValue
from spark_jobs.engine.operators.aggregate.partials import Partials
from tests.timer_desk import Desk

__all__ = ["VENUES", "GroupDesk"]

VENUES = 5
"""Aggregates of a match, one for each venue."""


class GroupDesk(Desk):
    """Timers of CQs over aggregates: the constant of WHERE is a symbol, that of HAVING the CQ's own."""

    columns = tuple(StreamColumn(*each) for each in (("symbol", "STRING"), ("venue", "STRING"), ("volume", "BIGINT")))
    select = "SELECT venue, sum(volume) AS total FROM t WHERE symbol = 'S00000' GROUP BY venue HAVING sum(volume) > 10"
    symbols = 0
    """Each has a store."""
    half = 0
    """The volume of each partial aggregate."""
    pane = (1000, 0)
    """Period and phase of the panes."""

    def constants(self, number: int) -> tuple[ConstantValue, ...]:
        """Return the constants of a CQ: the sums of all venues pass the HAVINGs of a store's first half."""
        return f"S{number % self.symbols:05d}", number // self.symbols

    def _packed(self, ids: NDArray[np.uint8], offsets: NDArray[np.int64], times: NDArray[np.int64]) -> bytes:
        """Return a record of partial aggregates, of some venues for each store."""
        count = len(ids) * VENUES
        aggregation = self._query.select.aggregation
        assert aggregation is not None
        venue = pl.Series([f"V{number}" for number in range(VENUES)] * len(ids))
        volume = pl.Series(np.full(count, self.half))
        by = {"store": pl.Series(np.repeat(np.arange(len(ids)), VENUES))}
        partials = Partials(aggregation)
        lifted = partials.lifted(by, [venue], [([volume], None)], np.arange(count))
        states = partials.counted(lifted, list(by)).drop("store")
        spread = {name: np.repeat(values, VENUES) for name, values in (("offsets", offsets), ("times", times))}
        period, phase = self.pane
        aggregates = PendingAggregates(
            np.zeros(count, np.int32),
            spread["offsets"],
            spread["offsets"],
            np.tile(np.arange(VENUES, dtype=np.int32), len(ids)),
            spread["times"] - (spread["times"] - phase) % period,
            np.arange(count, dtype=np.int32),
        )
        order = np.lexsort(ids.T[::-1])
        items = np.repeat(order * VENUES, VENUES) + np.tile(np.arange(VENUES), len(ids))
        sorted_groups = PendingAggregates(*(column[items] for column in aggregates))
        sorted_groups = sorted_groups._replace(rows=np.arange(count, dtype=np.int32))
        body = states[items].write_ipc_stream(None).getvalue()
        return pack_aggregates(*self._found_with, np.repeat(ids[order], VENUES, axis=0), sorted_groups, body)
