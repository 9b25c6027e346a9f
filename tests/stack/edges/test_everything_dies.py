"""Edges, frames, silences, stays and AT MOST while everything dies.

They share the deaths of an evaluator, which starts anew slowly.
"""

from __future__ import annotations

import pytest

from tests.stack.crash.test_crash import wipe_redis
from tests.stack.edges.joined_stays import JoinedStays
from tests.stack.edges.machines import Machines
from tests.stack.edges.readings import UNTIL_EVENT, UNTIL_VALUE, Readings
from tests.stack.edges.silences import Silences
from tests.stack.edges.throttled import Alarms
from tests.stack.lab import Lab
from tests.stack.server import Stack
from tests.stack.tracebacks import WORKER_DEATH

_EVENTS = 300


@pytest.mark.traceback(WORKER_DEATH)
@pytest.mark.timeout(900)  # roles start anew
def test_nothing_is_lost_or_told_twice(stack: Stack, lab: Lab) -> None:
    """Workers, the evaluator and the gateway are killed, and Redis is lost with its files.

    Edges are the same as of a fold, each once. Each reading has the values of a fold under one id, whoever evaluates
    it. A device is silent once where its worker and the evaluator die between match and silence. A stay over a join has
    the row that the table had when the stay began, although the table changes and all of them die before its end.
    AT MOST leaves out the same results as a fold, each written result with their number.
    """
    machines, readings, silences, stays = Machines(lab, 1), Readings(lab), Silences(lab), JoinedStays(lab)
    alarms = Alarms(lab)
    _plant(machines, readings)
    alarms.watch("at most one", 90, 1, 5)
    alarms.watch("at most two enters", 90, 2, 30, emit="EMIT ON ENTER BY device")
    alarms.publish(_EVENTS)
    stack.kill_workers()
    _go_on(machines, readings, 0)
    silences.begin()
    stays.begin()
    stack.kill_workers()
    killed = stack.kill("evaluator")
    machines.publish(_EVENTS)
    readings.publish()
    alarms.publish(_EVENTS)
    stack.await_restart("evaluator", killed)
    readings.watch("more", "range", 3)
    readings.watch("more edges", "edges", 200)
    readings.publish()
    _go_on(machines, readings, 1)
    silences.check()
    listed = lab.client.result("SHOW COMPUTATIONS LIKE 'j_%'", lab.subscriber())["computations"]
    for text in ("EMIT BY", "PARTITION BY device", "EMIT ON SILENCE"):
        assert any(text in each["text"] for each in listed), text
    for number, fault in enumerate(("gateway", "redis", "workers"), 2):
        machines.publish(_EVENTS)
        alarms.publish(_EVENTS)
        if fault == "workers":
            stack.kill_workers()
        else:
            if fault == "redis":
                wipe_redis(stack)
            killed = stack.kill(fault)
            machines.publish(_EVENTS)
            alarms.publish(_EVENTS)
            stack.await_restart(fault, killed)
        _go_on(machines, readings, number)
        alarms.check()
    stays.check()
    alarms.end()


def _plant(machines: Machines, readings: Readings) -> None:
    """Create the CQs that see all of it, and publish the first events."""
    machines.watch("enters", "ENTER", 90)
    machines.watch("both", "ENTER OR EXIT", 88.5, ("device", "room"))
    machines.watch("stays", "ENTER OR EXIT", 90, until=88.5)
    machines.watch("stays by a computed value", "ENTER OR EXIT", 90, until=88.5, value="temp + 0")
    kinds = ("lag", 5), ("rows", 250), ("range", 2), ("edges", 250), (UNTIL_VALUE, 250), (UNTIL_EVENT, 250)
    for number, (kind, over) in enumerate(kinds):
        readings.watch(f"reading_{number}", kind, over)
    machines.publish(_EVENTS)
    readings.publish()
    readings.watch("later", "lag", 15)
    assert readings.framed[0].created["group"] == readings.framed[-1].created["group"]


def _go_on(machines: Machines, readings: Readings, number: int) -> None:
    """Publish further events, watch one more kind of edges from then on, and check all results so far."""
    machines.publish(_EVENTS)
    readings.publish()
    machines.watch(f"since_{number}", "ENTER OR EXIT", 90)
    machines.publish(_EVENTS)
    machines.check()
    readings.check()
