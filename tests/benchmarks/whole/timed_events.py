"""Events that carry the time at which they were published, and how long their results took."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable
from contextlib import closing

import msgspec
from confluent_kafka import Consumer, Producer, TopicPartition

__all__ = ["result_ends", "result_waits", "send"]

_END_SECONDS = 60.0


class _Result(msgspec.Struct):
    """The part of a result that tells when its event was published, epoch seconds; 0 in the record of a CQ's end."""

    sent: float = 0.0


def send(bootstrap: str, topics: Iterable[str], seconds: float, rate: float, partitions: int) -> list[float]:
    """Publish events to each topic, evenly over time and partitions, and return when each was published."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    topics = list(topics)
    begun, sent = time.monotonic(), list[float]()
    for number, topic in enumerate(itertools.cycle(topics)):
        due = begun + number / len(topics) / rate
        if due - begun >= seconds:
            break
        producer.poll(max(0.0, due - time.monotonic()))
        time.sleep(max(0.0, due - time.monotonic()))
        sent.append(time.time())
        producer.produce(topic, msgspec.json.encode(_Result(sent[-1])), partition=number // len(topics) % partitions)
    producer.flush()
    return sent


def result_ends(bootstrap: str) -> list[TopicPartition]:
    """Return where the topic of shared results ends."""
    with closing(_consumer(bootstrap)) as consumer:
        found = consumer.list_topics("cq.results").topics["cq.results"].partitions
        places = [TopicPartition("cq.results", partition) for partition in found]
        return [
            TopicPartition(place.topic, place.partition, consumer.get_watermark_offsets(place)[1]) for place in places
        ]


def result_waits(bootstrap: str, places: list[TopicPartition], counts_from: float, count: int) -> list[float]:
    """Return by result its record time less the time of its event, in seconds.

    Raises:
        RuntimeError: Fewer results than events came in time.
    """
    decode = msgspec.json.Decoder(_Result).decode
    waits: list[float] = []
    deadline = time.monotonic() + _END_SECONDS
    with closing(_consumer(bootstrap)) as consumer:
        consumer.assign(places)
        while len(waits) < count:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{len(waits)} results came, and {count} should have")
            for message in consumer.consume(1000, 0.1):
                value = message.value()
                if message.error() is None and value is not None and (event := decode(value)).sent >= counts_from:
                    waits.append(message.timestamp()[1] / 1000 - event.sent)
    return waits


def _consumer(bootstrap: str) -> Consumer:
    return Consumer({"bootstrap.servers": bootstrap, "group.id": "bench"})
