"""Timer-based CQs on real servers, in real time: every match in exactly one digest, as promised by the contract."""

from __future__ import annotations

import itertools
import json
import time
from datetime import datetime
from typing import Any

from tests.stack.digests.ticks import Flow, digests, now_ms, numbers, tick_of
from tests.stack.lab import Lab
from tests.stack.server import Stack


def _timed(lab: Lab, source: Any, name: str, clauses: str, predicate: str = "symbol = 'A'") -> Any:
    return lab.where(source, name, predicate, columns="symbol, qty", clauses=clauses)


def test_each_match_is_in_the_digest_of_its_tick(lab: Lab) -> None:
    """Timer classes over the same constants each get every match once, in the digest of the tick after it."""
    source = lab.stream(partitions=2)
    flow = Flow(lab, source)
    classes = {
        name: _timed(lab, source, name, f"DO PUBLISH SHARED EVERY '{name[1:]} seconds'") for name in ("e1", "e2", "e3")
    }
    change = _timed(lab, source, "change", "DO PUBLISH SHARED")
    assert len({made["group"] for made in [*classes.values(), change]}) == 1
    assert [made["trigger"]["every"] for made in classes.values()] == ["PT1S", "PT2S", "PT3S"]
    flow.run(4, "A", "B", "A")
    for name, made in classes.items():
        flow.await_all(made, "A")
        flow.check(made, "A", int(name[1:]) * 1000)
    assert len([one for one in lab.matches(change, source) if one.row["symbol"] == "A"]) == len(flow.of("A"))


def test_kinds_of_digests(lab: Lab) -> None:
    """LATEST BY keeps the last row per key, TOP the largest, COUNT none; no match sends nothing but EVEN IF EMPTY."""
    source = lab.stream()
    every = "EVERY '2 seconds'"
    made = {
        "all": _timed(lab, source, "all", f"DO PUBLISH SHARED DIGEST ALL {every}", "qty >= 0"),
        "latest": _timed(lab, source, "latest", f"DO PUBLISH SHARED DIGEST LATEST BY Symbol {every}", "qty >= 0"),
        "top": _timed(lab, source, "top", f"DO PUBLISH SHARED DIGEST TOP 2 BY qty {every}", "qty >= 0"),
        "count": _timed(lab, source, "count", f"DO PUBLISH SHARED DIGEST COUNT {every}", "qty >= 0"),
        "empty": _timed(lab, source, "empty", f"DO PUBLISH SHARED EVEN IF EMPTY {every}", "qty < 0"),
        "silent": _timed(lab, source, "silent", f"DO PUBLISH SHARED {every}", "qty < 0"),
    }
    flow = Flow(lab, source)
    flow.publish("A", "B", "A", "B", "C", time_ms=now_ms() + 3000)  # all of them before one tick
    lab.results.until(lambda: all(digests(lab, made[name]) for name in ("all", "latest", "top", "count")), "digests")
    lab.results.until(lambda: len(digests(lab, made["empty"])) >= 3, "three empty digests")
    first = {name: digests(lab, one) for name, one in made.items()}
    assert [len(first[name]) for name in ("all", "latest", "top", "count", "silent")] == [1, 1, 1, 1, 0]
    assert [row["qty"] for row in first["all"][0].row["rows"]] == [0, 1, 2, 3, 4]
    assert [row["qty"] for row in first["latest"][0].row["rows"]] == [2, 3, 4]
    assert [row["qty"] for row in first["top"][0].row["rows"]] == [4, 3]
    assert first["count"][0].row["rows"] == []
    assert {first[name][0].row["count"] for name in ("all", "latest", "top", "count")} == {5}
    # Ticks that a gateway has missed, which stood still for ten seconds, have a single digest.
    ticks = [tick_of(one) for one in first["empty"]]
    assert all(later > tick and (later - tick) % 2000 == 0 for tick, later in itertools.pairwise(ticks))
    assert all(later.row["from"] == one.row["to"] for one, later in itertools.pairwise(first["empty"]))
    assert {(one.row["count"], len(one.row["rows"])) for one in first["empty"]} == {(0, 0)}


