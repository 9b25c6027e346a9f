"""Groups of joined rows beside DuckDB, which runs each query alone: whole keys, parts of keys, LEFT, several tables."""

from __future__ import annotations

import json
from array import array
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings

from gateway.evaluation.one_entry import VERSION, snapshot_of
from gateway.evaluation.standing_query import StandingQuery
from gateway.model.records import Destination
from gateway.model.trigger_spec import TriggerSpec
from grouping.digests.cursor import Cursor
from grouping.digests.gather import DigestQuestion
from grouping.digests.match_places import MatchPlaces
from grouping.digests.pending_log import PendingLog
from grouping.digests.pending_matches import PendingMatches
from grouping.model.group import canonical_constants
from grouping.plan.group import CompiledQuery
from spark_jobs.engine.decode.decode import decode
from spark_jobs.engine.match.evaluate import matches
from spark_jobs.engine.match.residual import evaluate_expression
from spark_jobs.engine.operators.aggregate.aggregate_digests import AggregateRequest, aggregate_digests
from spark_jobs.engine.operators.aggregate.counting import AggregateCounting
from spark_jobs.engine.operators.lookup_join.join import join
from spark_jobs.engine.operators.lookup_join.table_view import TableView
from spark_jobs.engine.stages.counting_stage import counting_step
from tests.join_oracle import Row, duckdb_rows
from tests.unit.joins.join_queries import (
    EVENTS,
    OWNER_ROWS,
    OWNERS,
    PROFILE_ROWS,
    PROFILES,
    QUOTES,
    compiled,
    view_of,
    views_of,
)
from tests.unit.matching.event_batches import batch
from tests.unit.replica.table_records import SETTINGS

_QUERIES = [
    "SELECT p.industry AS i, count(*) AS c, sum(q.n) AS s FROM quotes q JOIN profiles p ON q.symbol = p.symbol"
    " WHERE p.staff > 0 GROUP BY p.industry",
    "SELECT p.industry AS i, max(price) AS m FROM quotes q LEFT JOIN profiles p ON q.symbol = p.symbol"
    " GROUP BY p.industry HAVING count(*) > 1",
    "SELECT o.owner AS o, count(*) AS c, sum(o.n) FILTER (WHERE q.n > 0) AS s FROM quotes q"
    " JOIN owners o ON q.symbol = o.symbol GROUP BY o.owner HAVING count(*) > 1 OR min(q.n) = 2",
    "SELECT count(o.owner) AS c, count(DISTINCT o.owner) AS d, count(*) AS a FROM quotes q"
    " LEFT JOIN owners o ON q.symbol = o.symbol AND o.n < q.n",
    "SELECT p.industry AS i, o.owner AS o, count(*) AS c FROM quotes q JOIN profiles p ON q.symbol = p.symbol"
    " LEFT JOIN owners o ON o.symbol = q.symbol WHERE price < 1 OR p.staff = 2 GROUP BY p.industry, o.owner",
]


def _pending(query: CompiledQuery, events: list[Row], views: dict[str, TableView], at_once: int) -> list[bytes]:
    """Return the records of tasks that read some events each."""
    asked = StandingQuery(QUOTES, query, TriggerSpec(60_000), None, None, (), views)
    snapshot = snapshot_of(asked, "p_" + "0" * 24, "pending")
    assert query.plan.computation is not None
    bodies: list[bytes] = []
    for first in range(0, len(events), at_once):
        some = [json.dumps(event).encode() for event in events[first : first + at_once]]
        decoded, _ = decode(batch(some, first=100 + first), QUOTES, SETTINGS)
        rows = join(decoded, query.plan.computation, views)
        counting = AggregateCounting(evaluate_expression, _no_letters, snapshot.bounds)
        counting.extend(3, 100 + first, 99 + first + len(some))
        for found in matches(snapshot.over(query.plan.computation_id), rows):
            counting.take(rows, found)
        if (step := counting_step(counting)) is not None:
            assert not list(step.records(None))
        bodies += [body for _, body in counting.records(query.plan.stream_id, VERSION)]
    return bodies


def _no_letters(*_: object) -> Any:
    raise AssertionError("no match is too large")


@pytest.mark.parametrize("select", _QUERIES, ids=range(len(_QUERIES)))
@pytest.mark.parametrize("at_once", [1, 3, 8])
@settings(max_examples=15)
@given(EVENTS, PROFILE_ROWS, OWNER_ROWS)
def test_groups_are_those_of_the_joined_rows(
    select: str, at_once: int, events: list[Row], profiles: Row, owners: Row
) -> None:
    """A digest has the groups of all joined rows, however events are cut into tasks; one event may count many times."""
    named = [{"symbol": symbol, **row} for symbol, row in profiles.items()]
    owned = [{"owner": owner, "symbol": symbol, **row} for (owner, symbol), row in owners.items()]
    query = compiled(select)
    bodies = _pending(query, events, views_of(select, named, owned), at_once)
    plan, kept = query.plan, query.plan.kept
    assert kept is not None
    constants = canonical_constants(query.row)
    home = Destination("d_1", plan.stream_id, plan.group_id, query.select.select_id, constants, "shared", 0)
    log = PendingLog(lambda _, first, last: iter([(at, bodies[at]) for at in range(first, min(last + 1, len(bodies)))]))
    places = MatchPlaces(0, array("q", range(len(bodies)))) if bodies else None
    question = DigestQuestion(bytes(12), places, Cursor(), ((*VERSION, [(None, None)]),), 1 << 60, None)
    [found] = aggregate_digests(log, [AggregateRequest(home, question, plan, query.select)])
    got = [tuple(json.loads(row.body).values()) for row in found.rows]
    wanted = duckdb_rows(select, events, named, owned) if found.counted else []
    assert sorted(got, key=repr) == sorted(wanted, key=repr)


def test_first_and_last_of_the_rows_of_one_event() -> None:
    """Rows that one event makes have their order: `first` takes the first of them, `last` the last."""
    owned = [{"owner": name, "symbol": "a", "n": number} for number, name in enumerate("xyz")]
    query = compiled(
        "SELECT first(o.owner) AS f, last(o.owner) AS l FROM quotes q JOIN owners o ON q.symbol = o.symbol"
    )
    event = {"symbol": "a", "price": 1.0, "n": 1}
    bodies = _pending(query, [event], {"t_1": view_of(PROFILES, []), "t_2": view_of(OWNERS, owned)}, 1)
    [record] = map(PendingMatches.decode, bodies)
    states = pl.read_ipc_stream(record.values[0])
    assert [3, "x", "z"] == [states[name][0] for name in ("n", "a0.v", "a1.v")]
