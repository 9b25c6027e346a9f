"""An evaluator succeeds a dead or sleeping one, whose process nobody can check, when the lease lapses."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.sdk import connect
from tests.cluster.evaluators.site import Site, site
from tests.ground import goal_seconds
from tests.stack.steady_load import SteadyLoad

_STANDBY = {"CQ_STANDBY": "true"}
_GOAL_SECONDS = 15.0
"""From the death of an evaluator until a standby matches events published from then on, in addition to the time of an
evaluator's start on this machine."""
_END_SECONDS = 180.0
"""How long an evaluator may take until it has ended."""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Servers with a gateway."""
    with site(tmp_path_factory.mktemp("site")) as running:
        yield running


@pytest.mark.timeout(1200)  # five starts of Spark
def test_a_successor_waits_for_the_lease(running: Site) -> None:
    """A standby takes over, and an evaluator without CQ_STANDBY waits for a dead holder only; nothing is lost.

    The first host's evaluator comes back last: the position in its checkpoint is long past by then.
    """
    began = time.monotonic()
    active = running.evaluator("first")
    active.wait_for("ready")
    started = time.monotonic() - began
    standby = running.evaluator("second", **_STANDBY)
    standby.wait_for("starting")
    assert standby.probe("/readyz?standby") == 503, "it stands by when Spark has started"
    standby.wait_for("standby")
    assert (200, 503, 200) == tuple(map(standby.probe, ("/healthz", "/readyz", "/readyz?standby")))
    broken = running.evaluator("broken", CQ_EVALUATOR_JARS="/nowhere", **_STANDBY)
    assert 1 == broken.process.wait(_END_SECONDS), "it does not stand by without Spark"
    with connect(running.bootstrap, "alice") as client, connect(running.bootstrap, "alice") as other:
        load = SteadyLoad(client, running.bootstrap)
        load.seconds_to_match(other)
        active.kill()
        silent = load.seconds_to_match(other)
        standby.wait_for("ready")
        assert silent < goal_seconds(_GOAL_SECONDS) + started
        refused = running.evaluator("third")
        assert 1 == refused.process.wait(_END_SECONDS), "the one that lives goes on"
        assert "another evaluator runs on this prefix" in refused.output().splitlines()[-1]
        standby.kill()
        last = running.evaluator("first")
        last.wait_for("ready")
        load.check()
        last.kill()


@pytest.mark.timeout(900)
def test_an_evaluator_that_sleeps_is_succeeded(running: Site, tmp_path: Path) -> None:
    """Driver, JVM and workers are stopped amid their work, like a frozen host, and go on when succeeded.

    Both have the same checkpoint. The old evaluator ends, and nothing is lost or doubled.
    """
    shared = {"CQ_EVALUATOR_CHECKPOINTS": (tmp_path / "checkpoints").as_uri(), **_STANDBY}
    began = time.monotonic()
    active = running.evaluator("fourth", **shared)
    active.wait_for("ready")
    started = time.monotonic() - began
    standby = running.evaluator("fifth", **shared)
    standby.wait_for("standby")
    with connect(running.bootstrap, "bob") as client, connect(running.bootstrap, "bob") as other:
        load = SteadyLoad(client, running.bootstrap, "letters")
        load.seconds_to_match(other)
        asleep = active.family()
        for process in asleep:
            process.suspend()
        assert load.seconds_to_match(other) < goal_seconds(_GOAL_SECONDS) + started
        for process in asleep:
            process.resume()
        assert active.process.wait(_END_SECONDS) != 0
        load.seconds_to_match(other)
        load.check()
