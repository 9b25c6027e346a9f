"""Digests of groups in bounded memory: rows that no record holds are left out and told, the rest is made in pieces."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from gateway.evaluation.one_entry import VERSION
from gateway.evaluation.task import evaluated
from gateway.testing import Stream
from gateway.testing.query import checked
from gateway.testing.records import placed
from grouping.digests.answers import AggregatedMatches
from grouping.digests.cursor import Cursor
from grouping.digests.gather import DigestQuestion
from grouping.digests.match_places import MatchPlaces
from grouping.digests.pending_log import PendingLog
from spark_jobs.engine.operators.aggregate import kept
from spark_jobs.engine.operators.aggregate.aggregate_digests import (
    AggregateRequest,
    AnswerCache,
    aggregate_digests,
    each_aggregate_digest,
)
from spark_jobs.engine.results.encode import encode
from spark_jobs.engine.results.pending import MAX_ROW_BYTES
from tests.unit.digests.aggregate_log import AT, START_MS, destination_of

_STREAM = Stream("t (k STRING, v INT)")
_ALWAYS = ((*VERSION, [(None, None)]),)


def _asked(select: str, rows: Sequence[dict[str, Any]]) -> tuple[PendingLog, AggregateRequest]:
    """Return a log with the groups of some rows, and the question for all of them."""
    query = checked(f"{select} EVERY '1 hour'", _STREAM, AT)
    tasks = evaluated(query, placed(list(rows), _STREAM, AT), "p_" + "0" * 24, "pending")
    bodies = [body for task in tasks for body in task.pending]
    log = PendingLog(lambda _, first, last: iter([(at, bodies[at]) for at in range(first, min(last + 1, len(bodies)))]))
    places = MatchPlaces(0, array("q", range(len(bodies))))
    question = DigestQuestion(bytes(12), places, Cursor(), _ALWAYS, START_MS + 5_000_000, {"0": 100_000})
    return log, AggregateRequest(destination_of(query, 0), question, query.query.plan, query.query.select)


def test_a_row_that_no_record_holds_is_left_out() -> None:
    """The digest reports a row grown beyond a record; all other rows are in the digest, and all matches count."""
    keys = ["a", "b" * 999, "c", "d" * 995]
    log, request = _asked("SELECT repeat(k, 1000) AS r FROM t GROUP BY k", [{"k": key, "v": 1} for key in keys])
    [found] = aggregate_digests(log, [request])
    assert ["a" * 1000, "c" * 1000] == [json.loads(row.body)["r"] for row in found.rows]
    assert 4 == found.counted
    assert found.left_out.startswith("The digest comes without 2 rows: the largest has 999")
    assert isinstance(found, AggregatedMatches)


def test_large_rows_are_made_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """However large all rows of a digest are together, some of them are in memory, and the rest in a file."""
    made: list[int] = []

    def counted(*args: Any, **options: Any) -> Any:
        found = encode(*args, **options)
        made.append(int(found.sizes.sum()))
        return found

    monkeypatch.setattr(kept, "encode", counted)
    rows = [{"k": f"{number:0490}", "v": 1} for number in range(100)]
    log, request = _asked("SELECT repeat(k, 1000) AS r FROM t GROUP BY k", rows)
    [found] = aggregate_digests(log, [request])
    assert max(made) < 20 << 20
    assert 100 == len(found.rows)
    assert found.rows.size > 100 * 490_000
    assert max(len(row.body) for row in found.rows) < MAX_ROW_BYTES


def test_having_is_decided_some_destinations_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any number of destinations and groups: a limited number is decided at once, and each gets its own rows."""
    decided: list[int] = []
    holds = kept.holds

    def counted(conjuncts: Any, events: Any, positions: Any, *rest: Any) -> Any:
        decided.append(positions.size)
        return holds(conjuncts, events, positions, *rest)

    monkeypatch.setattr(kept, "holds", counted)
    monkeypatch.setattr(kept, "PAIRS", 100)
    rows = [{"k": f"{number % 30:02}", "v": number} for number in range(300)]
    log, request = _asked("SELECT k, max(v) AS m FROM t GROUP BY k HAVING max(v) > 285", rows)
    constants = request.destination.constants
    assert "285" in constants
    requests = [
        request._replace(destination=replace(request.destination, constants=constants.replace("285", str(270 + at))))
        for at in range(30)
    ]
    found = aggregate_digests(log, requests)
    assert [29 - at for at in range(30)] == [len(each.rows) for each in found]
    assert max(decided) <= 100
    assert sum(decided) == 900


def test_queries_of_a_cut_are_answered_one_after_the_other() -> None:
    """The first digest comes before the groups of a second query are gathered, and the cache is emptied between."""
    found, one = _asked("SELECT k, max(v) AS m FROM t GROUP BY k", [{"k": "a", "v": 1}])
    other = _asked("SELECT k, min(v) AS m FROM t GROUP BY k", [])[1]._replace(question=one.question)
    body = found.load([(0, 0)])[0, 0].encode()
    reads: list[int] = []

    def read(_: int, first: int, last: int) -> Iterator[tuple[int, bytes]]:
        reads.append(first)
        return iter([(first, body)])

    log = PendingLog(read)
    known = AnswerCache()
    answers = each_aggregate_digest(log, [one, other, one], known)
    assert [0, 2] == [next(answers)[0], next(answers)[0]]
    assert [0] == reads
    assert 1 == next(answers)[0]
    assert [0, 0] == reads
    assert known.of(one.question.covered)
    known.add(1 << 30)
    assert not known.of(one.question.covered)
