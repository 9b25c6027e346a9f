"""Records of `cq.pending` with aggregates of many stores, made without an evaluation."""

from __future__ import annotations

import random

import numpy as np
import polars as pl

from gateway.evaluation.one_entry import VERSION
from gateway.testing.query import checked
from grouping.digests.pending_matches import PendingAggregates, pack_aggregates
from grouping.model.ids import StreamId
from spark_jobs.engine.operators.aggregate.partials import Partials
from tests.unit.digests.aggregate_log import AT, START_MS, STREAM

__all__ = ["COUNTS", "random_aggregates"]

COUNTS = "SELECT k, count(*) AS c, count(i) AS ci, sum(n) AS s, avg(d) AS m FROM t GROUP BY k"


def random_aggregates(chance: random.Random, stores: int, records: int) -> list[bytes]:
    """Return records of some stores' aggregates, each a batch of a source partition, a few of them twice."""
    aggregation = checked(f"{COUNTS} EVERY '5 seconds'", STREAM, AT).query.select.aggregation
    assert aggregation is not None
    bodies, reached = [], [0, 0]
    for _ in range(records):
        partition = chance.randrange(2)
        first, reached[partition] = reached[partition], reached[partition] + 10
        names = sorted(chance.sample(range(stores), chance.randrange(1, stores)))
        count = len(names)
        ones = pl.Series([1] * count)
        args = [([ones] * len(aggregate.args), None) for aggregate in aggregation.aggregates]
        by = {"store": pl.Series(names)}
        partials = Partials(aggregation)
        lifted = partials.lifted(by, [pl.Series(["k"] * count)], args, np.arange(count))
        states = partials.counted(lifted, list(by)).drop("store")
        items = PendingAggregates(
            np.full(count, partition, np.int32),
            np.full(count, first),
            np.full(count, first + 9),
            np.zeros(count, np.int32),
            np.array([START_MS + 1000 * chance.randrange(20) for _ in names]),
            np.arange(count, dtype=np.int32),
        )
        ids = np.frombuffer(b"".join(bytes([name] * 12) for name in names), np.uint8).reshape(-1, 12)
        body = pack_aggregates(StreamId("s"), VERSION, ids, items, states.write_ipc_stream(None).getvalue())
        bodies += [body] * chance.choice([1, 1, 1, 2])
    return bodies
