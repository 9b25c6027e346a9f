"""Roles and servers die around a tick: no digest is lost or comes twice, and no id stands for two contents."""

from __future__ import annotations

import time
from datetime import datetime

import pytest
import redis

from tests.stack.crash.test_crash import wipe_redis
from tests.stack.digests.ticks import Flow, digests, now_ms, numbers
from tests.stack.lab import Lab
from tests.stack.server import Stack
from tests.stack.tracebacks import KAFKA_AWAY

_EVERY = {"fast": 1000, "slow": 3000}
_ALL = ("redis", "gateway", "evaluator", "kafka")


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


def _await_slow_tick(made: dict[str, dict], late_ms: int) -> None:
    """Return `late_ms` after a tick of both classes (before it, when negative)."""
    tick_ms = round(datetime.fromisoformat(made["slow"]["trigger"]["next_at"]).timestamp() * 1000) + late_ms
    time.sleep((tick_ms - now_ms()) % _EVERY["slow"] / 1000)


def _kill(stack: Stack, *roles: str) -> dict[str, int]:
    return {role: stack.kill(role) for role in roles}


def _come_back(stack: Stack, killed: dict[str, int]) -> None:
    for role, pid in killed.items():
        stack.await_restart(role, pid)


def _check(lab: Lab, flow: Flow, made: dict[str, dict], dead: str) -> None:
    """Check that each match so far is in exactly one digest of each timer class, with all digests complete."""
    for name, created in made.items():
        flow.await_all(created, "A", timeout=300)
        came = numbers(digests(lab, created))
        assert sorted(came) == [sent.number for sent in flow.of("A")], f"{name}, when {dead} was killed"
        ticks = [one.headers["ce_id"] for one in digests(lab, created)]
        assert len(ticks) == len(set(ticks)), f"{name}, when {dead} was killed"
        for digest in digests(lab, created):
            assert len(digest.row["rows"]) == digest.row["count"], f"{name}, when {dead} was killed"


@pytest.mark.traceback(KAFKA_AWAY)
@pytest.mark.timeout(900)  # all roles start anew, Kafka with the partitions of all tests
def test_killed_around_ticks(stack: Stack, lab: Lab) -> None:
    """Each match is in exactly one digest of each timer class, whichever role dies at a tick.

    At last all die at once, and Redis loses its files: matches that wait, cursors and timers come back from Kafka. (The
    evaluator alone is killed in `test_crash.py`: its start takes long. A gateway that dies at each step of a tick is in
    `tests/stack/digests`, with a clock moved by hand.)
    """
    flow, made = _started(lab)
    for role, late_ms in (("gateway", 60), ("redis", 100)):
        flow.run(0.5, "A", "B")
        _await_slow_tick(made, late_ms)
        killed = _kill(stack, role)
        flow.run(0.5, "A", "B")
        _come_back(stack, killed)
        _check(lab, flow, made, role)
    client = redis.Redis.from_url(stack.redis_url)
    client.set("of the life before", 1)
    flow.run(2.0, "A", "B")
    _await_slow_tick(made, 80)
    wipe_redis(stack)  # before Redis dies: it is started again at once
    killed = _kill(stack, *_ALL)
    _come_back(stack, killed)
    assert client.get("of the life before") is None
    client.close()
    flow.run(0.5, "A", "B")
    _check(lab, flow, made, "everything")
