"""A CQ `EMIT ON SILENCE '10 seconds' BY device`: very many keys silent at one moment, and keys that go silent steadily.

In the first part all keys have one event with the same time. An event for each partition then moves the watermark past
the end of the interval, and the figure is the time from these events to the last result. In the second part each event
of a steady rate is of a new key. A result is late by its record time less the time at which it is due: the interval and
the delay of the watermark after the event.
"""

from __future__ import annotations

import argparse
import json
import time
from datetime import datetime
from pathlib import Path

import numpy as np
from confluent_kafka import Consumer, Producer, TopicPartition
from redis import Redis

from gateway.sdk import Client
from grouping.settings.settings import Settings
from tests.benchmarks.material import quotes
from tests.benchmarks.report import Report
from tests.benchmarks.whole.product import Product, open_product
from tests.kafka_client import wait_until

__all__ = ["add_options", "main"]

_INTERVAL_SECONDS = 10
_DELAY_SECONDS = Settings().evaluator.watermark_delay_seconds
_LONGEST_SECONDS = 300.0
_LOOK_SECONDS = 0.05
_BURST = 5


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the sizes."""
    parser.add_argument("--silent-keys", type=int, default=100_000, help="keys silent at one moment")
    parser.add_argument("--silent-rate", type=int, default=500, help="keys a second that go silent steadily")
    parser.add_argument("--silent-seconds", type=float, default=20.0, help="how long the keys that count go silent")


def main(options: argparse.Namespace, folder: Path) -> None:
    """Measure and report."""
    report, keys = Report(options.command), options.silent_keys
    with open_product() as product, product.client("bench") as client:
        _at_once(product, client, "warm", keys // 10)
        taken = _at_once(product, client, "many", keys)
        late = _lateness(product, client, options.silent_rate, options.silent_seconds)
    report.add(f"{keys:,} keys silent at one moment, all told in", taken, "s", "<= 10")
    for percent, target in ((50, ""), (99, "<= 1")):
        report.add(f"lateness, p{percent}", float(np.percentile(late, percent)), "s", target)
    report.write(folder)


def _at_once(product: Product, client: Client, name: str, keys: int) -> float:
    """Return the seconds until all keys are told."""
    stream_id, results = _silences(product, client, name)
    silent_ms = int(time.time() * 1000)
    events = ((f"d{number}", _event(number)) for number in range(keys))
    quotes.send(product.bootstrap, name, events, [silent_ms] * keys)
    _evaluated(Redis.from_url(product.redis_url), stream_id, keys)
    past_ms = silent_ms + round((_INTERVAL_SECONDS + _DELAY_SECONDS) * 1000) + 1
    began = time.monotonic()
    quotes.send(product.bootstrap, name, [("end", _event(-1))] * quotes.PARTITIONS, [past_ms] * quotes.PARTITIONS)
    results.wait(keys)
    taken = time.monotonic() - began
    results.close()
    return taken


def _lateness(product: Product, client: Client, rate: int, seconds: float) -> list[float]:
    """Return how late each result is, in seconds."""
    _, results = _silences(product, client, "steady")
    producer = Producer({"bootstrap.servers": product.bootstrap, "linger.ms": 0})
    count, begun = int(rate * seconds), time.monotonic()
    for number in range(int(rate * (seconds + _INTERVAL_SECONDS + 2 * _DELAY_SECONDS))):
        producer.produce("steady", _event(number), partition=number % quotes.PARTITIONS)
        if number % _BURST == 0:
            producer.poll(0)
            time.sleep(max(0.0, begun + number / rate - time.monotonic()))
    producer.flush()
    results.wait(count)
    late = results.late(count)
    results.close()
    return late


def _silences(product: Product, client: Client, name: str) -> tuple[str, _Results]:
    """Create a stream and a CQ for its silences; return the id of the stream, and the results."""
    columns = "device STRING, n BIGINT, PARTITION KEY (device)"
    options = f"topic = '{name}', format = 'json', partitions = {quotes.PARTITIONS}"
    created = client.execute(f"CREATE STREAM {name} ({columns}) WITH ({options})").result
    assert created is not None, "a stream is described"
    select = f"SELECT device, n FROM {name} EMIT ON SILENCE '{_INTERVAL_SECONDS} seconds' BY device"
    topic = client.create(f"silences_{name}", select).destination.topic
    return created["id"], _Results(product.bootstrap, topic)


def _evaluated(redis: Redis, stream_id: str, events: int) -> None:
    """Return when that many events are evaluated."""

    def are_evaluated() -> bool:
        committed = json.loads(redis.get(f"cq:committed:{stream_id}") or '{"offsets": {}}')
        return sum(committed["offsets"].values()) >= events

    wait_until(lambda: are_evaluated() or time.sleep(_LOOK_SECONDS), "evaluation of all events", _LONGEST_SECONDS)


def _event(number: int) -> str:
    return f'{{"device": "d{number}", "n": {number}}}'


class _Results:
    """The results of a CQ, in the only partition of their topic."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False})
        self._place = TopicPartition(topic, 0, 0)

    def close(self) -> None:
        """End the connection."""
        self._consumer.close()

    def wait(self, count: int) -> None:
        """Return when there are that many results."""

        def have_come() -> bool:
            return self._consumer.get_watermark_offsets(self._place)[1] >= count

        wait_until(lambda: have_come() or time.sleep(_LOOK_SECONDS), f"{count} results", _LONGEST_SECONDS)

    def late(self, count: int) -> list[float]:
        """Return by how many seconds the first results were late."""
        self._consumer.assign([self._place])
        found: list[float] = []
        while len(found) < count:
            for message in self._consumer.consume(1000, 1.0):
                if message.error() is None:
                    time_header = dict(message.headers() or [])["ce_time"]
                    due = datetime.fromisoformat(bytes(time_header).decode()).timestamp() + _DELAY_SECONDS
                    found.append(message.timestamp()[1] / 1000 - due)
        return found[:count]