def test_a_large_digest_comes_in_parts(lab: Lab) -> None:
    """A digest beyond the size of a record has parts, which together hold each row once and in order."""
    source = lab.stream("symbol STRING, qty INT")
    made = lab.where(source, "large", "", columns="symbol, qty", clauses="DO PUBLISH SHARED EVERY '2 seconds'")
    bodies = [json.dumps({"symbol": "x" * 9000, "qty": number}).encode() for number in range(300)]
    at_ms = now_ms() + 4000  # all of them before one tick
    lab.client.publish_all(source.topic, [(body, None, 0, at_ms) for body in bodies])

    def complete() -> bool:
        return len(numbers(digests(lab, made))) == len(bodies)

    lab.results.until(complete, "all rows")
    assert numbers(digests(lab, made)) == list(range(300))
    parts: dict[int, list[Any]] = {}
    for one in digests(lab, made):
        parts.setdefault(tick_of(one), []).append(one.row)
    assert max(len(each) for each in parts.values()) > 1
    for each in parts.values():
        assert [row["part"] for row in each] == list(range(1, len(each) + 1))
        assert {row["parts"] for row in each} == {len(each)}
        assert {row["count"] for row in each} == {sum(len(row["rows"]) for row in each)}


def test_future_times_wait_for_their_tick(lab: Lab) -> None:
    """A match whose record time lies ahead comes at the first tick later than that, and not twice."""
    source = lab.stream()
    made = _timed(lab, source, "ahead", "DO PUBLISH SHARED EVERY '1 second'")
    flow = Flow(lab, source)
    ahead_ms = now_ms() + 4000
    flow.publish("A", time_ms=ahead_ms)
    flow.publish("A")
    lab.results.until(lambda: len(numbers(digests(lab, made))) == 2, "both matches")
    ticks = {number: tick_of(one) for one in digests(lab, made) for number in numbers([one])}
    assert ahead_ms < ticks[0] <= ahead_ms + 1000
    assert ticks[1] <= ahead_ms


def test_times_ahead_on_a_busy_stream(lab: Lab) -> None:
    """However many records lie behind a timer, and however far ahead their times are, each match comes once."""
    source = lab.stream(partitions=2)
    flow = Flow(lab, source)
    made = {
        seconds: _timed(lab, source, f"e{seconds}", f"DO PUBLISH SHARED EVERY '{seconds} seconds'")
        for seconds in (1, 3, 6)
    }
    end = time.monotonic() + 7
    while time.monotonic() < end:
        for ahead_ms in (0, 700, 3300):
            flow.publish("A", "A", time_ms=now_ms() + ahead_ms)
        lab.results.until(lambda: True, "")
        time.sleep(0.03)
    for seconds, one in made.items():
        flow.await_all(one, "A")
        flow.check(one, "A", seconds * 1000)


def test_pause_keeps_what_was_pending(lab: Lab) -> None:
    """A paused CQ sends no digest; pending matches come at the first tick after RESUME, later ones never."""
    source = lab.stream()
    other = _timed(lab, source, "other", "DO PUBLISH SHARED EVERY '1 second'")
    made = _timed(lab, source, "paused", "DO PUBLISH SHARED EVERY '6 seconds'")
    flow = Flow(lab, source)
    source.fence()
    _after_tick(lab, made)
    flow.publish("A")
    lab.results.until(lambda: numbers(digests(lab, other)) == [0], "the first match")
    lab.client.result('PAUSE CQ "paused"', lab.subscriber())
    lab.results.drain()  # a slow machine may have come to the tick before the PAUSE
    before = digests(lab, made)
    flow.publish("A", "A")
    lab.results.until(lambda: sorted(numbers(digests(lab, other))) == [0, 1, 2], "the next matches")
    _after_tick(lab, made)
    lab.results.drain()
    assert digests(lab, made) == before
    lab.client.result('RESUME CQ "paused"', lab.subscriber())
    resumed_ms = now_ms()
    flow.publish("A")
    lab.results.until(lambda: sorted(numbers(digests(lab, made))) == [0, 3], "what was pending")
    later = [one for one in digests(lab, made) if one not in before]
    assert all(tick_of(one) <= resumed_ms + 6000 for one in later if 0 in numbers([one]))


def _after_tick(lab: Lab, made: Any) -> None:
    """Wait until a tick has just passed, so that the next one is some way off."""
    every_ms = int(made["trigger"]["every"][2:-1]) * 1000
    phase_ms = _epoch_ms(made["trigger"]["next_at"]) % every_ms
    while (now_ms() - phase_ms) % every_ms > every_ms // 3:
        lab.results.until(lambda: True, "")
        time.sleep(0.02)


