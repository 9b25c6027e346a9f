"""How long `cq up` takes on a data folder with many CQs, and with Redis lost meanwhile; and what it takes of memory."""

from __future__ import annotations

import argparse
import shutil
import time
from pathlib import Path

import psutil
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.benchmarks import quotes
from tests.benchmarks.product import Product, open_product
from tests.benchmarks.report import Report

__all__ = ["add_options", "main"]

_RESULT_SECONDS = 120.0


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the sizes."""
    parser.add_argument("--kept", type=int, default=100_000, help="CQs in the data folder")


def main(options: argparse.Namespace, folder: Path) -> None:
    """Measure and report."""
    report = Report("start")
    with open_product(results_dedicated_limit=0) as product:
        with product.client("bench") as client:
            client.create_stream(quotes.TOPIC, quotes.COLUMNS, partitions=quotes.PARTITIONS)
            client.create_all(quotes.queries("q", options.kept), timeout=600)
        for what, lost in (("with its data", False), ("with Redis lost", True)):
            product.stop()
            if lost:
                shutil.rmtree(product.data / "redis")
            started = time.monotonic()
            product.start()
            report.add(f"cq up {what}", time.monotonic() - started, "s", "<= 60" if not lost else "")
            report.add("first result after that", _first_result(product), "s")
            for role, memory in _peaks(product).items():
                report.add(f"{role}, most memory", memory / 1e6, "MB")
    report.write(folder, vars(options))


def _first_result(product: Product) -> float:
    """Return the seconds from publishing an event that one CQ matches to its result."""
    consumer = Consumer({"bootstrap.servers": product.bootstrap, "group.id": "bench", "auto.offset.reset": "latest"})
    places = [
        TopicPartition("cq.results", number, consumer.get_watermark_offsets(TopicPartition("cq.results", number))[1])
        for number in consumer.list_topics("cq.results").topics["cq.results"].partitions
    ]
    consumer.assign(places)
    producer = Producer({"bootstrap.servers": product.bootstrap})
    started = time.monotonic()
    producer.produce(quotes.TOPIC, f'{{"symbol": "{quotes.symbol(0)}", "price": 0.0}}', partition=0)
    producer.flush()
    found = consumer.poll(_RESULT_SECONDS)
    consumer.close()
    if found is None or found.error() is not None:
        raise RuntimeError("no result came")
    return time.monotonic() - started


def _peaks(product: Product) -> dict[str, int]:
    """Return the most memory that processes have taken, in bytes: resident, what they share counted in each."""
    roles = {name: psutil.Process(product.pids[name]) for name in ("gateway", "redis", "evaluator")}
    peaks = {name: _peak(process) for name, process in roles.items()}
    return peaks | {"a worker": max(map(_peak, product.workers()), default=0)}


def _peak(process: psutil.Process) -> int:
    status = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
