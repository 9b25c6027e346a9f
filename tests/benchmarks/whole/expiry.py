"""Very many CQs with a common EXPIRE, in the whole product while events flow: duration and cost."""

from __future__ import annotations

import argparse
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import psutil
from confluent_kafka import Producer
from redis import Redis

from tests.benchmarks.material import quotes
from tests.benchmarks.report import Report
from tests.benchmarks.whole.product import Product, open_product

__all__ = ["add_options", "main"]

_BEFORE_SECONDS = 15.0
_LONGEST_SECONDS = 300.0
_BURST_SECONDS = 0.02


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the sizes."""
    parser.add_argument("--expiring", type=int, default=50_000, help="CQs with one EXPIRE")
    parser.add_argument("--expiry-rate", type=int, default=20_000, help="events per second meanwhile")
    parser.add_argument("--expiry-creates", type=int, default=4_000, help="CQs that are surely created in a second")


def main(options: argparse.Namespace, folder: Path) -> None:
    """Measure and report."""
    report = Report(options.command)
    count = options.expiring
    with open_product(results_dedicated_limit=0) as product, product.client("bench") as client:
        client.create_stream("quotes", {"symbol": "STRING", "price": "DOUBLE", "volume": "BIGINT"}, partitions=2)
        select = "SELECT symbol, price FROM quotes WHERE symbol = '{}' AND price < {}"
        with product.client("lasting") as lasting:
            lasting.create_many((f"q{n}", select.format(quotes.symbol(n), 100.0)) for n in range(quotes.SYMBOLS))
        expire = time.time() + _BEFORE_SECONDS + 20 + count / options.expiry_creates
        clause = f" EXPIRE '{datetime.fromtimestamp(expire, UTC).isoformat(timespec='milliseconds')}'"
        client.create_many(
            ((f"c{n}", select.format(quotes.symbol(n % quotes.SYMBOLS), -n - 1) + clause) for n in range(count)),
            timeout=_LONGEST_SECONDS,
        )
        if time.time() > expire - _BEFORE_SECONDS:
            raise RuntimeError("the CQs expire before all are there: give fewer --expiry-creates")
        redis = Redis.from_url(product.redis_url)
        with _flow(product.bootstrap, options.expiry_rate):
            time.sleep(max(0.0, expire - _BEFORE_SECONDS - time.time()))
            before = _Span(product, redis)
            time.sleep(max(0.0, expire - time.time()))
            before.end()
            meanwhile = _Span(product, redis)
            _gone(redis)
            meanwhile.end()
    report.add(f"{count:,} CQs with one EXPIRE, gone in", meanwhile.seconds, "s", "< 60")
    report.add("events evaluated before", before.rate, "events/s")
    report.add("events evaluated meanwhile ÷ before", meanwhile.rate / before.rate, "", ">= 0.9")
    for role, spent in meanwhile.cpu.items():
        flow = before.cpu[role] / before.seconds * meanwhile.seconds
        report.add(f"CPU of {role}, beyond what the flow takes", (spent - flow) / count * 1e6, "µs/CQ")
    report.write(folder)


class _Span:
    """The work done and the CPU spent from its creation to its end."""

    def __init__(self, product: Product, redis: Redis) -> None:
        self._product = product
        self._redis = redis
        self._begun, self._offsets, self._spent = time.monotonic(), _offsets(redis), _cpu(product)

    def end(self) -> None:
        """Look at the clock."""
        self.seconds = time.monotonic() - self._begun
        self.rate = (_offsets(self._redis) - self._offsets) / self.seconds
        self.cpu = {role: spent - self._spent[role] for role, spent in _cpu(self._product).items()}


def _gone(redis: Redis) -> None:
    """Return when the CQs are gone, and the ends of their destinations written."""
    deadline = time.monotonic() + _LONGEST_SECONDS
    while redis.hlen("cq:cqs:bench") or redis.hlen("cq:ends"):
        if time.monotonic() > deadline:
            raise RuntimeError(f"{redis.hlen('cq:cqs:bench')} CQs are still there")
        time.sleep(0.1)


def _offsets(redis: Redis) -> int:
    """Return how many events are evaluated."""
    bodies = [redis.get(name) for name in redis.scan_iter("cq:committed:*")]
    return sum(sum(map(int, json.loads(body)["offsets"].values())) for body in bodies if body)


def _cpu(product: Product) -> dict[str, float]:
    """Return the CPU seconds of each role so far."""
    spent = {}
    for role in ("gateway", "evaluator", "kafka", "redis"):
        parent = psutil.Process(product.pids[role])
        times = [each.cpu_times() for each in (parent, *parent.children(recursive=True))]
        spent[role] = sum(each.user + each.system for each in times)
    return spent


@contextmanager
def _flow(bootstrap: str, rate: int) -> Iterator[None]:
    """Publish events that each meet one lasting CQ, at a steady rate, while the block runs."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 10, "compression.type": "lz4"})
    bodies = [f'{{"symbol":"{quotes.symbol(n)}","price":50.0,"volume":{n}}}' for n in range(quotes.SYMBOLS)]
    stop = threading.Event()

    def publish() -> None:
        sent, begun = 0, time.monotonic()
        while not stop.wait(_BURST_SECONDS):
            due = int((time.monotonic() - begun) * rate)
            for number in range(sent, due):
                producer.produce(quotes.TOPIC, bodies[number % len(bodies)], partition=number % quotes.PARTITIONS)
            producer.poll(0)
            sent = due

    feeder = threading.Thread(target=publish)
    feeder.start()
    try:
        yield
    finally:
        stop.set()
        feeder.join()
        producer.flush()
