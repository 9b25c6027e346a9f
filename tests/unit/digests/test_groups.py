"""Groups of digests against DuckDB, each query alone: whatever the batches, replays, disorder and ticks are."""

from __future__ import annotations

import json
import random
from array import array
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import duckdb
import pytest
from msgspec.structs import replace

from gateway.evaluation.one_entry import VERSION
from gateway.evaluation.standing_query import StandingQuery
from gateway.evaluation.task import evaluated
from gateway.testing import Record, Stream, digests
from gateway.testing.query import checked
from gateway.testing.records import placed
from grouping.digests.answers import AggregatedMatches, DigestAnswer, DigestRefused
from grouping.digests.cursor import Cursor, moved
from grouping.digests.gather import DigestQuestion
from grouping.digests.match_places import MatchPlaces
from grouping.digests.pending_log import PendingLog
from spark_jobs.engine.operators.aggregate import merging
from spark_jobs.engine.operators.aggregate.aggregate_digests import AggregateRequest, AnswerCache, aggregate_digests
from spark_jobs.engine.operators.aggregate.merging import AggregateMerge
from tests.unit.digests.aggregate_log import AT, START_MS, STREAM, GroupLog, destination_of, digest_at, random_events
from tests.unit.digests.random_aggregates import COUNTS, random_aggregates

_ENGINE = duckdb.connect()
_STORE = "p_" + "0" * 24
_ALWAYS = ((*VERSION, [(None, None)]),)

_QUERIES = [
    (COUNTS, "k"),
    ("SELECT count(*) AS c, min(d) AS lo, max(k) AS hi, sum(a) AS s FROM t WHERE i > 3", ""),
    ("SELECT k, f, max(i) - min(i) AS wide FROM t WHERE n IS NOT NULL GROUP BY f, k HAVING count(*) > 2", "k, f"),
    ("SELECT upper(k) || '!' AS u, sum(i) FILTER (WHERE f AND d > 0) AS s FROM t GROUP BY upper(k)", "u"),
    ("SELECT k, count(DISTINCT i) AS di, count(DISTINCT i, f) AS df FROM t GROUP BY k HAVING sum(n) > 50", "k"),
    ("SELECT k, stddev_samp(d) AS s, var_pop(d) AS v, stddev_pop(i) AS p FROM t GROUP BY k", "k"),
    ("SELECT k, median(d) AS m, median(n) - median(i) AS w FROM t GROUP BY k HAVING median(d) > -2", "k"),
    ("SELECT k, bool_and(f) AS e, bool_or(f) AS o FROM t GROUP BY k HAVING bool_or(f) OR count(*) < 4", "k"),
    ("SELECT i % 3 AS r, sum(a) AS s, avg(i) AS m FROM t GROUP BY i % 3 HAVING avg(i) IN (4, 5, 6) OR sum(a) < 9", "r"),
    (
        "SELECT k, sum(i) FILTER (WHERE d > 1) AS s FROM t GROUP BY k"
        " HAVING sum(i) FILTER (WHERE d > 1) > 3 OR count(*) FILTER (WHERE i > 4 AND f) > max(i % 4)",
        "k",
    ),
    ("SELECT i % 4 AS r, max(n + 2) AS m FROM t GROUP BY i % 4, f HAVING i % 4 < 3 AND max(n + 2) > 9", "r"),
    ("SELECT k FROM t GROUP BY k HAVING max(d) BETWEEN 0 AND 3 AND NOT (min(k) = 'b')", "k"),
]


_COLUMNS = "k VARCHAR, f BOOLEAN, i INT, n BIGINT, d DOUBLE, a DECIMAL(10,2)"


def _expected(select: str, order: str, events: Sequence[dict[str, Any]]) -> list[tuple[Any, ...]]:
    rows = ", ".join("(" + ", ".join(map(_literal, each.values())) + ")" for each in events)
    empty = f"({', '.join(['NULL'] * 6)})"
    columns = ", ".join(
        f"c{at}::{each.split()[1]} AS {each.split()[0]}" for at, each in enumerate(_COLUMNS.split(", "))
    )
    names = ", ".join(f"c{at}" for at in range(6))
    table = f"SELECT {columns} FROM (VALUES {rows or empty}) AS v({names}){'' if rows else ' WHERE FALSE'}"
    text = select.replace("count(DISTINCT i, f)", "count(DISTINCT i * 2 + f::INT)")  # NULL where either is
    return _ENGINE.execute(f"WITH t AS ({table}) {text}").fetchall()


