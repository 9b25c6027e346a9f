"""The primary of a pair of Redis servers dies, and its follower takes over; then the other way round."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.sdk import connect
from tests.cluster.failover.pair import watched_pair
from tests.stack.server import Stack
from tests.stack.steady_load import SteadyLoad


@pytest.mark.timeout(900)
def test_a_follower_takes_over_and_gives_back(tmp_path: Path) -> None:
    """The follower may lack the last writes: the gateway replays them, and nothing is lost or comes twice."""
    with watched_pair(tmp_path / "pair") as pair:
        stack = Stack(tmp_path / "data", **pair.settings)
        try:
            stack.up()
            with connect(stack.bootstrap, "alice") as client:
                load = SteadyLoad(client, stack.bootstrap)
                for _ in range(2):
                    load.go_on()
                    before = pair.primary()
                    pair.kill(before)
                    load.go_on()
                    assert before != pair.primary()
                    pair.start(before)
                    pair.await_followed()
                load.go_on()
                load.check()
        finally:
            stack.down()
