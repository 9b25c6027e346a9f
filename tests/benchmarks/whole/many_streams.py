"""Many quiet streams, or one of many partitions: from the time of an event to the record time of its result."""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import msgspec
import numpy as np
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.benchmarks.report import Report
from tests.benchmarks.whole.product import open_product

__all__ = ["add_options", "main"]

_END_SECONDS = 30.0


class _Result(msgspec.Struct):
    """The part of a result that tells when its event was published, epoch seconds."""

    sent: float


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the sizes."""
    parser.add_argument("--streams", type=int, nargs="+", default=[10, 20, 60], help="how many streams, in turns")
    parser.add_argument("--stream-rate", type=float, default=1.0, help="events a second of each stream")
    parser.add_argument("--stream-partitions", type=int, default=1, help="source partitions of each stream")
    parser.add_argument("--streams-seconds", type=float, default=120.0, help="how long; its second half counts")


def main(options: argparse.Namespace, folder: Path) -> None:
    """Measure and report."""
    report = Report(options.command)
    with open_product(results_dedicated_limit=0) as product:
        client = product.client("bench")
        names: list[str] = []
        for count in options.streams:
            for number in range(len(names), count):
                names.append(f"quiet{number}")
                client.create_stream(names[-1], {"sent": "DOUBLE"}, partitions=options.stream_partitions)
            client.create_many([(f"q_{each}_{count}", f"SELECT sent FROM {each}") for each in names], timeout=600)
            ends = _ends(product.bootstrap)
            begun = time.time()
            rate, partitions = options.stream_rate, options.stream_partitions
            sent = _send(product.bootstrap, names, options.streams_seconds, rate, partitions)
            counts_from = begun + options.streams_seconds / 2
            waits = _waits(product.bootstrap, ends, counts_from, sum(each >= counts_from for each in sent))
            for each in names:
                client.drop(f"q_{each}_{count}")
            kind = f"{count} streams, {partitions} partitions, {rate:g} events/s each"
            for percent in (50, 99):
                report.add(f"p{percent} of {kind}", float(np.percentile(waits, percent)), "s")
        client.close()
    report.write(folder)


def _send(bootstrap: str, topics: Iterable[str], seconds: float, rate: float, partitions: int) -> list[float]:
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


def _ends(bootstrap: str) -> list[TopicPartition]:
    """Return where the topic of shared results ends."""
    with closing(_consumer(bootstrap)) as consumer:
        found = consumer.list_topics("cq.results").topics["cq.results"].partitions
        places = [TopicPartition("cq.results", partition) for partition in found]
        return [
            TopicPartition(place.topic, place.partition, consumer.get_watermark_offsets(place)[1]) for place in places
        ]


def _waits(bootstrap: str, places: list[TopicPartition], counts_from: float, count: int) -> list[float]:
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
                if message.error() is None and value is not None and (told := decode(value)).sent >= counts_from:
                    waits.append(message.timestamp()[1] / 1000 - told.sent)
    return waits


def _consumer(bootstrap: str) -> Consumer:
    return Consumer({"bootstrap.servers": bootstrap, "group.id": "bench"})
