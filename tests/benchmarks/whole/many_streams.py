"""Many quiet streams, or one of many partitions: from the time of an event to the record time of its result."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import psutil

from gateway.sdk import Client
from tests.benchmarks.report import Report
from tests.benchmarks.whole.product import Product, open_product
from tests.benchmarks.whole.timed_events import result_ends, result_waits, send

__all__ = ["add_options", "main"]


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
            ends = result_ends(product.bootstrap)
            begun = time.time()
            rate, partitions = options.stream_rate, options.stream_partitions
            sent = send(product.bootstrap, names, options.streams_seconds, rate, partitions)
            counts_from = begun + options.streams_seconds / 2
            waits = result_waits(product.bootstrap, ends, counts_from, sum(each >= counts_from for each in sent))
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
    beside = f"beside {len(names)} streams"
    client.create_stream("newcomer", {"sent": "DOUBLE"}, partitions=1)
    begun = time.time()
    client.create("q_newcomer", "SELECT sent FROM newcomer")
    ends = result_ends(product.bootstrap)
    sent = send(product.bootstrap, ["newcomer"], 0.1, 1.0, 1)
    waits = result_waits(product.bootstrap, ends, begun, 1)
    report.add(f"CREATE STREAM to first result, {beside}", sent[0] + waits[0] - begun, "s", "<= 2")
    client.create_many([(f"q_{each}", f"SELECT sent FROM {each}") for each in names], timeout=600)
    ends = result_ends(product.bootstrap)
    begun = time.time()
    psutil.Process(product.pids["evaluator"]).kill()
    sent = send(product.bootstrap, names, 1.0, 1.0, 1)
    waits = result_waits(product.bootstrap, ends, begun, len(names))
    report.add(f"evaluator killed: all match again, {beside}", max(waits) + max(sent) - begun, "s", "<= 15")
