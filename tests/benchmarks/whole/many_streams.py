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
import psutil
from confluent_kafka import Consumer, Producer, TopicPartition

from gateway.sdk import Client
from tests.benchmarks.report import Report
from tests.benchmarks.whole.product import Product, open_product

__all__ = ["add_options", "main"]

_END_SECONDS = 60.0


class _Result(msgspec.Struct):
    """The part of a result that tells when its event was published, epoch seconds."""

    sent: float


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the sizes."""
    parser.add_argument("--streams", type=int, nargs="+", default=[10, 20, 60], help="how many streams, in turns")
    parser.add_argument("--stream-rate", type=float, default=1.0, help="events a second of each stream")
    parser.add_argument("--stream-partitions", type=int, default=1, help="source partitions of each stream")
    parser.add_argument("--streams-faults", action="store_true", help="a new stream, and the evaluator killed, too")
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
            plain = (rate, partitions) == (1.0, 1)
            kind = f"{count} streams" if plain else f"{count} streams of {partitions} partitions, {rate:g} events/s"
            for percent in (50, 99):
                report.add(f"p{percent} of {kind}", float(np.percentile(waits, percent)), "s")
        if options.streams_faults:
            _with_faults(product, client, names, report)
        client.close()
    report.write(folder)


def _with_faults(product: Product, client: Client, names: list[str], report: Report) -> None:
    """Measure how soon a new stream gives results, and how soon all streams do after the evaluator's death."""
    told = f"beside {len(names)} streams"
    client.create_stream("newcomer", {"sent": "DOUBLE"}, partitions=1)
    begun = time.time()
    client.create("q_newcomer", "SELECT sent FROM newcomer")
    ends = _ends(product.bootstrap)
    sent = _send(product.bootstrap, ["newcomer"], 0.1, 1.0, 1)
    waits = _waits(product.bootstrap, ends, begun, 1)
    report.add(f"CREATE STREAM to first result, {told}", sent[0] + waits[0] - begun, "s", "<= 2")
    client.create_many([(f"q_{each}", f"SELECT sent FROM {each}") for each in names], timeout=600)
    ends = _ends(product.bootstrap)
    begun = time.time()
    psutil.Process(product.pids["evaluator"]).kill()
    sent = _send(product.bootstrap, names, 1.0, 1.0, 1)
    waits = _waits(product.bootstrap, ends, begun, len(names))
    report.add(f"evaluator killed: all match again, {told}", max(waits) + max(sent) - begun, "s", "<= 15")


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
