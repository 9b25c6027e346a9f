"""Rows a second of a snapshot: from the command EMIT CHANGES WITH SNAPSHOT to the time of the record ``cq.snapshot``.

All rows of the table match. A first CQ over each table makes its topic a stream, which takes some seconds and is not
counted. The snapshot of a small table shows the time that no row takes.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import psutil
from confluent_kafka import Consumer, TopicPartition

from gateway.sdk import Client
from tests.benchmarks.material import quotes
from tests.benchmarks.rates.changes import COLUMNS, table_records
from tests.benchmarks.report import Report
from tests.benchmarks.whole.product import Product, open_product
from tests.kafka_client import wait_until

__all__ = ["add_options", "main"]

_FEW_ROWS = 1_000
_LONGEST_SECONDS = 600.0
_LOOK_SECONDS = 0.5
_POLL_SECONDS = 2.0


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the size."""
    parser.add_argument("--snapshot-rows", type=int, default=1_000_000, help="rows of the table")


def main(options: argparse.Namespace, folder: Path) -> None:
    """Measure and report."""
    rows, report = options.snapshot_rows, Report(options.command)
    with open_product() as product, product.client("bench") as client:
        few, _ = _snapshot(product, client, "few", _FEW_ROWS)
        seconds, cpu = _snapshot(product, client, "many", rows)
    report.add(f"SNAPSHOT of {_FEW_ROWS:,} rows, all written in", few, "s")
    report.add("SNAPSHOT, all written in", seconds, "s")
    report.add("SNAPSHOT", rows / seconds, "rows/s", ">= 300,000")
    report.add("SNAPSHOT, CPU of the evaluator", cpu / rows * 1e6, "µs/row")
    report.write(folder)


def _snapshot(product: Product, client: Client, table: str, rows: int) -> tuple[float, float]:
    """Return the seconds from a command to the end of its snapshot, and those of the evaluator's CPU meanwhile."""
    client.create_table(table, COLUMNS, "symbol", partitions=quotes.PARTITIONS)
    quotes.send(product.bootstrap, table, table_records(range(rows)))
    seconds = cpu = 0.0
    for name, where in (("warm", "WHERE price < 1"), ("whole", "")):
        began, spent = time.time(), _cpu_seconds(product)
        select = f"SELECT symbol, industry, price FROM {table} {where} EMIT CHANGES WITH SNAPSHOT"
        created = client.create(f"{table}_{name}", select)
        seconds = _end(product.bootstrap, created.destination.topic) - began
        cpu = _cpu_seconds(product) - spent
    return seconds, cpu


def _cpu_seconds(product: Product) -> float:
    evaluator = psutil.Process(product.pids["evaluator"])
    return sum(sum(each.cpu_times()[:2]) for each in (evaluator, *evaluator.children(recursive=True)))


def _end(bootstrap: str, topic: str) -> float:
    """Return the time of the record that ends a snapshot, once it is the last record of its topic."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False})
    times: list[float] = []

    def is_last() -> bool:
        time.sleep(_LOOK_SECONDS)
        _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0))
        if end:
            consumer.assign([TopicPartition(topic, 0, end - 1)])
            found = consumer.poll(_POLL_SECONDS)
            if found is not None and ("ce_type", b"cq.snapshot") in (found.headers() or []):
                times.append(found.timestamp()[1] / 1000)
        return bool(times)

    try:
        wait_until(is_last, "the end of the snapshot", _LONGEST_SECONDS)
    finally:
        consumer.close()
    return times[0]
