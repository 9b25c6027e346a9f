"""A tick of many destinations is one Spark job, and nobody who reads the digests can tell."""

from __future__ import annotations

import json
import time
from typing import Any

from gateway.sdk import Digest, connect
from tests.stack.lab import Lab, Source
from tests.stack.server import SPARK_FROM, Stack
from tests.stack.ticks import digests, now_ms, tick_of

_EVERY_MS = 10_000
_CLAUSES = f"START '2026-01-01T00:00:00Z' EVERY '{_EVERY_MS // 1000} seconds'"
_SYMBOLS = SPARK_FROM + 10


def _create(lab: Lab, source: Source) -> dict[str, Any]:
    """Create a CQ for each symbol, and one of each kind of digest, all with the same ticks."""
    select = f"SELECT symbol, qty, price FROM {source.name} WHERE"
    wanted = {f"s{n}": f"{select} symbol = 'S{n}' DO PUBLISH SHARED {_CLAUSES}" for n in range(_SYMBOLS)}
    kinds = {
        "latest": "DIGEST LATEST BY symbol",
        "top": "DIGEST TOP 3 BY price",
        "count": "DIGEST COUNT",
    }
    wanted |= {name: f"{select} qty >= 0 DO PUBLISH SHARED {kind} {_CLAUSES}" for name, kind in kinds.items()}
    wanted["large"] = f"SELECT qty, pad FROM {source.name} WHERE qty >= 0 DO PUBLISH SHARED {_CLAUSES}"
    wanted["empty"] = f"{select} qty < 0 DO PUBLISH SHARED EVEN IF EMPTY {_CLAUSES}"
    wanted["silent"] = f"{select} qty < 0 DO PUBLISH DEDICATED {_CLAUSES}"
    sent = {name: lab.client.send(f"CREATE CQ {name} AS {text}", lab.subscriber()) for name, text in wanted.items()}
    made = {}
    for name, command_id in sent.items():
        reply = lab.client.reply(command_id)
        assert reply.code == "ok", reply.fields
        made[name] = lab.cqs[lab.subscriber(), name] = reply.result
        lab.results.follow(reply.result["destination"])
    return made


def _publish(lab: Lab, source: Source, first: int) -> list[dict[str, Any]]:
    """Publish four events of each symbol, soon after a tick, and return when they are evaluated."""
    while now_ms() % _EVERY_MS > _EVERY_MS // 4:
        time.sleep(0.05)
    at_ms = now_ms()
    rows = [
        {"symbol": f"S{number % _SYMBOLS}", "qty": first + number, "price": str((number * 7919) % 1009)}
        for number in range(4 * _SYMBOLS)
    ]
    bodies = [json.dumps(row | {"pad": "x" * 6000}).encode() for row in rows]
    lab.client.publish_all(source.topic, [(body, None, number % 2, at_ms) for number, body in enumerate(bodies)])
    source.fence()
    return rows


def _check(lab: Lab, made: dict[str, Any], rows: list[dict[str, Any]], tick_ms: int) -> None:
    """Compare all digests of a tick with what each CQ alone would have in it."""

    def of(name: str) -> list[Any]:
        return [one.row for one in digests(lab, made[name]) if tick_of(one) == tick_ms]

    def complete(name: str) -> bool:
        parts = of(name)
        return name == "silent" or (bool(parts) and len(parts) == parts[0]["parts"])

    lab.results.until(lambda: all(complete(name) for name in made), f"all digests of {tick_ms}")
    for n in range(_SYMBOLS):
        [digest] = of(f"s{n}")
        assert sorted(row["qty"] for row in digest["rows"]) == [row["qty"] for row in rows if row["symbol"] == f"S{n}"]
        assert digest["count"] == 4
    [latest], [top], [count], [empty] = (of(name) for name in ("latest", "top", "count", "empty"))
    assert len(latest["rows"]) == _SYMBOLS
    best = sorted(rows, key=lambda row: -int(row["price"]))[:3]
    assert [row["qty"] for row in top["rows"]] == [row["qty"] for row in best]
    assert (count["count"], count["rows"], empty["count"], empty["rows"]) == (len(rows), [], 0, [])
    large = of("large")
    assert [part["part"] for part in large] == list(range(1, large[0]["parts"] + 1))
    assert len(large) > 1
    assert sorted(row["qty"] for part in large for row in part["rows"]) == [row["qty"] for row in rows]
    assert digests(lab, made["silent"]) == []
    [other] = {(digest["fired_at"], digest["to"]) for digest in (top, count, empty, latest)}
    assert other[0] >= other[1]


def test_a_tick_of_many_is_one_job(stack: Stack, lab: Lab) -> None:
    """Digests of all kinds are as the gateway makes them; Spark runs one job for a tick, and none where few are due."""
    source = lab.stream("symbol STRING, qty INT, price DECIMAL(9,2), pad STRING", partitions=2)
    made = _create(lab, source)
    for number in range(2):
        rows = _publish(lab, source, number * 4 * _SYMBOLS)
        jobs = stack.settled_jobs()
        tick_ms = (now_ms() // _EVERY_MS + 1) * _EVERY_MS
        _check(lab, made, rows, tick_ms)
        assert stack.settled_jobs() == jobs + 1
    fired = len(digests(lab, made["empty"]))
    lab.results.until(lambda: len(digests(lab, made["empty"])) > fired, "an empty digest")
    assert stack.settled_jobs() == jobs + 1
    assert lab.results.repeats == 0
    with connect(stack.bootstrap, lab.subscriber()) as client, client.subscribe(client.describe("large")) as results:
        for _ in range(2):
            digest = results.next(timeout=60)
            assert isinstance(digest, Digest)
            assert len(digest.rows) == digest.count == 4 * _SYMBOLS
