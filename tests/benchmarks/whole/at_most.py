"""CQs with AT MOST: how fast the gateway copies their results, and how much later a result comes.

The first part publishes very many events at once, and takes the time until the results of the last events have come:
once with AT MOST 1 for each of 1,000 symbols, so that nearly all results are left out, and once with a limit that no
result exceeds. The second part publishes events at a steady rate for two CQs over them, with and without AT MOST.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from confluent_kafka import Consumer, TopicPartition

from gateway.sdk import Client
from gateway.sdk.results import Destination
from tests.benchmarks.material import quotes
from tests.benchmarks.report import Report
from tests.benchmarks.whole import timed_events
from tests.benchmarks.whole.product import Product, open_product

__all__ = ["add_options", "main"]

_LONGEST_SECONDS = 300.0
_LAST = "the last"
_SYMBOLS = 1_000
_RATE = 100


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the sizes."""
    parser.add_argument("--throttled-events", type=int, default=300_000, help="results that are copied or left out")
    parser.add_argument("--throttled-seconds", type=float, default=20.0, help="how long results at a steady rate come")


def main(options: argparse.Namespace, folder: Path) -> None:
    """Measure and report."""
    report, count = Report(options.command), options.throttled_events
    with open_product() as product, product.client("bench") as client:
        _rate(product, client, "warm", 1, count // 10)
        left_out = _rate(product, client, "left_out", 1, count)
        written = _rate(product, client, "written", 1_000_000_000, count)
        with_it, without = _waits(product, client, options.throttled_seconds)
    report.add("results left out by AT MOST", left_out, "/s")
    report.add("results copied with AT MOST", written, "/s")
    for percent in (50, 99):
        later = (np.percentile(with_it, percent) - np.percentile(without, percent)) * 1000
        report.add(f"results with AT MOST come later, p{percent}", float(later), "ms")
    report.write(folder)


def _rate(product: Product, client: Client, name: str, most: int, count: int) -> float:
    """Return the number of results that are decided in a second."""
    options = f"topic = '{name}', format = 'json', partitions = {quotes.PARTITIONS}"
    client.execute(f"CREATE STREAM {name} (symbol STRING, price DOUBLE, volume BIGINT) WITH ({options})")
    select = f"SELECT symbol, price, volume FROM {name} AT MOST {most} EVERY '1 day' BY symbol"
    destination = client.create(f"throttled_{name}", select).destination
    symbols = (quotes.symbol(number % _SYMBOLS) for number in range(count))
    began = time.monotonic()
    quotes.send(product.bootstrap, name, ((symbol, _event(symbol)) for symbol in symbols))
    quotes.send(product.bootstrap, name, [(_LAST, _event(_LAST))] * quotes.PARTITIONS)
    _await_last(product.bootstrap, destination, min(most, quotes.PARTITIONS))
    return count / (time.monotonic() - began)


def _event(symbol: str) -> str:
    return f'{{"symbol": "{symbol}", "price": 9.5, "volume": 100}}'


def _await_last(bootstrap: str, destination: Destination, count: int) -> None:
    """Return when that many results of the last events have come."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False})
    [(partition, offset)] = destination.begins().items()
    consumer.assign([TopicPartition(destination.topic, partition, offset)])
    deadline, left = time.monotonic() + _LONGEST_SECONDS, count
    while left > 0:
        if time.monotonic() > deadline:
            raise RuntimeError("the last results did not come")
        left -= sum(_LAST.encode() in (message.value() or b"") for message in consumer.consume(10_000, 0.05))
    consumer.close()


def _waits(product: Product, client: Client, seconds: float) -> tuple[list[float], list[float]]:
    """Return how long the results of the same events take, in seconds: with AT MOST, and without."""
    client.execute("CREATE STREAM steady (sent DOUBLE) WITH (topic = 'steady', format = 'json', partitions = 1)")
    clauses = ("AT MOST 1000000000 EVERY '1 day' BY sent", "WHERE sent > 0")
    made = [
        client.create(name, f"SELECT sent FROM steady {clause}", publish="DEDICATED").destination
        for name, clause in zip(("limited", "free"), clauses, strict=True)
    ]
    timed_events.send(product.bootstrap, ["steady"], 3, _RATE, 1)
    sent = timed_events.send(product.bootstrap, ["steady"], seconds, _RATE, 1)
    places = [TopicPartition(each.topic, 0, 0) for each in made]
    with_it, without = (timed_events.result_waits(product.bootstrap, [one], sent[0], len(sent)) for one in places)
    return with_it, without
