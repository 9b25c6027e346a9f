"""SIGKILL and lost Redis: nothing is lost, nothing is shown twice (docs/faults.md)."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from tests.kafka_client import wait_until
from tests.stack.digests.ticks import digests
from tests.stack.lab import Lab, Source
from tests.stack.server import Stack
from tests.stack.tracebacks import KAFKA_AWAY

COLUMNS = "symbol STRING, n INT"
MANY = 100
"""CREATEs under way when a role is killed, and as many again while it is away."""


def flow(lab: Lab, source: Source, first: int, count: int) -> None:
    """Publish events numbered from `first`, symbols in turn."""
    source.publish_values(*[b'{"symbol": "S%d", "n": %d}' % (n % 4, n) for n in range(first, first + count)])


def watch(lab: Lab, source: Source) -> dict[int, Any]:
    """Create one CQ per symbol: two shared, two dedicated."""
    modes = ("SHARED", "SHARED", "DEDICATED", "DEDICATED")
    return {
        n: lab.create(f"w{n}", f"SELECT n FROM {source.name} WHERE symbol = 'S{n}'", clauses=f"DO PUBLISH {mode}")
        for n, mode in enumerate(modes)
    }


def check(lab: Lab, source: Source, watched: dict[int, Any], count: int) -> None:
    """Every CQ has each of its events once and in order."""
    source.fence()
    for n, created in watched.items():
        assert list(range(n, count, 4)) == [one.row["n"] for one in lab.settled_matches(created, source)]


@pytest.mark.traceback(KAFKA_AWAY)
@pytest.mark.timeout(900)  # three roles start anew
def test_sigkill_mid_flow(stack: Stack, lab: Lab) -> None:
    """A role killed while events and commands flow is restarted; no result is lost, each command has one reply."""
    source, alice = lab.stream(COLUMNS), lab.subscriber()
    watched = watch(lab, source)
    forgetful = lab.stream(COLUMNS)
    kept = lab.create("kept", f"SELECT n FROM {forgetful.name} WHERE n >= 0", clauses="DO PUBLISH SHARED")
    ended = lab.create("ended", f"SELECT n FROM {forgetful.name} WHERE n < 0", clauses="DO PUBLISH SHARED")
    flow(lab, forgetful, 0, 100)
    forgetful.fence()
    timed = f"SELECT n FROM {source.name} WHERE symbol = 'S1'"
    digested = lab.create("digested", timed, clauses="DO PUBLISH SHARED EVERY '1 second'")
    checkpoint = stack.data / "checkpoints" / lab.client.result(f"DESCRIBE STREAM {forgetful.name}", alice)["id"]
    sent, events = [], 0
    for number, role in enumerate(("gateway", "kafka", "evaluator"), 1):
        flow(lab, source, events, 2000)
        sent += order(lab, source, f"before_{role}")
        pid = stack.kill(role)
        if role == "evaluator":
            shutil.rmtree(checkpoint)
        flow(lab, forgetful, 100 * number, 100)
        sent += order(lab, source, f"after_{role}")
        flow(lab, source, events + 2000, 2000)
        stack.await_restart(role, pid)
        assert {"ok"} == {lab.client.reply(command_id).code for command_id in sent}, role
        flow(lab, source, events + 4000, 400)
        events += 4400
        check(lab, source, watched, events)
        assert list(range(100 * number + 100)) == [one.row["n"] for one in lab.matches(kept, forgetful)], role
    lab.drop("ended")
    lab.results.until(lambda: any(one.kind == "cq.end" for one in lab.results.of(ended["destination"])), "its end")

    def waited() -> list[int]:
        return sorted(row["n"] for digest in digests(lab, digested) for row in digest.row["rows"])

    lab.results.until(lambda: len(waited()) >= events // 4, "all matches in digests")
    assert waited() == list(range(1, events, 4))
    listed = lab.client.result("SHOW CQS LIMIT 1000", alice)["cqs"]
    assert {1} == {len(lab.client.replies_to(command_id)) for command_id in sent}
    assert len(sent) + len(watched) + len(("kept", "digested")) == len(listed)
    assert [MANY - 1] == lab.client.result(f"DESCRIBE CQ after_evaluator_{MANY - 1}", alice)["constants"]


def order(lab: Lab, source: Source, name: str) -> list[str]:
    """Send commands that create CQs, and return their ids."""
    alice, select = lab.subscriber(), f"SELECT n FROM {source.name} WHERE n ="
    lab.cqs.update(((alice, f"{name}_{n}"), None) for n in range(MANY))
    return [lab.client.send(f"CREATE CQ {name}_{n} AS {select} {n}", alice) for n in range(MANY)]


@pytest.mark.timeout(900)  # Redis and all roles start anew
def test_redis_lost_with_its_files(stack: Stack, lab: Lab) -> None:
    """Valkey killed and its files gone: CQs, groups, destinations and remembered command ids come back from Kafka."""
    source, alice = lab.stream(COLUMNS), lab.subscriber()
    watched = watch(lab, source)
    dropped = lab.create("dropped", f"SELECT n FROM {source.name} WHERE n >= 0", clauses="DO PUBLISH SHARED")
    lab.drop("dropped")
    remembered = lab.client.send("DESCRIBE CQ w0", alice)
    before = lab.client.reply(remembered)
    groups = lab.client.result("SHOW GROUPS LIMIT 1000", alice)["groups"]
    flow(lab, source, 0, 400)
    wipe_redis(stack)
    pid = stack.kill("redis")
    flow(lab, source, 400, 400)
    stack.await_restart("redis", pid)
    flow(lab, source, 800, 400)
    check(lab, source, watched, 1200)
    assert [] == [one for one in lab.matches(dropped, source) if one.row["n"] >= 0]

    def repeated() -> bool:
        """Send the command again, as a client does whose repeated reply is not found within two seconds."""
        lab.client.send("DESCRIBE CQ w0", alice, command_id=remembered)
        lab.client.result("SHOW TIMERS", alice)
        return lab.client.replies_to(remembered)[-1].code != "unavailable"

    wait_until(repeated, "repeated reply")
    found = [reply.fields for reply in lab.client.replies_to(remembered) if reply.code != "unavailable"]
    assert [before.fields] * 2 == found
    again = lab.client.result("SHOW GROUPS LIMIT 1000", alice)["groups"]
    counted = ("group", "signature", "stream", "cqs", "constants")
    now = [[item[name] for name in counted] for item in again]
    for item in groups:  # the fence of `flow` has opened one more since
        assert [item[name] for name in counted] in now
    assert before.result["destination"] == lab.client.result("DESCRIBE CQ w0", alice)["destination"]
    assert "cq-exists" == lab.client.execute(f"CREATE CQ w0 AS SELECT n FROM {source.name}", alice).code


def wipe_redis(stack: Stack) -> None:
    """Remove every file that Valkey keeps under the data folder."""
    kept = [path for pattern in ("*.rdb", "*.aof", "appendonlydir") for path in (stack.data / "redis").rglob(pattern)]
    assert kept, "no files of Valkey found"
    for path in kept:
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


def test_leaves_over_a_crash(stack: Stack, lab: Lab) -> None:
    """A gateway killed while CQs leave a destination to another one still tells each of them, under the same id."""
    source, alice = lab.stream(COLUMNS), lab.subscriber()
    select = f"SELECT n FROM {source.name} WHERE symbol = 'S0'"
    made = [lab.create(f"q{n}", select, clauses="DO PUBLISH SHARED") for n in range(60)]
    sent = []
    for first in range(0, 59, 20):
        flow(lab, source, 100 * first, 400)
        sent += [lab.client.send(f"DROP CQ q{n}", alice) for n in range(first, min(first + 20, 59))]
        lab.client.reply(sent[-20])
    stack.await_restart("gateway", stack.kill("gateway"))
    assert {"ok"} == {lab.client.reply(command_id).code for command_id in sent}
    lab.cqs = {(alice, "q59"): made[-1]}
    destination = made[0]["destination"]

    def left() -> list[Any]:
        return [one for one in lab.results.of(destination) if one.kind == "cq.leave"]

    lab.results.until(lambda: len(left()) == 59, "leaves")
    assert {one["destination"]["member"] for one in made[:-1]} == {one.row["member"] for one in left()}
    assert 300 == len(lab.matches(made[-1], source))
