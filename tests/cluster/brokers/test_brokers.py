"""A cluster of three brokers that die, come back and are restarted in turn, under events and commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.sdk import connect
from tests.cluster.brokers.brokers import COUNT, Brokers
from tests.stack.server import Stack
from tests.stack.steady_load import SteadyLoad


@pytest.mark.timeout(1800)  # five starts of a broker, and as many waits for all copies
def test_brokers_die_and_are_restarted(brokers: Brokers, tmp_path: Path) -> None:
    """Two die and come back, then all are restarted in turn: nothing is lost, nothing comes twice."""
    variables = {"CQ_KAFKA_BOOTSTRAP": brokers.bootstrap, "CQ_KAFKA_REPLICATION": "3", "CQ_KAFKA_MIN_ISR": "2"}
    stack = Stack(tmp_path / "data", **variables)
    try:
        stack.up()
        with connect(brokers.bootstrap, "alice") as client:
            load = SteadyLoad(client, brokers.bootstrap)
            for number in range(COUNT - 1):
                load.go_on()
                brokers.kill(number)
                load.go_on()
                brokers.start(number)
                brokers.await_whole()
            for number in range(COUNT):
                brokers.stop(number)
                brokers.start(number)
                brokers.await_whole()
            load.go_on()
            load.check()
    finally:
        stack.down()