def _literal(value: Any) -> str:
    return "NULL" if value is None else repr(value)


def _same(rows: list[dict[str, Any]], expected: list[tuple[Any, ...]]) -> None:
    def plain(value: Any) -> Any:
        if value is None or (isinstance(value, bool | str) and not _number(value)):
            return value
        return round(float(value), 8) + 0.0

    ours, theirs = ([tuple(map(plain, row)) for row in some] for some in ((row.values() for row in rows), expected))
    assert sorted(ours, key=repr) == sorted(theirs, key=repr)


def _number(text: Any) -> bool:
    return isinstance(text, str) and text.lstrip("-").replace(".", "", 1).isdigit()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("select", "order"), _QUERIES, ids=range(len(_QUERIES)))
def test_each_digest_is_the_query_over_its_matches(select: str, order: str, seed: int) -> None:
    """A digest equals DuckDB's over the matches that came for its tick; with OVER LAST for the ticks before, too."""
    chance = random.Random(f"{seed} {select}")
    events = random_events(chance, 60)
    times = [AT + timedelta(milliseconds=max(0, 900 * at + chance.randrange(-4000, 1500))) for at in range(len(events))]
    partitions = [chance.randrange(2) for _ in events]
    counts = [0, 0]
    rows = []
    for event, time, partition in zip(events, times, partitions, strict=True):
        rows.append(Record(event, time=time, partition=partition, offset=counts[partition]))
        counts[partition] += 1
    asked = checked(f"{select} EVERY '5 seconds'", STREAM, AT)
    records = placed(rows, STREAM, AT)
    log = GroupLog(chance, asked, records)
    over = chance.choice([0, 0, 3])
    home = destination_of(asked, over * 5000)

    batches = sorted(chance.sample(range(len(log.commits)), min(7, len(log.commits) - 1))) + [len(log.commits) - 1]
    ticks = [(START_MS + 5000 * number * 2, batch) for number, batch in enumerate(batches, 1)]
    ticks.append((START_MS + 5_000_000, len(log.commits) - 1))
    cursor, left = Cursor(), list(zip(records, events, strict=True))
    by_tick: list[tuple[int, list[dict[str, Any]]]] = []
    for tick_ms, batch in ticks:
        covered = log.commits[batch]
        now = [
            pair
            for pair in left
            if pair[0].time.timestamp() * 1000 < tick_ms
            and log.first.get((pair[0].partition, pair[0].offset), pair[0].offset)
            < covered.get(str(pair[0].partition), 0)
        ]
        left = [pair for pair in left if pair not in now]
        by_tick.append((tick_ms, [event for _, event in now]))
        found = digest_at(asked, log, home, cursor, (tick_ms, batch))
        counted = by_tick[-1][1]
        if over:
            counted = [event for at_ms, some in by_tick if at_ms > tick_ms - over * 5000 for event in some]
        got = [json.loads(row.body) for row in found.rows]
        if found.counted:
            _same(got, _expected(select, order, counted))
            cursor = moved(cursor, tick_ms, covered, log.ends[batch], found.held, over_ms=over * 5000)
        else:
            assert not got
            assert not order or not _expected(select, order, counted)
        if chance.random() < 0.6:
            log.roll(batch, [(_ALWAYS, cursor)], before=chance.randrange(log.ends[batch] + 1))
    assert not left


def test_large_sets_and_large_matches() -> None:
    """A set of distinct values goes over many records; a match too large for any is a dead letter, others count."""
    stream = Stream("t (k STRING)")
    rows = [{"k": f"{number:0400d}"} for number in range(900)] + [{"k": "x" * 300_000}]
    asked = checked("SELECT count(DISTINCT k) AS c, max(k) AS m FROM t EVERY '5 seconds'", stream, AT)
    outputs = list(evaluated(asked, placed(rows, stream, AT), _STORE, "pending"))
    assert [letter.code for output in outputs for letter in output.letters.values()] == ["result-too-large"]
    assert max(len(body) for output in outputs for body in output.pending) < 1_000_000
    assert sum(len(body) for output in outputs for body in output.pending) > 360_000
    [digest] = digests("SELECT count(DISTINCT k) AS c, max(k) AS m FROM t EVERY '5 seconds'", stream, rows)
    assert digest["count"] == 900
    assert digest["rows"] == [{"c": 900, "m": f"{899:0400d}"}]
    [digest] = digests(
        "SELECT size(collect_list(k)) AS n, collect_list(k)[0] AS a FROM t EVERY '5 seconds'", stream, rows
    )
    assert digest["rows"] == [{"n": 900, "a": rows[0]["k"]}]