def _epoch_ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def test_replacing_the_trigger_sends_what_is_pending(lab: Lab) -> None:
    """ALTER … SET EVERY gives the old destination its pending matches and its end; an event counts for one of both."""
    source = lab.stream()
    made = _timed(lab, source, "altered", "DO PUBLISH SHARED EVERY '1 hour'")
    flow = Flow(lab, source)
    flow.run(2, "A")
    source.fence()  # a slow machine may have evaluated none of them by now
    altered = lab.client.result("ALTER CQ altered SET EVERY '1 second'", lab.subscriber())
    lab.results.follow(altered["destination"])
    flow.run(2, "A")
    assert altered["destination"]["id"] != made["destination"]["id"]

    def ended() -> bool:
        return any(one.kind == "cq.end" for one in lab.results.of(made["destination"]))

    lab.results.until(ended, "the end of the old destination")
    old = lab.results.of(made["destination"])
    assert [one.kind for one in old] == ["cq.digest", "cq.end"]
    assert old[1].row["reason"] == "replaced"
    assert old[0].row["to"] == old[1].row["ended_at"]
    wanted = {sent.number for sent in flow.sent}
    lab.results.until(
        lambda: wanted == {*numbers(digests(lab, made)), *numbers(digests(lab, altered))}, "every match somewhere"
    )
    came = numbers(digests(lab, made)) + numbers(digests(lab, altered))
    assert sorted(came) == sorted(wanted)


def test_drop_discards_what_is_pending(lab: Lab) -> None:
    """DROP sends the end only."""
    source = lab.stream()
    made = _timed(lab, source, "dropped", "DO PUBLISH SHARED EVERY '1 hour'")
    flow = Flow(lab, source)
    flow.publish("A", "A")
    source.fence()
    lab.drop("dropped")
    lab.results.until(lambda: lab.results.of(made["destination"]), "the end")
    assert [one.kind for one in lab.results.of(made["destination"])] == ["cq.end"]


def test_ticks_start_no_spark_job(stack: Stack, lab: Lab) -> None:
    """Ticks are none of Spark's business: while digests fire it starts no job, until there is an event again."""
    source = lab.stream()
    made = _timed(lab, source, "empty", "DO PUBLISH SHARED EVEN IF EMPTY EVERY '1 second'", "qty >= 0")
    flow = Flow(lab, source)
    flow.publish("A")
    flow.await_all(made, "A")
    jobs = stack.settled_jobs()
    fired = len(digests(lab, made))
    lab.results.until(lambda: len(digests(lab, made)) >= fired + 3, "three digests")
    assert stack.settled_jobs() == jobs
    flow.publish("A")
    flow.await_all(made, "A")
    assert stack.settled_jobs() > jobs


def test_show_timers(lab: Lab) -> None:
    """SHOW TIMERS lists the sender's timer-based CQs with their next ticks, DESCRIBE tells the same."""
    source = lab.stream()
    _timed(lab, source, "weekly", "EVERY CRON '0 8 * * MON' AT TIME ZONE 'Europe/Madrid'")
    _timed(lab, source, "hourly", "EVERY '1 hour' DO PUBLISH SHARED")
    _timed(lab, source, "change", "")
    shown = lab.client.result("SHOW TIMERS", lab.subscriber())
    assert [one["cq"] for one in shown["timers"]] == ["hourly", "weekly"]
    described = lab.client.result("DESCRIBE CQ weekly", lab.subscriber())
    assert described["trigger"] == shown["timers"][1]["trigger"]
    assert described["trigger"]["zone"] == "Europe/Madrid"
    lab.client.result("ALTER CQ change SET EVERY '1 day'", lab.subscriber())
    lab.client.result("DROP CQ hourly", lab.subscriber())
    first = lab.client.result("SHOW TIMERS LIMIT 1", lab.subscriber())
    assert (["change"], "change") == ([one["cq"] for one in first["timers"]], first["next"])
    rest = lab.client.result("SHOW TIMERS AFTER 'CHANGE'", lab.subscriber())
    assert (["weekly"], None) == ([one["cq"] for one in rest["timers"]], rest["next"])
    liked = lab.client.result("SHOW TIMERS LIKE 'w%'", lab.subscriber())
    assert ["weekly"] == [one["cq"] for one in liked["timers"]]
