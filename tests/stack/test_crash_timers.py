"""Whatever dies around a tick: no digest is lost, none comes twice, and no id stands for two contents."""

from __future__ import annotations

import time

import pytest
import redis

from tests.stack.lab import Lab
from tests.stack.server import Stack
from tests.stack.ticks import Flow, digests, numbers

_EVERY = {"fast": 1000, "slow": 3000}


def _started(lab: Lab) -> tuple[Flow, dict[str, dict]]:
    source = lab.stream(partitions=2)
    made = {
        name: lab.where(
            source,
            name,
            "symbol = 'A'",
            columns="symbol, qty",
            clauses=f"DO PUBLISH SHARED EVERY '{every // 1000} seconds'",
        )
        for name, every in _EVERY.items()
    }
    return Flow(lab, source), made


def _check(lab: Lab, flow: Flow, made: dict[str, dict]) -> None:
    for created in made.values():
        flow.await_all(created, "A", timeout=120)
        came = numbers(digests(lab, created))
        assert sorted(came) == [sent.number for sent in flow.of("A")]
        ticks = [one.headers["ce_id"] for one in digests(lab, created)]
        assert len(ticks) == len(set(ticks))
        for digest in digests(lab, created):
            assert len(digest.row["rows"]) == digest.row["count"]


@pytest.mark.parametrize("role", ["gateway", "evaluator", "redis", "kafka"])
def test_a_role_killed_around_ticks(stack: Stack, lab: Lab, role: str) -> None:
    """Each match is in exactly one digest of each timer class, though a role was killed while digests were due."""
    flow, made = _started(lab)
    for delay in (0.4, 1.3):
        flow.run(2.0, "A", "B")
        time.sleep(delay)
        pid = stack.kill(role)
        if role != "kafka":
            flow.run(1.0, "A", "B")
        stack.await_restart(role, pid)
    flow.run(2.0, "A", "B")
    _check(lab, flow, made)


def test_redis_wiped_while_down(stack: Stack, lab: Lab) -> None:
    """Matches that wait, cursors and timers come back from Kafka when Redis has lost everything."""
    flow, made = _started(lab)
    flow.run(2.5, "A", "B")
    client = redis.Redis.from_url(stack.redis_url)
    client.flushall()
    client.close()
    flow.run(2.5, "A", "B")
    _check(lab, flow, made)
