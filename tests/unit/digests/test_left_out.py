"""Digests of an aggregate query that is not evaluated any more."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from gateway.evaluation.one_entry import VERSION
from gateway.evaluation.task import evaluated
from gateway.testing import Record
from gateway.testing.query import checked
from gateway.testing.records import placed
from grouping.digests.answers import AggregatedMatches, DigestRefused
from grouping.digests.cursor import Cursor
from grouping.digests.gather import DigestQuestion
from grouping.digests.match_places import MatchPlaces
from grouping.digests.pending_log import PendingLog
from spark_jobs.engine.operators.aggregate.aggregate_digests import (
    AggregateRequest,
    AnswerCache,
    QueryLeftOut,
    each_aggregate_digest,
)
from tests.unit.digests.aggregate_log import AT, START_MS, STREAM, destination_of


@contextmanager
def _left_out(_: int) -> Iterator[None]:
    raise QueryLeftOut("Its query takes too long.")
    yield


def test_matches_of_later_ticks_stay() -> None:
    """The digest of a tick is refused, with the matches behind it left for later; a look goes on."""
    asked = checked("SELECT count(*) AS c FROM t HAVING count(*) > 0 EVERY '1 minute'", STREAM, AT)
    bodies = []
    for number, second in enumerate((30, 90)):
        record = Record({"k": "a"}, time=AT + timedelta(seconds=second), partition=0, offset=number)
        [task] = evaluated(asked, placed([record], STREAM, AT), "p_" + "0" * 24, "pending")
        bodies += task.pending
    log = PendingLog(lambda _, first, last: iter([(at, bodies[at]) for at in range(first, min(last + 1, 2))]))
    places, always = MatchPlaces(0, array("q", [0, 1])), ((*VERSION, [(None, None)]),)
    home, query = destination_of(asked, 0), asked.query
    requests = [
        AggregateRequest(
            home, DigestQuestion(bytes(12), places, Cursor(), always, tick, None), query.plan, query.select, reached=2
        )
        for tick in (START_MS + 60_000, None)
    ]
    refused, look = dict(each_aggregate_digest(log, requests, AnswerCache(), _left_out)).values()
    assert isinstance(refused, DigestRefused) and isinstance(look, AggregatedMatches)
    assert ("not-evaluated", "Its query takes too long.") == (refused.code, refused.reason)
    assert ((1,), 2) == (refused.held, refused.reached)
    assert START_MS + 60_000 == refused.left_ms
    assert (0, False) == (look.counted, bool(look.rows))
