"""Two gateways on one prefix with different Redis servers: the second is refused while the first is alive."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gateway.kafka import SignBoard
from gateway.sdk import connect
from gateway.state.recovery.rivals import GatewaySign, Sign
from grouping.settings.settings import Settings
from tests.ground import Ground, goal_seconds, open_ground
from tests.stack.state.gateway_process import GatewayProcess

_END_SECONDS = 180.0
"""How long a gateway may take until it has ended."""


@pytest.fixture(scope="module")
def other_redis(servers: Ground) -> Iterator[Ground]:
    """A second Redis beside the same Kafka."""
    with open_ground(kafka=servers.settings.kafka.bootstrap) as other:
        yield other


@pytest.fixture
def elsewhere(ground: Ground, other_redis: Ground) -> Settings:
    """The test's prefix on the same Kafka, with the second Redis."""
    return ground.settings.model_copy(update={"redis": other_redis.settings.redis})


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[Settings], GatewayProcess]]:
    """Start gateways that do not stand by; all of them are gone afterwards."""
    started: list[GatewayProcess] = []

    def one_more(settings: Settings) -> GatewayProcess:
        started.append(GatewayProcess(settings, tmp_path, len(started), standby=False))
        return started[-1]

    yield one_more
    for each in started:
        each.end()


def test_a_gateway_with_another_redis_is_refused(
    ground: Ground, elsewhere: Settings, start: Callable[[Settings], GatewayProcess]
) -> None:
    """The second gateway ends with a single line, the first serves on; after its death the second starts at once."""
    began = time.monotonic()
    first = start(ground.settings)
    first.wait_for("ready")
    took = time.monotonic() - began
    second = start(elsewhere)
    assert second.process.wait(_END_SECONDS) == 1
    output = second.output()
    assert "cq: another gateway runs on the prefix, with another Redis. Stop it first," in output.splitlines()[-1]
    assert "Traceback" not in output
    with connect(ground.settings.kafka.bootstrap, "alice", prefix=ground.settings.prefix) as client:
        client.create_stream("s", {"a": "STRING"}, topic=f"rivals{os.getpid()}", format="json", partitions=1)
        client.create("q", "SELECT a FROM s WHERE a = 'x'")
        assert first.process.poll() is None and "recovering" not in first.output()

        first.process.kill()
        first.process.wait()
        began = time.monotonic()
        heir = start(elsewhere)
        heir.wait_for("ready")
        assert time.monotonic() - began < took + max(3.0, took / 2), "a sign that stands still is waited for longer"
        assert ["q"] == [each["cq"] for each in client.listing()]


def test_a_gateway_that_slept_meanwhile_ends(
    ground: Ground, elsewhere: Settings, start: Callable[[Settings], GatewayProcess]
) -> None:
    """A gateway hanging for longer than its sign lasts is succeeded, and ends when it goes on."""
    first = start(ground.settings)
    first.wait_for("ready")
    first.process.send_signal(signal.SIGSTOP)
    second = start(elsewhere)
    second.wait_for("ready")
    first.process.send_signal(signal.SIGCONT)
    assert first.process.wait(_END_SECONDS) == 1
    assert "a gateway with another redis has taken over" in first.output()
    assert second.process.poll() is None
    assert "Traceback" not in first.output() + second.output()


def test_a_sign_that_stands_still_is_of_nobody(ground: Ground, elsewhere: Settings) -> None:
    """A gateway of another machine whose sign stands still was lost with its Redis: the next gateway starts."""
    ground.make_topic(ground.settings.topics.catalog, 1)
    board = SignBoard(ground.settings)
    board.write(Sign("0123456789abcdef", "elsewhere/1/01234567", 7, 9).encode())
    assert Sign("0123456789abcdef", "elsewhere/1/01234567", 7, 9) == Sign.decode(board.read())
    board.close()
    began = time.monotonic()
    GatewaySign(elsewhere, "here/2/89abcdef", threading.Event()).refuse_rival()
    assert 3.0 < time.monotonic() - began < goal_seconds(30.0)
