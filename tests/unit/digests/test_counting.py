"""A task's partial aggregates: records within their size, all of a unit or nothing, units of one form together."""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gateway.evaluation.one_entry import VERSION, snapshot_of
from gateway.evaluation.records import source_batch
from gateway.testing import Record
from gateway.testing.query import CheckedQuery, checked
from gateway.testing.records import placed
from grouping.digests.cursor import Cursor
from grouping.digests.gather import DigestQuestion
from grouping.digests.match_places import MatchPlaces
from grouping.digests.pending_log import PendingLog
from grouping.digests.pending_matches import PendingMatches
from grouping.settings.settings import Settings
from grouping.store.work_units import unit_of
from spark_jobs.engine.decode.decode import decode
from spark_jobs.engine.match.evaluate import matches
from spark_jobs.engine.match.residual import evaluate_expression
from spark_jobs.engine.operators.aggregate import records
from spark_jobs.engine.operators.aggregate.aggregate_digests import AggregateRequest, aggregate_digests
from spark_jobs.engine.operators.aggregate.counting import AggregateCounting
from spark_jobs.engine.rows.output import MAX_RECORD_BYTES
from spark_jobs.engine.stages.counting_stage import counting_step
from tests.unit.digests.aggregate_log import AT, STREAM, destination_of

_EVENT: dict[str, Any] = {"k": "a", "f": True, "i": 1, "n": 1, "d": 0.5, "a": "1.00"}


def _query(text: str) -> CheckedQuery:
    return checked(f"{text} EVERY '1 hour'", STREAM, AT)


class _Task:
    """A task over some events, batch by batch, and some queries, each with a store of its own."""

    def __init__(self, queries: Sequence[CheckedQuery]) -> None:
        self._queries = queries
        self._snapshots = [snapshot_of(each, self.store(number), "pending") for number, each in enumerate(queries)]
        self.letters: list[str] = []
        bounds = {number: snapshot.bounds[0] for number, snapshot in enumerate(self._snapshots)}
        self.counting = AggregateCounting(evaluate_expression, self._letter, bounds)

    @staticmethod
    def store(number: int) -> str:
        return f"p_{number:024x}"

    def _letter(self, source: pa.RecordBatch, details: dict[int, str]) -> pa.RecordBatch:
        self.letters += details.values()
        return source

    def read(self, first: int, rows: Sequence[dict[str, Any]]) -> None:
        made = [Record(_EVENT | row, time=AT, partition=0, offset=first + at) for at, row in enumerate(rows)]
        events, none = decode(source_batch(placed(made, STREAM, AT)), STREAM.declared, Settings.model_construct())
        assert none is None
        self.counting.extend(0, first, first + len(rows) - 1)
        for number, snapshot in enumerate(self._snapshots):
            for found in matches(snapshot, events):
                self.counting.take(events, replace(found, number=found.number + np.int32(number)))
        if (step := counting_step(self.counting)) is not None:
            list(step.records(None))

    def bodies(self, left_out: Sequence[str] = ()) -> list[bytes]:
        found = []
        for _, body in self.counting.records(STREAM.declared.stream_id, VERSION, left_out):
            if isinstance(body, records.OversizeAggregate):
                self.counting.oversize_letter(body)
            else:
                found.append(body)
        return found


def _digest(query: CheckedQuery, store: str, bodies: Sequence[bytes]) -> list[dict[str, Any]]:
    log = PendingLog(lambda _, first, last: iter([(at, bodies[at]) for at in range(first, min(last + 1, len(bodies)))]))
    places = MatchPlaces(0, array("q", range(len(bodies))))
    question = DigestQuestion(bytes.fromhex(store[2:]), places, Cursor(), ((*VERSION, [(None, None)]),), 1 << 60, None)
    request = AggregateRequest(destination_of(query, 0), question, query.query.plan, query.query.select)
    [found] = aggregate_digests(log, [request])
    return [json.loads(row.body) for row in found.rows]


def test_a_piece_carries_its_own_values_alone() -> None:
    """The records of `count(DISTINCT …)` take about the bytes of the distinct values, each once, not each time all."""
    query = _query("SELECT count(DISTINCT k) AS c FROM t")
    task = _Task([query])
    task.read(0, [{"k": f"a value of some length, number {number:06}"} for number in range(40_000)])
    bodies = task.bodies()
    assert max(map(len, bodies)) <= MAX_RECORD_BYTES
    assert sum(map(len, bodies)) < 2 * 40_000 * 38
    assert [{"c": 40_000}] == _digest(query, task.store(0), bodies)


