"""Roles are killed while Spark writes digests: no digest is lost, and no id stands for two contents."""

from __future__ import annotations

import json
import time

import pytest
import redis

from tests.stack.digests.many import Many
from tests.stack.lab import Lab
from tests.stack.server import Stack


def _await_taken(stack: Stack) -> None:
    """Return as soon as the evaluator has taken a digest job."""
    client = redis.Redis.from_url(stack.redis_url)
    deadline = time.monotonic() + 120
    while not (body := client.get("cq:evaluator:digest-job")) or json.loads(body)["state"] != "taken":
        assert time.monotonic() < deadline, "no digest job was taken"
        time.sleep(0.001)
    client.close()


@pytest.mark.timeout(900)  # three roles start anew
def test_killed_while_the_job_runs(stack: Stack, lab: Lab) -> None:
    """The digests come all the same, and the next tick's after them; readers see each once."""
    many = Many(lab)
    for role in ("gateway", "redis", "evaluator"):
        rows, tick_ms = many.publish()
        _await_taken(stack)
        pid = stack.kill(role)
        stack.await_restart(role, pid)
        many.check(rows, tick_ms, timeout=300)
    many.check(*many.publish(), timeout=300)
