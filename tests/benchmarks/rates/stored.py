"""Storing matches for timers: its rate beside sending them at once, and the size and place of waiting matches."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import psutil
from redis import Redis

from gateway.sdk import Client
from spark_jobs.runtime.worker.worker import Evaluation
from tests.benchmarks.material import quotes
from tests.benchmarks.material.tables import Contents, Tables
from tests.benchmarks.rates.contest import bench_session, in_turns, report_ratio, report_sides
from tests.benchmarks.rates.pipeline import Run, through
from tests.benchmarks.report import Report
from tests.benchmarks.whole.product import Product, open_product
from tests.ground import Ground, open_ground

__all__ = ["add_options", "main"]

_AT_ONCE, _STORED = "sent at once", "stored for a tick"
_EVERYTHING = "SELECT symbol, price, volume FROM quotes"
_CLASSES = 10
_ROUNDS = 3
_LONGEST_SECONDS = 600.0


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the sizes."""
    parser.add_argument("--stored-cqs", type=int, default=100_000, help="CQs whose matches are stored, or sent")
    parser.add_argument("--stored-events", type=int, default=300_000, help="events of one run, each with one match")
    parser.add_argument("--waiting-events", type=int, default=300_000, help="matches that wait, three times")


def main(options: argparse.Namespace, folder: Path) -> None:
    """Measure and report."""
    report = Report(options.command)
    with open_ground() as ground:
        runs = _rates(ground, options.stored_cqs, options.stored_events)
    report_sides(report, runs)
    report_ratio(report, runs, _STORED, _AT_ONCE, ">= 0.7")
    with open_product(results_dedicated_limit=0) as product, product.client("bench") as client:
        _waiting(product, client, options.waiting_events, report)
    report.write(folder)


def _rates(ground: Ground, cqs: int, events: int) -> dict[str, list[Run]]:
    settings = ground.settings
    ground.make_topic(quotes.TOPIC, quotes.PARTITIONS)
    partitions = settings.results.partitions
    for topic in (settings.topics.results, settings.topics.pending):
        ground.make_topic(topic, partitions, retention_bytes="50000000", segment_bytes="25000000")
    quotes.publish(settings.kafka.bootstrap, events)
    tables, sides = Tables(settings), {}
    for name, mode in ((_AT_ONCE, "shared"), (_STORED, "pending")):
        stream = quotes.stream(f"s_{mode}")
        tables.put(Contents(stream).add(quotes.SELECTION, quotes.quote_rows(cqs), mode))
        sides[name] = through(stream, Evaluation.of(stream, settings))
    with bench_session(settings) as spark:
        return dict(in_turns(spark, sides, events, _ROUNDS, settings))


def _waiting(product: Product, client: Client, events: int, report: Report) -> None:
    """Everything waits for weeks, for one timer class and then for ten: where does it lie?"""
    client.create_stream("quotes", {"symbol": "STRING", "price": "DOUBLE", "volume": "BIGINT"}, partitions=2)
    redis = Redis.from_url(product.redis_url)
    create = f"CREATE CQ every{{0}} AS {_EVERYTHING} DO PUBLISH SHARED DIGEST ALL EVERY '{{0}} weeks'"
    client.execute(create.format(4))
    quotes.publish(product.bootstrap, events)  # memory grows to the size of a busy product's
    _evaluated(redis, events)
    before = _sizes(product, redis)
    quotes.publish(product.bootstrap, events)
    _evaluated(redis, 2 * events)
    one = _sizes(product, redis)
    for weeks in range(5, 4 + _CLASSES):
        client.execute(create.format(weeks))
    quotes.publish(product.bootstrap, events)
    _evaluated(redis, 3 * events)
    ten = _sizes(product, redis)
    report.add("a match that waits: disk", (one["disk"] - before["disk"]) / events, "bytes")
    for where in ("disk", "Redis"):
        name = f"a match that waits for {_CLASSES} timer classes: {where}"
        report.add(name, (ten[where] - one[where]) / events, "bytes")
    report.add(f"{_CLASSES} classes ÷ 1", (ten["disk"] - one["disk"]) / (one["disk"] - before["disk"]), "", "1")
    for where in ("disk", "Redis", "gateway", "workers"):
        for count, sizes in enumerate((before, one, ten), 1):
            report.add(f"{where}, when {count * events:,} matches wait", sizes[where] / 1e6, "MB")


def _evaluated(redis: Redis, events: int) -> None:
    """Return when this many events are evaluated."""
    deadline = time.monotonic() + _LONGEST_SECONDS
    names = list(redis.scan_iter("cq:committed:*"))
    while not names or not sum(_offsets(redis, name) for name in names) >= events:
        if time.monotonic() > deadline:
            raise RuntimeError("the events were not evaluated")
        time.sleep(0.2)
        names = list(redis.scan_iter("cq:committed:*"))
    time.sleep(2)  # the gateway takes in the stored matches


def _offsets(redis: Redis, name: bytes) -> int:
    body = redis.get(name)
    return sum(map(int, json.loads(body)["offsets"].values())) if body else 0


def _sizes(product: Product, redis: Redis) -> dict[str, float]:
    """Return the bytes that are in use, by place."""
    log = product.data / "kafka"
    return {
        "disk": sum(path.stat().st_size for path in log.rglob("cq.pending-*/*.log")),
        "Redis": float(redis.info("memory")["used_memory"]),
        "gateway": psutil.Process(product.pids["gateway"]).memory_info().rss,
        "workers": sum(each.memory_info().rss for each in product.workers()),
    }
