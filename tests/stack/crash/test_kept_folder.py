"""A data folder of an earlier version goes on: `kept/` has one as each version left it, made by `kept/make.py`."""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kafka_client import RawClient
from tests.kafka_tail import Results
from tests.stack.crash.kept.make import CQS, PENDING
from tests.stack.server import Stack

_KEPT = Path(__file__).parent / "kept"
_NEW = range(PENDING, PENDING + 4)
_FIRST = {"every": 0, "dedicated": 1, "replaced": 4}
"""The first event that matches each of these CQs; every later one does too."""


pytestmark = pytest.mark.timeout(900)  # each starts everything anew


@pytest.fixture(params=["with its Redis", "without Redis"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stack]:
    """A stack on a kept folder; without its Redis all comes back from Kafka, as written by the old version."""
    with tarfile.open(_KEPT / "folder-0.1.0.tar.xz") as packed:
        packed.extractall(tmp_path, filter="data")
    stack = Stack(tmp_path / "data")
    if request.param == "without Redis":
        shutil.rmtree(stack.data / "redis")
    try:
        stack.up()
        yield stack
    finally:
        if (stack.data / "endpoints.json").exists():
            stack.down()
            code, status = stack.status()
            assert (1, "stopped") == (code, status["state"])


def test_a_folder_of_an_earlier_version_goes_on(kept: Stack) -> None:
    """Every CQ is there with its state; matches that waited come in their digests, and new events are evaluated."""
    client, results = RawClient(kept.bootstrap), Results(kept.bootstrap)
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
    """Check that a CQ has a match of each of these events, once they are there, and no other."""
    found = results.of(described["destination"])
    results.until(lambda: set(_NEW) <= {one.row["n"] for one in found if one.kind == "cq.match"}, described["text"])
    assert [*expected] == sorted(one.row["n"] for one in found if one.kind == "cq.match")
