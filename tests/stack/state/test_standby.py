"""A standby gateway takes over when the active gateway dies, hangs or is stopped; each command is carried out once."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.kafka import LogReader, Topics
from gateway.sdk import connect
from grouping.store.connection import connect as connect_redis
from grouping.store.lease import Lease
from tests.ground import Ground, goal_seconds
from tests.stack.state.gateway_process import GatewayProcess, until

_GATHERED = 20
"""Commands that are answered between two faults, at least."""
_GOAL_SECONDS = 5.0
"""For how long no command may be answered, in addition to the time of a gateway's start on this machine."""
_END_SECONDS = 180.0
"""How long a gateway may take until it has ended."""


class _Load:
    """Commands of a subscriber, in sequence, for as long as the block lasts."""

    def __init__(self, ground: Ground) -> None:
        self.answered: list[str] = []
        """The names of the CQs that were accepted."""
        self._client = connect(ground.settings.kafka.bootstrap, "alice", prefix=ground.settings.prefix, timeout=120)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._send)

    def __enter__(self) -> _Load:
        options: dict[str, Any] = {"topic": f"x{os.getpid()}", "format": "json", "partitions": 1}
        self._client.create_stream("s", {"a": "STRING"}, **options)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._client.close()

    def _send(self) -> None:
        while not self._stop.is_set():
            name = f"q{len(self.answered)}"
            self._client.create(name, f"SELECT a FROM s WHERE a = '{name}'")
            self.answered.append(name)

    def goes_on(self) -> float:
        """Wait until commands are answered again, and return for how long none was."""
        began, before = time.monotonic(), len(self.answered)
        until(lambda: len(self.answered) > before + 1, "an answer")  # one may have been under way
        silent = time.monotonic() - began
        until(lambda: len(self.answered) > before + _GATHERED, "answers")
        return silent


@pytest.fixture
def gateway(ground: Ground, tmp_path: Path) -> Iterator[Callable[[], GatewayProcess]]:
    """A function that starts a further gateway; all of them are ended afterwards."""
    started: list[GatewayProcess] = []

    def start() -> GatewayProcess:
        started.append(GatewayProcess(ground.settings, tmp_path, len(started)))
        return started[-1]

    yield start
    for each in started:
        each.end()


def test_one_that_does_not_stand_by_is_refused(ground: Ground, tmp_path: Path) -> None:
    """Beside an active gateway another ends with a line that names the active gateway."""
    lease = Lease(ground.settings, "gateway")
    assert lease.acquire()
    connect_redis(ground.settings).persist(lease.key)  # a slow machine starts the second one later
    second = GatewayProcess(ground.settings, tmp_path, 0, standby=False)
    assert second.process.wait(_END_SECONDS) == 1
    line = second.output().splitlines()[-1]
    assert f'another gateway runs on the prefix "{ground.settings.prefix}"' in line
    assert "CQ_STANDBY=true" in line


def test_a_standby_takes_over(ground: Ground, gateway: Callable[[], GatewayProcess]) -> None:
    """A gateway is killed, put to sleep and told to stop: commands go on with the next gateway, each with one reply."""
    began = time.monotonic()
    active = gateway()
    active.wait_for("ready")
    took = time.monotonic() - began
    standby = gateway()
    standby.wait_for("standby")
    assert (200, 503, 200) == tuple(map(standby.probe, ("/healthz", "/readyz", "/readyz?standby")))
    silent: dict[str, float] = {}
    with _Load(ground) as load:
        load.goes_on()
        for fault in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM):
            active.process.send_signal(fault)
            silent[fault.name] = load.goes_on()
            standby.wait_for("ready")
            if fault is signal.SIGSTOP:
                active.process.send_signal(signal.SIGCONT)
            ended = active.process.wait(_END_SECONDS)
            assert ended == {signal.SIGKILL: -9, signal.SIGSTOP: 1, signal.SIGTERM: 0}[fault]
            active, standby = standby, gateway()
            standby.wait_for("standby")
    assert max(silent.values()) < goal_seconds(_GOAL_SECONDS) + took, (silent, took)
    with connect(ground.settings.kafka.bootstrap, "alice", prefix=ground.settings.prefix) as client:
        listed = [item["cq"] for item in client.listing()]
    assert sorted(load.answered) == sorted(listed)
    assert set(_replies(ground).values()) == {1}


def _replies(ground: Ground) -> Counter[str]:
    """Return how many replies each command has."""
    topic, reader = ground.settings.topics.replies, LogReader(ground.settings)
    records = reader.since(topic, dict.fromkeys(range(Topics(ground.settings).partitions(topic) or 0), 0))
    replies = Counter(json.loads(record.value or b"{}")["command_id"] for record in records)
    reader.close()
    return replies
