"""A tick of many destinations is one Spark job, with the same digests as by the gateway."""

from __future__ import annotations

from gateway.sdk import Digest, connect
from tests.stack.digests.many import Many
from tests.stack.digests.ticks import digests
from tests.stack.lab import Lab
from tests.stack.server import Stack


def test_a_tick_of_many_is_one_job(stack: Stack, lab: Lab) -> None:
    """Digests of all kinds are as the gateway makes them; Spark runs one job for a tick, and none where few are due."""
    many = Many(lab)
    jobs: list[int] = []
    ticks: list[int] = []
    for _ in range(2):
        rows, tick_ms = many.publish(lambda: jobs.append(stack.settled_jobs()))
        many.check(rows, tick_ms)
        assert stack.settled_jobs() == jobs[-1] + 1
        ticks.append(tick_ms)
    empty = many.made["empty"]
    fired = len(digests(lab, empty))
    lab.results.until(lambda: len(digests(lab, empty)) > fired, "an empty digest")
    assert stack.settled_jobs() == jobs[-1] + 1
    assert lab.results.repeats == 0
    with connect(stack.bootstrap, lab.subscriber()) as client, client.subscribe(client.describe("large")) as results:
        while ticks:
            digest = results.next(timeout=180)
            assert isinstance(digest, Digest)
            if digest.tick < ticks[0]:  # of events that this machine has evaluated too late, and published again
                continue
            assert digest.tick == ticks.pop(0)
            assert len(digest.rows) == digest.count == many.count
