"""What the evaluator asks of source topics: once for all of them, however many streams there are."""

from __future__ import annotations

import time

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from spark_jobs.watermarks import Broker
from tests.benchmarks.ground import Ground

_TOPICS = 100


def test_bounds_of_many_topics(ground: Ground) -> None:
    """First offsets and ends of a hundred topics come together in a fraction of a second; a missing one is left out."""
    names = [f"{ground.settings.prefix}w{number}" for number in range(_TOPICS)]
    admin = AdminClient({"bootstrap.servers": ground.settings.kafka.bootstrap})
    for made in admin.create_topics([NewTopic(name, 2, 1) for name in names]).values():
        made.result(30)
    producer = Producer({"bootstrap.servers": ground.settings.kafka.bootstrap})
    for number, name in enumerate(names):
        for _ in range(number):
            producer.produce(name, b"{}", partition=1)
    producer.flush()
    broker = Broker(ground.settings)
    assert {} == broker.bounds([])
    assert {} == broker.bounds(["missing"])
    began = time.monotonic()
    bounds = broker.bounds([*names, "missing"])
    assert time.monotonic() - began < 0.5
    assert {name: ({0: 0, 1: 0}, {0: 0, 1: number}) for number, name in enumerate(names)} == bounds
    assert (bounds[names[7]]) == (broker.earliest(names[7]), broker.ends(names[7]))