def test_an_aggregate_that_no_record_holds_is_a_dead_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    """The aggregate is left out with a letter; other aggregates of the query, and other queries, are written."""
    monkeypatch.setattr(records, "MAX_RECORD_BYTES", 20_000)
    query, other = _query("SELECT k, count(*) AS c FROM t GROUP BY k"), _query("SELECT count(*) AS c FROM t")
    task = _Task([query, other])
    task.read(0, [{"k": "x" * 30_000}, {"k": "b"}, {"k": "x" * 30_000}])
    bodies = task.bodies()
    assert max(map(len, bodies)) <= 20_000
    [letter] = task.letters
    assert letter.startswith("An aggregate of 2 matches from offset 0 to 2 takes 3")
    assert [{"k": "b", "c": 1}] == _digest(query, task.store(0), bodies)
    assert [{"c": 3}] == _digest(other, task.store(1), bodies)


def test_a_unit_that_was_left_out_of_some_events_is_not_counted() -> None:
    """A replay that evaluates the unit for all events counts each match once, whatever the first attempt had."""
    query, other = (
        _query("SELECT k, count(*) AS c FROM t GROUP BY k"),
        _query("SELECT k, max(i) AS m FROM t GROUP BY k"),
    )
    attempt, replay = _Task([query, other]), _Task([query, other])
    attempt.read(0, [{"k": "b"}, {"k": "c"}])
    unit = unit_of(query.query.plan.group_id, query.query.select.select_id)
    first = attempt.bodies([unit])  # since it failed in the batch behind
    assert [(unit, (0, 0, 1), 2)] == [*attempt.counting.incomplete.values()]
    assert [] == _digest(query, attempt.store(0), first)
    assert [{"k": "b", "m": 1}, {"k": "c", "m": 1}] == _digest(other, attempt.store(1), first)
    replay.read(0, [{"k": "b"}, {"k": "c"}])
    replay.read(2, [{"k": "a"}, {"k": "b"}])
    both = [*first, *replay.bodies()]
    assert [{"k": "a", "c": 1}, {"k": "b", "c": 2}, {"k": "c", "c": 1}] == _digest(query, attempt.store(0), both)


def test_a_group_of_queries_is_left_out_by_its_id() -> None:
    """Where a whole group was left out, none of its SELECT lists counts."""
    query = _query("SELECT count(*) AS c FROM t WHERE i > 0")
    task = _Task([query])
    task.read(0, [{}])
    assert [] == task.bodies([query.query.plan.group_id])


def test_queries_of_one_form_share_their_records() -> None:
    """A hundred queries with aggregates of the same types share one record, and each has its own aggregates."""
    queries = [_query(f"SELECT k, sum(i + {number}) AS s{number} FROM t GROUP BY k") for number in range(100)]
    task = _Task(queries)
    task.read(0, [{"k": "a", "i": 1}, {"k": "b", "i": 2}, {"k": "a", "i": 3}])
    [body] = task.bodies()
    for number in (0, 42, 99):
        expected = [{"k": "a", f"s{number}": 4 + 2 * number}, {"k": "b", f"s{number}": 2 + number}]
        assert expected == _digest(queries[number], task.store(number), [body])


def test_many_queries_do_not_read_the_records_of_each_other() -> None:
    """A record of several queries is small, so a tick of one query reads little data of the others."""
    queries = [_query(f"SELECT k, count(*) AS c{number} FROM t GROUP BY k") for number in range(6)]
    task = _Task(queries)
    task.read(0, [{"k": f"{number:05}" * 10} for number in range(600)])
    bodies = task.bodies()
    holding = [
        [at for at, body in enumerate(bodies) if bytes.fromhex(task.store(n)[2:]) in _spans(body)] for n in range(6)
    ]
    assert [[0], [1], [2], [3], [4], [5]] == sorted(holding)


def _spans(body: bytes) -> dict[bytes, tuple[int, int]]:
    return PendingMatches.decode(body).spans
