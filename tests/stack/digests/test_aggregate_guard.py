"""HAVING and SELECT lists over aggregates, which the gateway evaluates, have a bounded CPU time."""

from __future__ import annotations

import subprocess
import sys
from array import array
from collections.abc import Iterator
from datetime import timedelta

import polars as pl
import pytest

from gateway.evaluation.one_entry import VERSION
from gateway.evaluation.task import evaluated
from gateway.testing import Record
from gateway.testing.query import checked
from gateway.testing.records import placed
from gateway.timers.aggregate_guard import AggregateGuard
from grouping.digests.answers import AggregatedMatches, DigestAnswer, DigestRefused
from grouping.digests.cursor import Cursor
from grouping.digests.gather import DigestQuestion
from grouping.digests.match_places import MatchPlaces
from grouping.digests.pending_log import PendingLog
from grouping.settings.settings import Settings
from grouping.store.work_units import SLOW_DIGESTS
from spark_jobs.engine.expressions.expression import compile_expression
from spark_jobs.engine.expressions.functions import FUNCTIONS
from spark_jobs.engine.expressions.types import Operand
from spark_jobs.engine.operators.aggregate.aggregate_digests import AggregateRequest, AnswerCache
from spark_jobs.engine.rows.cpu_budget import check_cpu
from tests.ground import Ground
from tests.unit.digests.aggregate_log import AT, START_MS, STREAM, destination_of

_COSTLY = (
    "SELECT count(*) AS c FROM t HAVING soundex(max(k)) <> 'x' EVERY '1 hour'",
    "SELECT soundex(max(k)) AS s FROM t EVERY '1 hour'",
)
_PLAIN = "SELECT count(*) AS c FROM t HAVING count(*) > 0 EVERY '1 hour'"


def _request(text: str, event: str) -> tuple[AggregateRequest, bytes]:
    """Return the question of a digest about a single event, and the record with the event's aggregate."""
    asked = checked(text, STREAM, AT)
    [task] = evaluated(asked, placed([Record({"k": event}, time=AT)], STREAM, AT), "p_" + "0" * 24, "pending")
    [body] = task.pending
    tick_ms = START_MS + round(timedelta(hours=1).total_seconds() * 1000)
    places = MatchPlaces(0, array("q", [0]))
    question = DigestQuestion(bytes(12), places, Cursor(), ((*VERSION, [(None, None)]),), tick_ms, None)
    return AggregateRequest(destination_of(asked, 0), question, asked.query.plan, asked.query.select), body


class _Office:
    """A gateway's guard, and how often a costly function was evaluated."""

    def __init__(self, settings: Settings) -> None:
        evaluator = settings.evaluator.model_copy(update={"group_seconds": 1.0})
        self.settings = settings.model_copy(update={"evaluator": evaluator})
        self.now_ms = START_MS
        self.guard = AggregateGuard(self.settings, lambda: self.now_ms)
        self.evaluated = 0
        self.costly = True

    def soundex(self, columns: list[pl.Series]) -> pl.Series:
        """Stand for a function of which each value takes very long."""
        self.evaluated += 1
        while self.costly:
            check_cpu()
        return columns[0]

    def answers(self, *texts: str, event: str = "a") -> list[DigestAnswer]:
        """Return the answers to questions about digests of several queries."""
        found: list[DigestAnswer] = []
        for text in texts:  # each query has a log of its own here
            request, body = _request(text, event)
            log = PendingLog(lambda _, first, last, body=body: iter([(0, body)] if first == 0 else []))
            found += [answer for _, answer in self.guard.answers(log, [request], AnswerCache())]
        return found


@pytest.fixture
def office(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> Iterator[_Office]:
    """A guard with a planted function."""
    office = _Office(ground.settings)

    def soundex(args: list[Operand], _: object) -> Operand:
        return Operand(pl.map_batches([args[0].expr], office.soundex, return_dtype=pl.String), args[0].type)

    compile_expression.cache_clear()
    monkeypatch.setitem(FUNCTIONS, "soundex", soundex)
    yield office
    compile_expression.cache_clear()


@pytest.mark.parametrize("text", _COSTLY, ids=["HAVING", "SELECT list"])
def test_a_costly_query_is_left_out_alone(office: _Office, text: str) -> None:
    """Its digests are refused, also by the next gateway, until the quarantine ends; other digests come."""
    refused, plain = office.answers(text, _PLAIN)
    assert isinstance(refused, DigestRefused) and isinstance(plain, AggregatedMatches)
    assert ("not-evaluated", True) == (refused.code, SLOW_DIGESTS in refused.reason)
    before = office.evaluated
    office.guard = AggregateGuard(office.settings, lambda: office.now_ms)
    [again] = office.answers(text)
    assert (refused, before) == (again, office.evaluated)
    office.now_ms += 61_000
    office.costly = False
    [found] = office.answers(text)
    assert isinstance(found, AggregatedMatches) and 1 == found.counted


_ENDLESS = "SELECT count(*) AS c FROM t HAVING regexp_count(max(k), '.*x|.') > 5 EVERY '1 hour'"
_GATEWAY = "import sys; from tests.stack.digests.test_aggregate_guard import make_endless; make_endless(*sys.argv[1:])"


def make_endless(prefix: str, redis_url: str) -> None:
    """Make the digest of a pattern of quadratic time over a long text: half a minute within a call."""
    office = _Office(Settings.model_validate({"prefix": prefix, "redis": {"url": redis_url}}))
    office.answers(_ENDLESS, event="a" * 150_000)


def test_a_call_that_does_not_return_ends_the_gateway_once(office: _Office) -> None:
    """The next gateway leaves the query out, and makes the digests of others."""
    own = office.settings.prefix, office.settings.redis.url.get_secret_value()
    command = [sys.executable, "-c", _GATEWAY, *own]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert (1, True) == (ran.returncode, "did not stop" in ran.stderr), ran.stderr
    refused, plain = office.answers(_ENDLESS, _PLAIN)
    assert isinstance(refused, DigestRefused) and isinstance(plain, AggregatedMatches)