def test_a_list_that_no_record_can_hold_is_left_out() -> None:
    """A list of a group is bounded by the size of a record: the digest comes without this row."""
    rows = [{"k": f"{number:0400d}", "g": number % 2 * (number > 3000)} for number in range(3300)]
    [digest] = digests(
        "SELECT g, collect_list(k) AS l FROM t GROUP BY g EVERY '5 seconds'", Stream("t (k STRING, g INT)"), rows
    )
    assert [(row["g"], len(row["l"])) for row in digest["rows"]] == [(1, 150)]


@pytest.mark.parametrize("seed", range(2))
def test_many_questions_are_answered_as_each_alone(seed: int) -> None:
    """Destinations of many stores, with cursors, ticks and times of their own, get together the same as each alone."""
    chance = random.Random(seed)
    bodies = random_aggregates(chance, 12, 150)
    asked = checked(f"{_QUERIES[0][0]} EVERY '5 seconds'", STREAM, AT)
    log = PendingLog(lambda _, first, last: iter([(at, bodies[at]) for at in range(first, min(last + 1, len(bodies)))]))
    covered = {"0": 500, "1": 400}
    requests = []
    for number in range(20):
        places = MatchPlaces(0, array("q", range(len(bodies))))
        if chance.random() < 0.3:  # of the older half there are no positions
            places = MatchPlaces(0, array("q", range(70, len(bodies))), chance.randrange(70))
        tick = START_MS + 5000 * chance.randrange(4)
        held = tuple(sorted(chance.sample(range(60), 3)))
        cursor = Cursor(tick, {"0": chance.randrange(400), "1": 90}, chance.randrange(60, 90), held)
        windows = chance.choice([[(None, None)], [(START_MS + 3000, None)], [(None, START_MS + 9000)]])
        before_ms = chance.choice([None, tick + 5000, tick + 10_000])
        question = DigestQuestion(bytes([number % 12] * 12), places, cursor, ((*VERSION, windows),), before_ms, covered)
        home = destination_of(asked, chance.choice([0, 15_000]))
        requests.append(AggregateRequest(home, question, asked.query.plan, asked.query.select))
    together = aggregate_digests(log, requests)
    for request, found in zip(requests, together, strict=True):
        [alone] = aggregate_digests(log, [request])
        assert [row.body for row in found.rows] == [row.body for row in alone.rows]
        assert replace(found, rows=alone.rows) == alone
    assert any(found.counted for found in together)
    assert any(found.repeats for found in together)


def test_a_total_may_have_the_plan_of_its_matches() -> None:
    """Without GROUP BY and HAVING a query with aggregates is in the group of one without, whose plan may be kept."""
    stream, rows = Stream("t (v INT)"), [{"v": value} for value in (1, 2, 3)]
    plain, total = (
        checked(f"SELECT {what} FROM t WHERE v > 1 EVERY '5 seconds'", stream, AT) for what in ("v", "sum(v) AS s")
    )
    assert plain.query.plan.group_id == total.query.plan.group_id
    assert (plain.query.plan.kept is None, total.query.plan.kept is None) == (True, False)
    [body] = [body for task in evaluated(total, placed(rows, stream, AT), _STORE, "pending") for body in task.pending]
    log = PendingLog(lambda _, first, last: iter([(0, body)]))
    question = DigestQuestion(bytes(12), MatchPlaces(0, array("q", [0])), Cursor(), _ALWAYS, START_MS + 5000, {"0": 3})
    request = AggregateRequest(destination_of(total, 0), question, plain.query.plan, total.query.select)
    [found] = aggregate_digests(log, [request])
    assert (found.counted, [row.body for row in found.rows]) == (2, [b'{"s":5}'])


