"""Rolled records: many stores at once, and stores that stay as they are."""

from __future__ import annotations

import random
from array import array
from dataclasses import replace

import pytest

from gateway.evaluation.one_entry import VERSION
from gateway.evaluation.task import evaluated
from gateway.testing import Stream
from gateway.testing.query import checked
from gateway.testing.records import placed
from gateway.timers.pending_index import PendingIndex
from grouping.digests.cursor import Cursor
from grouping.digests.gather import DigestQuestion
from grouping.digests.match_places import MatchPlaces
from grouping.digests.pending_log import PendingLog
from grouping.digests.pending_matches import PendingMatches
from grouping.digests.rolling import StoreReaders
from spark_jobs.engine.operators.aggregate.aggregate_digests import AggregateRequest, aggregate_digests
from spark_jobs.engine.operators.aggregate.rolled import rolled_records
from tests.unit.digests.aggregate_log import AT, START_MS, STREAM, destination_of
from tests.unit.digests.random_aggregates import COUNTS, random_aggregates

_ALWAYS = ((*VERSION, [(None, None)]),)
_STORES = 8


@pytest.mark.parametrize("seed", range(3))
def test_many_stores_count_what_they_did(seed: int) -> None:
    """Whatever cursors and ticks their readers have, they get the same out of rolled records, which are fewer rows."""
    chance = random.Random(seed)
    asked, bodies = checked(f"{COUNTS} EVERY '5 seconds'", STREAM, AT), random_aggregates(chance, _STORES, 800)
    covered = {"0": 10_000, "1": 10_000}
    names = [bytes([number] * 12) for number in range(_STORES)]
    readers = {
        name: [Cursor(START_MS + 5000 * chance.randrange(4), {"0": chance.randrange(3000)}) for _ in range(3)]
        for name in names
    }
    records = [PendingMatches.decode(body) for body in bodies]
    places = {
        name: MatchPlaces(0, array("q", (at for at, each in enumerate(records) if name in each.spans)))
        for name in names
    }

    def answers() -> list[list[bytes]]:
        log = PendingLog(lambda _, first, last: iter((at, bodies[at]) for at in range(first, last + 1)))
        query, requests = asked.query, []
        for name, cursor in ((name, cursor) for name, cursors in readers.items() for cursor in cursors):
            question = DigestQuestion(name, places[name], cursor, _ALWAYS, cursor.tick_ms + 5000, covered)
            for over_ms in (0, 15_000):
                requests.append(AggregateRequest(destination_of(asked, over_ms), question, query.plan, query.select))
        found = aggregate_digests(log, requests)
        return [[*(row.body for row in each.rows), b"%d" % (each.counted or 0)] for each in found]

    single, before = answers(), 700
    assert any(len(rows) > 1 for rows in single)
    stores = {name: StoreReaders.of(places[name], [_ALWAYS] * 3, cursors) for name, cursors in readers.items()}
    rolled = rolled_records(asked.query.select, list(enumerate(records)), stores, covered, before)
    index = PendingIndex()
    for name in names:
        index.restore(name, places[name])
    for body in rolled:
        list(index.take_in(PendingMatches.decode(body), 0, len(bodies)))
        bodies.append(body)
    assert all(stored.first is not None and stored.first >= before for _, stored in index)
    bodies[:before] = [b""] * before  # nobody reads them
    assert answers() == single
    rows = sum(len(each.aggregates.rows) for body in rolled for each in PendingMatches.decode(body).whole)
    assert rows < sum(len(each.aggregates.rows) for each in records[:before]) / 2


def test_a_store_larger_than_a_record_stays() -> None:
    """Rows of one record are in or out together, so a store whose rolled record would be too large has none."""
    stream = Stream("t (k STRING)")
    asked = checked("SELECT count(DISTINCT k) AS c FROM t EVERY '5 seconds'", stream, AT)
    records = []
    for batch in range(4):
        rows = [{"k": f"{number:0400d}"} for number in range(batch * 700, batch * 700 + 700)]
        moved = [replace(each, offset=each.offset + batch * 700) for each in placed(rows, stream, AT)]
        outputs = evaluated(asked, moved, "p_" + "0" * 24, "pending")
        records += [PendingMatches.decode(body) for output in outputs for body in output.pending]
    places = MatchPlaces(0, array("q", range(len(records))))
    store = {bytes(12): StoreReaders.of(places, [_ALWAYS], [Cursor()])}
    numbered, committed = list(enumerate(records)), {"0": 10_000}
    assert not rolled_records(asked.query.select, numbered, store, committed, len(records), least_gain=1)
    assert rolled_records(asked.query.select, numbered, store, committed, 2, least_gain=1)
