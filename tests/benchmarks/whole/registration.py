"""CQs per second from one client and from many at once, pipelined, each with its reply; and their bytes in Redis."""

from __future__ import annotations

import argparse
import json
import time
import uuid
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path

import psutil
from confluent_kafka import Consumer, Producer, TopicPartition
from redis import Redis

from grouping.model.wording import counted
from tests.benchmarks.material import quotes
from tests.benchmarks.report import Report
from tests.benchmarks.whole.product import open_product

__all__ = ["add_options", "main", "redis_bytes"]

_REMEMBERED = (b"cq:ids", b"cq:journal", b"cq:replies", b"cq:matches", b"cq:match-totals")
"""Keys that do not grow with the live CQs: remembered command ids and the last commit (bounded), and counts."""
_TOGETHER_SECONDS = 11.0
"""After this time without a second subscriber, the gateway takes units of work of a lone subscriber's length again."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the sizes."""
    parser.add_argument("--creates", type=int, default=30_000, help="CQs of one known shape")
    parser.add_argument("--shapes", type=int, default=1_000, help="CQs each of a shape of its own")
    parser.add_argument("--subscribers", type=int, default=100, help="subscribers who create CQs at once")


def main(options: argparse.Namespace, folder: Path) -> None:
    """Measure and report."""
    report = Report(options.command)
    with open_product(results_dedicated_limit=0) as product, product.client("bench") as client:
        client.create_stream("quotes", {"symbol": "STRING", "price": "DOUBLE", "volume": "BIGINT"}, partitions=2)
        client.create_all(quotes.queries("warm", 2_000), timeout=600)
        redis = Redis.from_url(product.redis_url)
        before = redis_bytes(redis)
        started = time.monotonic()
        client.create_all(quotes.queries("known", options.creates), timeout=600)
        report.add("known shape", options.creates / (time.monotonic() - started), "CQs/s", "20000")
        report.add("Redis, all keys of a CQ", (redis_bytes(redis) - before) / options.creates, "bytes/CQ", "<= 300")
        gateway = psutil.Process(product.pids["gateway"])
        for subscribers, goal in ((1, ""), (options.subscribers, ">= 10000")):
            spent = sum(gateway.cpu_times()[:2])
            rate = side_by_side(product.bootstrap, subscribers, options.creates)
            micros = (sum(gateway.cpu_times()[:2]) - spent) / options.creates * 1e6
            name = f"known shape, {counted(subscribers, 'subscriber')} at once"
            report.add(name, rate, "CQs/s", goal)
            report.add(f"{name}, gateway's CPU time", micros, "µs/CQ")
        time.sleep(_TOGETHER_SECONDS)
        started = time.monotonic()
        client.create_all(_new(options.shapes), timeout=600)
        report.add("new shape each time", options.shapes / (time.monotonic() - started), "CQs/s", "500")
    report.write(folder)


def side_by_side(bootstrap: str, subscribers: int, creates: int) -> float:
    """Return the CQs a second, from the first command to the last reply, of new subscribers who send all at once.

    A process of its own encodes the commands before, and awaits the replies: no client's part is in the time.
    """
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(_create_side_by_side, (bootstrap, subscribers, creates))


def _create_side_by_side(bootstrap: str, subscribers: int, creates: int) -> float:
    run = uuid.uuid4().hex[:8]
    commands = []
    for number, (cq, select) in enumerate(quotes.queries("side", creates)):
        name = f"{run}-{number % subscribers}"
        value = {"command_id": uuid.uuid4().hex, "subscriber": name, "text": f"CREATE CQ {cq} AS {select}"}
        commands.append((json.dumps(value).encode(), name.encode()))
    producer = Producer({"bootstrap.servers": bootstrap, "partitioner": "murmur2_random", "linger.ms": 5})
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": run, "isolation.level": "read_committed"})
    partitions = producer.list_topics("cq.replies").topics["cq.replies"].partitions
    places = [TopicPartition("cq.replies", partition) for partition in partitions]
    for place in places:
        place.offset = consumer.get_watermark_offsets(place)[1]
    consumer.assign(places)
    started, accepted = time.monotonic(), 0
    for value, name in commands:
        producer.produce("cq.commands", value, name)
    while accepted < creates:
        producer.poll(0)
        values = [message.value() or b"" for message in consumer.consume(5_000, 0.05) if message.error() is None]
        assert all(b'"code":"ok"' in value for value in values), values
        accepted += len(values)
    took = time.monotonic() - started
    consumer.close()
    return creates / took


def _new(count: int) -> Iterator[tuple[str, str]]:
    """Yield queries with different signatures: each has different conjuncts, by the bits of its number."""
    columns = ("price > {}", "price < {}", "volume > {}", "volume < {}", "price <> {}", "volume <> {}")
    for number in range(count):
        digits = f"{number:b}"
        terms = [
            columns[(place * 2 + (digit == "1")) % len(columns)].format(place) for place, digit in enumerate(digits)
        ]
        yield f"new{number}", f"SELECT symbol FROM quotes WHERE symbol = 'A' AND {' AND '.join(terms)}"


def redis_bytes(redis: Redis) -> int:
    """Return the memory of all keys but keys that do not grow with live CQs."""
    names = [name for name in redis.scan_iter(count=1000) if not name.startswith(_REMEMBERED)]
    return sum(int(redis.memory_usage(name, samples=0) or 0) for name in names)
