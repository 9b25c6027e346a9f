"""A costly stream beside quiet streams, streams without events, and a stream of many partitions at full rate."""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Thread

import numpy as np
import psutil
from confluent_kafka import Producer

from gateway.sdk import Client
from tests.benchmarks.report import Report
from tests.benchmarks.whole.product import Product, open_product
from tests.benchmarks.whole.timed_events import result_ends, result_waits, send
from tests.kafka_client import wait_until

__all__ = ["add_options", "main"]

_COLUMNS = 50
"""Columns of the stream with many signatures: each signature takes three of them."""
_SIGNATURE_RATE = 50.0
_QUIET_SECONDS = 60.0


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the sizes."""
    parser.add_argument("--idle", type=int, default=1000, help="streams without events")
    parser.add_argument("--quiet", type=int, default=200, help="streams of an event a second beside a busy stream")
    parser.add_argument("--busy-events", type=int, default=1_000_000, help="events of a stream at full rate")
    parser.add_argument("--signatures", type=int, default=5_000, help="signatures of a stream beside 20 streams")


def main(options: argparse.Namespace, folder: Path) -> None:
    """Measure and report."""
    report = Report(options.command)
    _idle(options.idle, report)
    _partitions(options.busy_events, report)
    _busy(options.busy_events, options.quiet, report)
    _signatures(options.signatures, report)
    report.write(folder)


def _idle(count: int, report: Report) -> None:
    """Measure what streams without events cost, above one stream."""
    with open_product(results_dedicated_limit=0, limits_streams_per_subscriber=count + 1) as product:
        with product.client("bench") as client:
            _create_quiet(client, ["quiet0"])
            _, bytes_of_one = _cost(product, 5.0)
            _create_quiet(client, [f"quiet{number}" for number in range(1, count)])
        cores, bytes_of_all = _cost(product, _QUIET_SECONDS)
    report.add(f"{count} streams without events: CPU of all but Kafka", cores, "cores", "<= 0.1")
    report.add(
        f"{count} streams without events: memory above one's", (bytes_of_all - bytes_of_one) / 1e6, "MB", "<= 500"
    )


def _cost(product: Product, seconds: float) -> tuple[float, int]:
    """Return the cores in use, and the resident bytes, of all processes but Kafka, over some seconds of rest."""
    time.sleep(10)  # the last streams have their places
    roles = [psutil.Process(pid) for name, pid in product.pids.items() if name != "kafka"]
    processes = [each for role in roles for each in (role, *role.children(recursive=True))]
    kafka = product.pids.get("kafka")
    unique = {each.pid: each for each in processes if each.pid != kafka}.values()
    before = sum(sum(each.cpu_times()[:2]) for each in unique)
    time.sleep(seconds)
    spent = sum(sum(each.cpu_times()[:2]) for each in unique) - before
    return spent / seconds, sum(each.memory_info().rss for each in unique)


def _partitions(events: int, report: Report) -> None:
    """Measure a stream of 64 partitions at full rate beside one of two, in turns."""
    seconds: dict[int, list[float]] = {2: [], 64: []}
    with open_product(results_dedicated_limit=0) as product, product.client("bench") as client:
        for partitions in seconds:
            client.create_stream(f"of_{partitions}", {"sent": "DOUBLE"}, partitions=partitions)
            client.create(f"q_{partitions}", f"SELECT sent FROM of_{partitions} WHERE sent < 0")
        for _, partitions in itertools.product(range(3), seconds):
            seconds[partitions].append(_caught_up(product, client, f"of_{partitions}", events))
    ratio = float(np.median(seconds[2]) / np.median(seconds[64]))
    report.add("one stream of 64 partitions at full rate ÷ of 2", ratio, "", ">= 0.9")


def _busy(events: int, quiet: int, report: Report) -> None:
    """Measure a stream at full rate alone and beside quiet streams, and how late the quiet streams are."""
    with open_product(results_dedicated_limit=0) as product, product.client("bench") as client:
        client.create_stream("busy", {"sent": "DOUBLE"}, partitions=2)
        client.create("q_busy", "SELECT sent FROM busy WHERE sent < 0")
        alone = min(_caught_up(product, client, "busy", events) for _ in range(2))
        names = [f"quiet{number}" for number in range(quiet)]
        _create_quiet(client, names)
        load = _Load(product, names, 1.0, 90.0)
        time.sleep(30)  # the quiet streams have their places
        beside = _caught_up(product, client, "busy", events)
        waits = load.waits()
    report.add(f"a stream at full rate, beside {quiet} streams ÷ alone", alone / beside, "", ">= 0.85")
    report.add(f"p99 of {quiet} streams beside it", float(np.percentile(waits, 99)), "s", "<= 1")


def _signatures(count: int, report: Report) -> None:
    """Measure how late 20 streams are beside a stream of many signatures, and while its CQs are dropped."""
    columns = [f"c{number}" for number in range(_COLUMNS)]
    triples = itertools.islice(itertools.combinations(columns, 3), count)
    queries = [
        (f"s_{number}", f"SELECT sent FROM wide WHERE {a} = 1 AND {b} = 2 AND {c} = {number}")
        for number, (a, b, c) in enumerate(triples)
    ]
    with open_product(results_dedicated_limit=0) as product, product.client("bench") as client:
        client.create_stream("wide", {"sent": "DOUBLE", **dict.fromkeys(columns, "BIGINT")}, partitions=2)
        names = [f"quiet{number}" for number in range(20)]
        _create_quiet(client, names)
        client.create_many(queries, timeout=600)
        events = Thread(target=send, args=(product.bootstrap, ["wide"], 150.0, _SIGNATURE_RATE, 2), daemon=True)
        events.start()
        time.sleep(20)
        beside = _Load(product, names, 1.0, 40.0).waits()
        load = _Load(product, names, 1.0, 40.0)
        client.create_many([f"DROP CQ {name}" for name, _ in queries], timeout=600)
        dropping = load.waits()
    report.add(f"p99 of 20 streams beside {count} signatures", float(np.percentile(beside, 99)), "s", "<= 1")
    report.add("p99 of them while the signatures are dropped", float(np.percentile(dropping, 99)), "s", "<= 2")


class _Load:
    """Events of quiet streams, published by a thread."""

    def __init__(self, product: Product, names: Sequence[str], rate: float, seconds: float) -> None:
        """Begin to publish."""
        self._product = product
        self._ends = result_ends(product.bootstrap)
        self._begun = time.time()
        self._sent: list[float] = []
        self._thread = Thread(target=self._publish, args=(names, rate, seconds), daemon=True)
        self._thread.start()

    def _publish(self, names: Sequence[str], rate: float, seconds: float) -> None:
        self._sent = send(self._product.bootstrap, names, seconds, rate, 1)

    def waits(self) -> list[float]:
        """Return how long the results took, by result, once all events are published."""
        self._thread.join()
        return result_waits(self._product.bootstrap, self._ends, self._begun, len(self._sent))


def _create_quiet(client: Client, names: Sequence[str]) -> None:
    """Create streams with one CQ each, which every event meets."""
    options = "WITH (topic = '{0}', format = 'json', partitions = 1)"
    client.create_many([f"CREATE STREAM {name} (sent DOUBLE) {options.format(name)}" for name in names], timeout=600)
    client.create_many([(f"q_{name}", f"SELECT sent FROM {name}") for name in names], timeout=600)


def _caught_up(product: Product, client: Client, stream: str, events: int) -> float:
    """Publish events as fast as Kafka takes them, and return after how many seconds all are evaluated."""
    producer = Producer(
        {"bootstrap.servers": product.bootstrap, "linger.ms": 50, "queue.buffering.max.messages": events}
    )
    partitions = len(producer.list_topics(stream, timeout=30).topics[stream].partitions)
    body = b'{"sent": 1.0}'
    begun = time.monotonic()
    for number in range(events):
        producer.produce(stream, body, partition=number // 1000 % partitions)
        if number % 1000 == 0:
            producer.poll(0)
    producer.flush()
    wait_until(lambda: client.describe_stream(stream)["behind"] == 0, "all events are evaluated", 600)
    return time.monotonic() - begun
