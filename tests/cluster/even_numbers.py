"""A stream of numbers with a CQ of the even ones: losses and doubles after a death show by counting."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from confluent_kafka import Producer

from gateway.sdk import Client
from tests.kafka_tail import BROKER_AWAY

__all__ = ["deaths"]

_EVENTS = 4_000
"""Published at a time."""


def deaths(client: Client, bootstrap: str, victims: Iterable[str]) -> Iterator[str]:
    """Yield the victims, each amid events: the caller kills it then, and each match must still exist exactly once."""
    _create(client)
    producer = Producer({"bootstrap.servers": bootstrap})
    published = 0
    for victim in victims:
        published = _publish(producer, published)
        yield victim
        published = _publish(producer, published)
        assert list(range(0, published, 2)) == _matches(client, published // 2), victim


def _create(client: Client) -> None:
    """Create the stream, of two partitions, and the CQ."""
    ddl = "CREATE STREAM numbers (n BIGINT) WITH (topic = 'numbers', format = 'json', partitions = 2)"
    client.execute(ddl)
    client.execute("CREATE CQ even AS SELECT n FROM numbers WHERE n % 2 = 0 DO PUBLISH SHARED")


def _publish(producer: Producer, begin: int) -> int:
    """Publish the next numbers, and return the following number."""
    for number in range(begin, begin + _EVENTS):
        producer.produce("numbers", json.dumps({"n": number}).encode(), partition=number // 2 % 2)
        producer.poll(0)
    assert producer.flush(BROKER_AWAY) == 0
    return begin + _EVENTS


def _matches(client: Client, count: int) -> list[int]:
    """Return the numbers of the CQ's matches from the first on, as many as expected, in order."""
    with client.subscribe("even") as results:
        return sorted(match.row["n"] for _, match in zip(range(count), results, strict=False))
