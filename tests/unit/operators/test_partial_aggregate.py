"""Partial aggregates are the same, however the matches are cut into steps."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.evaluation.records import PlacedRecord, source_batch
from gateway.testing import Record
from gateway.testing.query import checked
from gateway.testing.records import placed
from grouping.settings.settings import Settings
from spark_jobs.engine.decode.decode import decode
from spark_jobs.engine.match.residual import evaluate_expression
from spark_jobs.engine.operators.aggregate.match_values import MatchValues
from spark_jobs.engine.operators.aggregate.partial_aggregate import PartialAggregate
from spark_jobs.engine.operators.aggregate.partials import Partials
from spark_jobs.engine.operators.aggregate.records import BY
from tests.unit.digests.aggregate_log import AT, STREAM, random_events
from tests.unit.operators.cutting import driven, pieces

_SELECTS = {
    "counts": "SELECT count(*) AS c, count(i) AS ci, count(*) FILTER (WHERE i > 3) AS f FROM t",
    "sums by key": "SELECT k, sum(n) AS s, avg(i) AS v, sum(a) AS w FROM t GROUP BY k",
    "extremes": "SELECT f, min(a) AS l, max(k) AS h, min_by(n, i) AS b, max_by(k, d) AS m FROM t GROUP BY f",
    "distinct": "SELECT count(DISTINCT i) AS c, count(DISTINCT k) AS d FROM t",
    "a computed key": "SELECT i % 3 AS r, max(d) AS m FROM t GROUP BY i % 3",
}


@pytest.mark.parametrize("select", _SELECTS.values(), ids=_SELECTS)
@settings(max_examples=20, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 30), st.lists(st.integers(0, 30), max_size=4), st.booleans())
def test_any_cutting_makes_the_same_rows(
    select: str, chance: random.Random, count: int, cuts: list[int], stored: bool
) -> None:
    """Matches of one step, or of several: at the watermark each group has the same values, and nothing is left."""
    aggregation = checked(f"{select} EVERY '5 seconds'", STREAM, AT).query.select.aggregation
    assert aggregation is not None
    partials = Partials(aggregation)
    made = [Record(event, time=AT, partition=0, offset=at) for at, event in enumerate(random_events(chance, count))]
    records = placed(made, STREAM, AT)

    def aggregates(steps: list[list[PlacedRecord]]) -> list[tuple[Any, ...]]:
        lifted = [_lifted(partials, step) for step in steps if step]
        ends = [(None, count), (None, count)]
        operator = PartialAggregate(partials)
        *before, last, behind = driven(operator, [*((rows, None) for rows in lifted), *ends], stored=stored)
        assert not any(before)
        assert not behind
        [table] = last
        values = partials.values(table)
        keys = [table[name] for name in (*BY, "n", *partials.keys)]
        return sorted(zip(*keys, *values.values(), strict=True), key=repr)

    assert aggregates([records]) == aggregates(pieces(records, cuts))


def _lifted(partials: Partials, records: list[PlacedRecord]) -> pl.DataFrame:
    """Return matches of records with two stores, one of which has every second event."""
    events, letters = decode(source_batch(records), STREAM.declared, Settings.model_construct())
    assert letters is None
    event = np.repeat(np.arange(events.count, dtype=np.int32), 2)
    store = np.tile(np.array([0, 1], np.int32), events.count)
    kept = (store == 0) | (events.offsets[event] % 2 == 0)
    event, store = event[kept], store[kept]
    values = MatchValues(evaluate_expression, events, event, {})
    none = np.zeros(event.size, np.int64)
    by = {"store": pl.Series(store), "pane": pl.Series(none), "at": pl.Series(none), "part": pl.Series(none)}
    keys = [values.of(key.expression) for key in partials.aggregation.keys]
    args = [values.arguments(each) for each in partials.aggregation.aggregates]
    return partials.lifted(by, keys, args, events.offsets[event])
