"""A cluster of three brokers that die, come back and are restarted in turn, under events and commands."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from gateway.sdk import Client, connect
from tests.stack.brokers.brokers import COUNT, Brokers, three_brokers
from tests.stack.server import Stack

_STREAM = "CREATE STREAM numbers (n BIGINT) WITH (topic = 'numbers', format = 'json', partitions = 3)"
_CQ = "CREATE CQ {0} AS SELECT n FROM numbers WHERE n % 2 = 0 {1}"


@pytest.fixture
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    """The cluster."""
    with three_brokers(tmp_path_factory.mktemp("brokers")) as brokers:
        yield brokers


class _Load:
    """Events and commands at a steady pace, in threads of their own."""

    def __init__(self, client: Client, bootstrap: str) -> None:
        self.published = self.commands = 0
        self._client = client
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=each) for each in (self._publish, self._command)]
        for thread in self._threads:
            thread.start()

    def _publish(self) -> None:
        while not self._stop.is_set():
            body = json.dumps({"n": self.published}).encode()
            self._producer.produce("numbers", body, partition=self.published // 2 % 3)
            self._producer.poll(0)
            self.published += 1
            self._stop.wait(0.005)

    def _command(self) -> None:
        while not self._stop.is_set():
            self._client.execute(_CQ.format(f"further_{self.commands}", "DO PUBLISH SHARED"), timeout=120)
            self.commands += 1
            self._stop.wait(0.1)

    def end(self) -> None:
        """Stop, and return when every event is on its topic and every command has its reply."""
        self._stop.set()
        for thread in self._threads:
            thread.join(150)
            assert not thread.is_alive()
        assert self._producer.flush(60) == 0


def test_brokers_die_and_are_restarted(brokers: Brokers, tmp_path: Path) -> None:
    """Each match comes once, at once and in digests, and each command is carried out once and answered."""
    told = {"CQ_KAFKA_BOOTSTRAP": brokers.bootstrap, "CQ_KAFKA_REPLICATION": "3", "CQ_KAFKA_MIN_ISR": "2"}
    stack = Stack(tmp_path / "data", **told)
    try:
        stack.up()
        with connect(brokers.bootstrap, "alice") as client:
            client.execute(_STREAM)
            client.execute(_CQ.format("even", "DO PUBLISH SHARED"))
            client.execute(_CQ.format("by_tick", "DO PUBLISH SHARED EVERY '2 seconds'"))
            load = _Load(client, brokers.bootstrap)
            for number in range(2):
                _pause(load)
                brokers.kill(number)
                _pause(load)
                brokers.start(number)
                brokers.await_whole()
            for number in range(COUNT):
                brokers.stop(number)
                brokers.start(number)
                brokers.await_whole()
            _pause(load)
            load.end()
            expected = list(range(0, load.published, 2))
            assert expected == sorted(_rows(client, "even", len(expected)))
            assert expected == sorted(_rows(client, "by_tick", len(expected)))
            live = client.execute("SHOW CQS LIMIT 1000").result["cqs"]
            assert load.commands + 2 == len(live)
    finally:
        stack.down()


def _pause(load: _Load) -> None:
    """Return when the load has gone on for a while."""
    published, commands = load.published, load.commands
    deadline = time.monotonic() + 120
    while load.published < published + 300 or load.commands < commands + 5:
        assert time.monotonic() < deadline, "the load does not go on"
        time.sleep(0.05)


def _rows(client: Client, name: str, count: int) -> list[int]:
    """Return the numbers of the CQ's results from the first one on, as many as there should be."""
    found: list[int] = []
    with client.subscribe(name) as results:
        for result in results:
            found += [row["n"] for row in getattr(result, "rows", None) or [result.row]]
            if len(found) >= count:
                return found
    raise AssertionError(f"the CQ ended after {len(found)}")
