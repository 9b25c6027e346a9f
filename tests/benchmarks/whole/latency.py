"""From the publishing of an event to the arrival of its result, at a steady rate, through the whole product."""

from __future__ import annotations

import argparse
import json
import threading
import time
from pathlib import Path

import numpy as np
import psutil
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.benchmarks.material import quotes
from tests.benchmarks.report import Report
from tests.benchmarks.whole.product import Product, open_product

__all__ = ["add_options", "main"]

_SETTLE_SECONDS = 10.0
_BURST = 5


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the sizes."""
    parser.add_argument("--rate", type=int, default=500, help="events per second")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long")
    parser.add_argument("--live", type=int, default=2_000, help="CQs that are live meanwhile")


def main(options: argparse.Namespace, folder: Path) -> None:
    """Measure and report."""
    report = Report(options.command)
    with open_product(results_dedicated_limit=0) as product, product.client("bench") as client:
        columns = {"symbol": "STRING", "price": "DOUBLE", "sent": "DOUBLE"}
        client.create_stream("quotes", columns, partitions=quotes.PARTITIONS)
        select = "SELECT sent FROM quotes WHERE symbol = '{}' AND price < {}"
        queries = []
        for number in range(max(options.live, quotes.SYMBOLS)):
            limit = 1.0 if number < quotes.SYMBOLS else -number  # each symbol has one that is met
            queries.append((f"q{number}", select.format(quotes.symbol(number % quotes.SYMBOLS), limit)))
        client.create_many(queries, timeout=600)
        results = _Results(product.bootstrap)
        _send(product.bootstrap, options.rate, _SETTLE_SECONDS)
        results.clear()
        before = _cpu(product)
        sent = _send(product.bootstrap, options.rate, options.seconds)
        busy = _cpu(product) - before
        waits = results.wait(sent)
        results.close()
        before = _cpu(product)
        time.sleep(5)
        idle = _cpu(product) - before
    for percent, target in ((50, "<= 250"), (99, "<= 500")):
        report.add(f"p{percent} at {options.rate} events/s", float(np.percentile(waits, percent)) * 1000, "ms", target)
    report.add("CPU of gateway and evaluator meanwhile", busy / options.seconds * 100, "% of a core")
    report.add("CPU of gateway and evaluator, idle", idle / 5 * 100, "% of a core", "< 10")
    report.write(folder)


def _send(bootstrap: str, rate: int, seconds: float) -> int:
    """Publish quotes that each meet one CQ, evenly in small bursts, and return how many."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    count, due = int(rate * seconds), time.monotonic()
    for number in range(count):
        body = {"symbol": quotes.symbol(number % quotes.SYMBOLS), "price": 0.5, "sent": time.time()}
        producer.produce(quotes.TOPIC, json.dumps(body), partition=number % quotes.PARTITIONS)
        if number % _BURST == 0:
            producer.poll(0)
            due += _BURST / rate
            time.sleep(max(0.0, due - time.monotonic()))
    producer.flush()
    return count


class _Results:
    """Notes how long each result took, in a thread of its own."""

    def __init__(self, bootstrap: str) -> None:
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "auto.offset.reset": "latest"})
        found = self._consumer.list_topics("cq.results").topics["cq.results"].partitions
        self._consumer.assign([TopicPartition("cq.results", partition) for partition in found])
        self._waits: list[float] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread and its connection."""
        self._stop.set()
        self._thread.join()
        self._consumer.close()

    def _read(self) -> None:
        while not self._stop.is_set():
            for message in self._consumer.consume(500, 0.02):
                value = message.value()
                if message.error() is None and value is not None:
                    self._waits.append(time.time() - json.loads(value)["sent"])

    def clear(self) -> None:
        """Forget earlier results, once none has come for a second."""
        count = -1
        while count != len(self._waits):
            count = len(self._waits)
            time.sleep(1)
        self._waits.clear()

    def wait(self, count: int) -> list[float]:
        """Return the waits of that many results, in seconds."""
        deadline = time.monotonic() + 60
        while len(self._waits) < count:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{len(self._waits)} results came, and {count} should have")
            time.sleep(0.1)
        return self._waits[:count]


def _cpu(product: Product) -> float:
    """Return the CPU seconds of gateway and evaluator so far."""
    spent = 0.0
    for role in ("gateway", "evaluator"):
        parent = psutil.Process(product.pids[role])
        for process in (parent, *parent.children(recursive=True)):
            times = process.cpu_times()
            spent += times.user + times.system
    return spent
