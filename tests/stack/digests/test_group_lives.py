"""Aggregate CQs on real servers, through their life cycle: they count the contents of a digest of matches."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from gateway.model.records import instant
from tests.kafka_tail import Result
from tests.stack.digests.ticks import Flow, digests, now_ms, tick_of
from tests.stack.lab import Lab
from tests.stack.lab_table import LabTable

_HOUR = "EVERY '1 hour' DO PUBLISH SHARED"


def _ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def _counted(lab: Lab, created: Any) -> int:
    return sum(one.row["count"] for one in digests(lab, created))


def _rows(found: list[Result]) -> list[dict[str, Any]]:
    return [row for one in found for row in one.row["rows"]]


def test_ticks_count_from_the_acceptance(lab: Lab) -> None:
    """CQs of one store tick at their acceptance, rounded up to hundredths of EVERY, and count up to there."""
    source = lab.stream(partitions=2)
    columns = "symbol, count(*) AS n, min(_time) AS first, max(_time) AS last"
    select = f"SELECT {columns} FROM {source.name} GROUP BY symbol HAVING count(*) >"
    # SHARED, since the phase of a command that waits for its topic counts from its first try.
    clauses = "EVERY '1 second' DO PUBLISH SHARED"
    made = [lab.create(f"c{least}", f"{select} {least}", clauses=clauses) for least in range(4)]
    assert len({each["group"] for each in made}) == 1
    phases = [_ms(each["trigger"]["next_at"]) % 1000 for each in made]
    accepted = [
        _ms(lab.client.result(f"DESCRIBE CQ c{least}", lab.subscriber())["created_at"]) % 1000 for least in range(4)
    ]
    assert [0] * 4 == [phase % 10 for phase in phases]
    assert all((phase - at) % 1000 < 10 for phase, at in zip(phases, accepted, strict=True))
    source.fence()
    published, lead_ms = 0, 3000
    while True:  # until this machine has published all of them before their ticks
        begin_ms = now_ms() + lead_ms
        times = range(begin_ms, begin_ms + 2500, 50)
        places = [(b'{"symbol": "A"}', None, at_ms // 50 % 2, at_ms) for at_ms in times]
        lab.client.publish_all(source.topic, places)
        published += len(times)
        if now_ms() < begin_ms:
            break
        lead_ms *= 3
    wanted = published + len(source.fences)
    lab.results.until(lambda: _counted(lab, made[0]) == wanted, "all counted")
    for least, (each, phase) in enumerate(zip(made, phases, strict=True)):
        for digest in digests(lab, each):
            tick = tick_of(digest)
            assert tick % 1000 == phase
            for row in digest.row["rows"]:
                if row["symbol"] == "A" and tick > begin_ms:
                    own = [at_ms for at_ms in times if tick - 1000 <= at_ms < tick]
                    assert (row["n"], _ms(row["first"]), _ms(row["last"])) == (len(own), own[0], own[-1])
                assert row["n"] > least


def test_pause_replace_and_expire(lab: Lab) -> None:
    """A pause counts nothing and keeps earlier matches; another form leaves a last digest; EXPIRE is exact."""
    source = lab.stream()
    begin_ms = now_ms()
    select = f"SELECT symbol, count(*) AS n, sum(qty) AS total FROM {source.name} WHERE qty >= 0 GROUP BY symbol"
    paused = lab.create("paused", select, clauses="EVERY '4 seconds' DO PUBLISH SHARED")
    replaced = lab.create("replaced", f"{select} HAVING count(*) > 1", clauses=_HOUR)
    altered = lab.create("altered", f"{select} HAVING count(*) > 2", clauses=f"{_HOUR} DIGEST ALL")
    who = lab.subscriber()
    flow = Flow(lab, source)
    flow.publish("A", "A", "B", "C", time_ms=begin_ms)
    flow.publish("C", "B", time_ms=begin_ms + 3000)
    source.fence()
    lab.client.result('PAUSE CQ "paused"', who)
    flow.publish("A", "C", time_ms=begin_ms)
    source.fence()
    lab.client.result(f'CREATE OR REPLACE CQ "replaced" AS {select} HAVING count(*) > 5 {_HOUR}', who)
    lab.client.result("ALTER CQ \"altered\" SET EVERY '2 hours'", who)
    lab.client.result('RESUME CQ "paused"', who)
    # Later than this machine needs for all that follows, which is less than what it did so far.
    expire_ms = now_ms() + max(6000, 2 * (now_ms() - begin_ms))
    expiring = lab.create("expiring", select, clauses=f"EXPIRE '{instant(expire_ms)}' {_HOUR}")
    flow.publish("A", "B", time_ms=begin_ms)
    flow.publish("C", time_ms=expire_ms - 1)
    flow.publish("C", "B", time_ms=expire_ms)
    flow.publish("B", time_ms=expire_ms + 1)
    last: tuple[tuple[Any, str, dict[str, tuple[int, int]]], ...] = (
        (replaced, "replaced", {"A": (3, 7), "B": (2, 7), "C": (3, 14)}),
        (altered, "replaced", {"A": (3, 7), "C": (3, 14)}),
        (expiring, "expired", {"A": (1, 8), "B": (1, 9), "C": (1, 10)}),
    )
    for created, reason, rows in last:

        def ended(created: Any = created) -> bool:
            return any(one.kind == "cq.end" for one in lab.results.of(created["destination"]))

        lab.results.until(ended, reason)
        digest, end = lab.results.of(created["destination"])
        assert (digest.kind, end.row["reason"]) == ("cq.digest", reason)
        assert digest.row["to"] == end.row["ended_at"]
        assert {row["symbol"]: (row["n"], row["total"]) for row in digest.row["rows"]} == rows
    assert tick_of(digests(lab, expiring)[0]) == expire_ms
    lab.results.until(lambda: _counted(lab, paused) == 12, "what was pending, and what came after RESUME")
    totals = {symbol: 0 for symbol in "ABC"}
    for row in _rows(digests(lab, paused)):
        totals[row["symbol"]] += row["total"]
    assert totals == {"A": 0 + 1 + 8, "B": 2 + 5 + 9 + 12 + 13, "C": 3 + 4 + 10 + 11}


def test_groups_over_joins(lab: Lab) -> None:
    """Joined rows are counted, by columns of the tables, each event as often as it gives rows."""
    source = lab.stream()
    profiles = LabTable(lab, "symbol STRING PRIMARY KEY, industry STRING")
    owners = LabTable(lab, "owner STRING, symbol STRING, PRIMARY KEY (owner, symbol)")
    profiles.put(*({"symbol": symbol, "industry": industry} for symbol, industry in (("A", "x"), ("B", "y"))))
    owners.put(*({"owner": owner, "symbol": symbol} for owner, symbol in (("abe", "A"), ("kim", "A"), ("kim", "B"))))
    sums = "count(*) AS n, sum(q.qty) AS total"
    whole = f"FROM {source.name} q JOIN {profiles.name} p ON q.symbol = p.symbol GROUP BY p.industry"
    one = lab.create("one", f"SELECT p.industry, {sums} {whole} HAVING sum(q.qty) > 3", clauses="EVERY '1 second'")
    part = f"FROM {source.name} q JOIN {owners.name} o ON q.symbol = o.symbol GROUP BY o.owner"
    many = lab.create("many", f"SELECT o.owner, {sums} {part}", clauses="EVERY '1 second'")
    flow = Flow(lab, source)
    flow.publish("A", "B", "A", "C", "B", time_ms=now_ms() + 4000)  # all of them before one tick
    lab.results.until(lambda: (_counted(lab, one), _counted(lab, many)) == (4, 6), "all counted")
    assert _rows(digests(lab, one)) == [{"industry": "y", "n": 2, "total": 5}]
    assert _rows(digests(lab, many)) == [
        {"owner": "abe", "n": 2, "total": 2}, {"owner": "kim", "n": 4, "total": 7},
    ]  # fmt: skip
