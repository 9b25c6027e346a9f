"""A data folder of an earlier version goes on: `kept/` has one as each version left it, made by `kept/make.py`."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest

from gateway.local.sessions import supervised
from tests.kafka_client import RawClient, wait_until
from tests.kafka_tail import Results
from tests.stack.crash.kept.make import CQS, PENDING
from tests.stack.server import Stack
from tests.stack.tracebacks import KAFKA_AWAY, WORKER_DEATH

_KEPT = Path(__file__).parent / "kept"
_NEW = range(PENDING, PENDING + 4)
_FIRST = {"every": 0, "dedicated": 1, "replaced": 4}
"""The first event that matches each of these CQs; every later one does too."""


pytestmark = pytest.mark.timeout(900)  # each starts everything anew


class _Kept(NamedTuple):
    """A stack on a kept folder, its supervisor, and the signal that ends the supervisor."""

    stack: Stack
    supervisor: subprocess.Popen[str]
    end: signal.Signals


@pytest.fixture(params=[(True, signal.SIGINT), (False, signal.SIGKILL)], ids=["with its Redis", "without Redis"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[_Kept]:
    """A stack on a kept folder; without its Redis all comes back from Kafka, as written by the old version."""
    with_redis, end = request.param
    with tarfile.open(_KEPT / "folder-0.1.0.tar.xz") as packed:
        packed.extractall(tmp_path, filter="data")
    stack = Stack(tmp_path / "data")
    if not with_redis:
        shutil.rmtree(stack.data / "redis")
    with stack.guarded(), stack.foreground() as supervisor:
        yield _Kept(stack, supervisor, end)
        supervisor.terminate()


@pytest.mark.traceback(KAFKA_AWAY)  # the roles do not end at the same instant
@pytest.mark.traceback(WORKER_DEATH)
def test_a_folder_of_an_earlier_version_goes_on(kept: _Kept) -> None:
    """Every CQ is there with its state; matches that waited come in their digests, and new events are evaluated.

    After a Ctrl-C, and after the supervisor's SIGKILL, no process that was started is left.
    """
    client, results = RawClient(kept.stack.bootstrap), Results(kept.stack.bootstrap)
    try:
        found = _check_listed(client)
        for name in found.keys() - {"virtual"}:
            results.follow(found[name]["destination"])
        assert [*range(PENDING)] == sorted(_numbers(_digest(results, found["timed"])))
        assert [PENDING - 1, PENDING - 2] == _numbers(_digest(results, found["top"]))
        for number in _NEW:
            event = {"symbol": "INTC", "price": 50.0, "n": number}
            client.publish("quotes", json.dumps(event).encode(), partition=number % 2)
        for name, first in _FIRST.items():
            _check_matches(results, found[name], range(first, _NEW.stop))
        assert not [one for one in results.of(found["paused"]["destination"]) if one.kind == "cq.match"]
        for text in ("RESUME CQ paused", "DROP CQ timed", "CREATE CQ another AS SELECT n FROM quotes WHERE price > 4"):
            client.result(text)
    finally:
        client.close()
        results.close()
    _check_end(kept)


def _check_end(kept: _Kept) -> None:
    """End the supervisor, and check that its roles and their children end with it."""
    wait_until(lambda: kept.stack.status()[1]["state"] == "ready", "roles that are all ready")
    family = supervised(kept.stack.data)
    assert len(family) >= 5, "Kafka, Valkey, gateway, evaluator and its JVM"
    kept.supervisor.send_signal(kept.end)
    assert (kept.end == signal.SIGKILL) == (kept.supervisor.wait(300) != 0)
    assert not psutil.wait_procs(family, timeout=120)[1]
    code, status = kept.stack.status()
    assert (1, "stopped") == (code, status["state"])


def _check_listed(client: RawClient) -> dict[str, Any]:
    """Check the answers of SHOW and DESCRIBE, and return the latter by the CQ's name."""
    listed = [item["cq"] for item in client.result("SHOW CQS")["cqs"]]
    assert sorted(CQS.keys() - {"gone"}) == listed
    found = {name: client.result(f"DESCRIBE CQ {name}") for name in listed}
    modes = {mode: found[mode]["destination"]["mode"] for mode in ("shared", "dedicated", "virtual")}
    assert all(name == mode for name, mode in modes.items()), modes
    assert found["virtual"]["destination"]["topic"] in client.topics()
    twins = [found["shared"], found["twin"], client.result("DESCRIBE CQ shared", "bob")]
    assert 1 == len({each["destination"]["id"] for each in twins})
    assert ["paused"] == [name for name in listed if found[name]["status"] == "paused"]
    assert "price > 30" in found["replaced"]["text"] and "EXPIRE" in found["expiring"]["text"]
    assert ["cron", "timed", "top"] == [item["cq"] for item in client.result("SHOW TIMERS")["timers"]]
    return found


def _digest(results: Results, described: Any) -> Any:
    """Return the first digest of a CQ."""
    found = results.of(described["destination"])
    results.until(lambda: any(one.kind == "cq.digest" for one in found), "a digest")
    return next(one for one in found if one.kind == "cq.digest").row


def _numbers(digest: Any) -> list[int]:
    return [row["n"] for row in digest["rows"]]


def _check_matches(results: Results, described: Any, expected: range) -> None:
    """Check that a CQ has a match of each new event, once they are there, and no match of an unexpected event.

    Kafka deletes the earlier events' matches when they are seven days old, at a moment of its own.
    """
    found = results.of(described["destination"])
    results.until(lambda: set(_NEW) <= {one.row["n"] for one in found if one.kind == "cq.match"}, described["text"])
    numbers = [one.row["n"] for one in found if one.kind == "cq.match"]
    assert len(numbers) == len(set(numbers)) and set(numbers) <= set(expected), numbers