def test_a_known_answer_tells_up_to_where_the_log_was_read() -> None:
    """Records that come between two chunks of a tick are in neither digest, and the second cursor stays before them."""
    bodies = random_aggregates(random.Random(1), 2, 20)
    asked = checked(f"{_QUERIES[0][0]} EVERY '5 seconds'", STREAM, AT)
    log = PendingLog(lambda _, first, last: iter([(at, bodies[at]) for at in range(first, min(last + 1, len(bodies)))]))
    known = AnswerCache()

    def ask(reached: int) -> DigestAnswer:
        places = MatchPlaces(0, array("q", range(reached)))
        always = ((*VERSION, [(None, None)]),)
        question = DigestQuestion(bytes(12), places, Cursor(), always, START_MS + 5_000_000, {"0": 50, "1": 40})
        request = AggregateRequest(destination_of(asked, 0), question, asked.query.plan, asked.query.select, 0, reached)
        [found] = aggregate_digests(log, [request], known)
        return found

    first, second = ask(10), ask(20)
    assert first.counted and second == replace(first, rows=second.rows)
    assert second.reached == 10


def _allow_few_groups(monkeypatch: pytest.MonkeyPatch, most_bytes: int) -> None:
    """Let a digest hold three groups at most, and at most `most_bytes` of groups."""
    monkeypatch.setattr(
        merging, "AggregateMerge", lambda select, questions: AggregateMerge(select, questions, 3, most_bytes)
    )


def _stores(asked: StandingQuery, stream: Stream, counts: Sequence[int]) -> tuple[list[bytes], list[AggregateRequest]]:
    """Return a log on which each store has its number of values, and a question for each store."""
    bodies: list[bytes] = []
    requests = []
    for number, count in enumerate(counts):
        rows, store = [{"v": value} for value in range(count)], bytes([number] * 12)
        tasks = evaluated(asked, placed(rows, stream, AT), f"p_{store.hex()}", "pending")
        own = [body for task in tasks for body in task.pending]
        places = MatchPlaces(0, array("q", range(len(bodies), len(bodies) + len(own))))
        bodies += own
        question = DigestQuestion(store, places, Cursor(), _ALWAYS, START_MS + 5_000_000, {"0": 5_000})
        requests.append(AggregateRequest(destination_of(asked, 0), question, asked.query.plan, asked.query.select))
    return bodies, requests


@pytest.mark.parametrize(
    ("select", "most_bytes"), [("v", 1 << 20), ("count(DISTINCT v)", 1_000)], ids=["many", "large ones"]
)
def test_a_digest_of_too_many_groups_is_refused(select: str, most_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """No memory would do for some: they are not made, the others of the query are, and no refused one is read again."""
    stream, by = Stream("t (v INT)"), "" if "(" in select else "GROUP BY v"
    asked = checked(f"SELECT {select} AS x FROM t {by} EVERY '5 seconds'", stream, AT)
    bodies, requests = _stores(asked, stream, (2, 2_000, 3))
    log_reads: list[int] = []

    def span(_: int, first: int, last: int) -> Iterator[tuple[int, bytes]]:
        log_reads.append(first)
        return iter([(at, bodies[at]) for at in range(first, min(last + 1, len(bodies)))])

    _allow_few_groups(monkeypatch, most_bytes)
    log, known = PendingLog(span), AnswerCache()
    found = aggregate_digests(log, requests, known)
    assert [False, True, False] == [isinstance(each, DigestRefused) for each in found]
    assert [2, 3] == [each.counted for each in found if isinstance(each, AggregatedMatches)]
    log_reads.clear()
    assert [True] == [isinstance(each, DigestRefused) for each in aggregate_digests(log, requests[1:2], known)]
    assert not log_reads


def test_digests_of_too_many_groups_together_are_made_by_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is small enough, and all of them would not be: they come in their order, some of them at a time."""
    stream = Stream("t (v INT)")
    asked = checked("SELECT v, count(*) AS n FROM t GROUP BY v EVERY '5 seconds'", stream, AT)
    bodies, requests = _stores(asked, stream, (3, 1, 3, 200, 2, 3))
    log = PendingLog(lambda _, first, last: iter([(at, bodies[at]) for at in range(first, min(last + 1, len(bodies)))]))
    whole = aggregate_digests(log, requests)
    _allow_few_groups(monkeypatch, 1 << 20)
    found = aggregate_digests(log, requests)
    assert [3, 1, 3, None, 2, 3] == [getattr(each, "counted", None) for each in found]
    for one, other in zip(found, whole, strict=True):
        assert isinstance(one, DigestRefused) or [row.body for row in one.rows] == [row.body for row in other.rows]
