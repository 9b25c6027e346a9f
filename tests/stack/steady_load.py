"""A steady load of events and commands during a fault, and the check that all were served."""

from __future__ import annotations

import json
import threading
import time
from contextlib import closing

from confluent_kafka import Producer

from gateway.sdk import Client, Digest, Match
from tests.kafka_client import wait_until
from tests.kafka_tail import Tail

__all__ = ["SteadyLoad"]

_PARTITIONS = 3
_SECONDS = 300.0
"""The longest time for a command or a match, in which servers that were killed are started again."""
_STREAM = "CREATE STREAM {0} (n BIGINT) WITH (topic = '{0}', format = 'json', partitions = {1})"
_CQ = "CREATE CQ {1} AS SELECT n FROM {0} WHERE n % 2 = 0 {2}"


class SteadyLoad:
    """Publishes numbers and creates CQs, in threads of their own; two CQs match every second number."""

    def __init__(self, client: Client, bootstrap: str, stream: str = "numbers") -> None:
        """Begin.

        Args:
            client: The client of a new subscriber.
            bootstrap: Kafka's address.
            stream: The name of the stream, and of its topic.
        """
        self.stream = stream
        self._published = self._commands = 0
        self._client = client
        self._bootstrap = bootstrap
        self._execute(_STREAM.format(stream, _PARTITIONS))
        self._execute(_CQ.format(stream, "even", "DO PUBLISH SHARED"))
        self._execute(_CQ.format(stream, "by_tick", "DO PUBLISH SHARED EVERY '2 seconds'"))
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "socket.timeout.ms": 5_000}
        )
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=each, daemon=True) for each in (self._publish, self._command)]
        for thread in self._threads:
            thread.start()

    def _publish(self) -> None:
        while not self._stop.is_set():
            body = json.dumps({"n": self._published}).encode()
            self._producer.produce(self.stream, body, partition=self._published // 2 % _PARTITIONS)
            self._producer.poll(0)
            self._published += 1
            self._stop.wait(0.005)

    def _command(self) -> None:
        while not self._stop.is_set():
            self._execute(_CQ.format(self.stream, f"further_{self._commands}", "DO PUBLISH SHARED"))
            self._commands += 1
            self._stop.wait(0.1)

    def _execute(self, statement: str) -> None:
        self._client.execute(statement, timeout=_SECONDS)

    def go_on(self) -> None:
        """Return when events and commands have gone on for a while."""
        published = self._published
        self.carry_out_commands()
        wait_until(lambda: time.sleep(0.05) or self._published >= published + 300, "further events", _SECONDS)

    def carry_out_commands(self) -> None:
        """Return when some more commands were carried out."""
        commands = self._commands
        wait_until(lambda: time.sleep(0.05) or self._commands >= commands + 5, "further commands", _SECONDS)

    def seconds_to_match(self, client: Client) -> float:
        """Return the seconds until a number that is published after the call is matched.

        Args:
            client: A client for this thread, which must not be the client of the load.
        """
        began, first = time.monotonic(), self._published
        with client.subscribe("even") as results:
            for result in results:
                if result.row["n"] >= first:
                    return time.monotonic() - began
        raise AssertionError("the CQ ended")

    def check(self) -> None:
        """End the load; check that each match came once as a result and once in a digest, and each CQ was created."""
        self._stop.set()
        for thread in self._threads:
            thread.join(_SECONDS + 30)
            assert not thread.is_alive()
        assert self._producer.flush(_SECONDS) == 0
        events = self._events()
        assert {*events.values()} == {*range(0, self._published, 2)}
        assert events == dict(self._results("even", len(events)))
        numbers = [number for _, number in self._results("by_tick", len(events))]
        assert sorted(events.values()) == sorted(numbers)
        assert self._commands + 2 == len(self._client.listing())

    def _events(self) -> dict[str, int]:
        """Return the even numbers that are in the topic, by the `ce_id` of their results.

        The topic decides which results there must be: a producer may publish a number twice when a leader is cut off.
        """
        with closing(Tail(self._bootstrap)) as tail:
            for partition in range(_PARTITIONS):
                tail.add(self.stream, partition, 0)
            found = {
                f"{self.stream}/{each.partition()}/{each.offset()}": json.loads(each.value())["n"]
                for each in tail.drain()
            }
        return {result_id: number for result_id, number in found.items() if number % 2 == 0}

    def _results(self, name: str, count: int) -> list[tuple[str, int]]:
        """Return the first `count` rows of a CQ's results: for each row, the id of its result and its number."""
        found: list[tuple[str, int]] = []
        with self._client.subscribe(name) as results:
            for result in results:
                match result:
                    case Match():
                        found.append((result.id, result.row["n"]))
                    case Digest():
                        found += [(str(result.tick), row["n"]) for row in result.rows]
                if len(found) >= count:
                    return found
        raise AssertionError(f"the CQ ended after {len(found)}")
