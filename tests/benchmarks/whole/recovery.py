"""The time until commands are answered and events matched again, after kills of roles and a loss of Redis."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from gateway.local.role import STEADY
from gateway.sdk import Client
from tests.benchmarks.material import quotes
from tests.benchmarks.report import Report
from tests.benchmarks.whole.arrivals import Arrivals
from tests.benchmarks.whole.product import Product, open_product

__all__ = ["add_options", "main"]

_GOALS = {"evaluator killed": 15, "gateway killed": 3, "Redis lost": 15}
_LOOK_SECONDS = 0.1
_SETTLED_SECONDS = 5.0
"""Between two faults."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the sizes."""
    parser.add_argument("--held", type=int, default=100_000, help="CQs that are live meanwhile")
    parser.add_argument("--times", type=int, default=5, help="how often each is done")
    parser.add_argument("--broken", default=",".join(_GOALS), help="what is done")


def main(options: argparse.Namespace, folder: Path) -> None:
    """Measure and report."""
    report = Report(options.command)
    with open_product(results_dedicated_limit=0) as product, product.client("bench") as client:
        client.create_stream(quotes.TOPIC, quotes.COLUMNS, partitions=quotes.PARTITIONS)
        client.create_all(quotes.queries("q", options.held), timeout=600)
        with Arrivals(product.bootstrap) as arrivals:
            arrivals.first_result()
            took: dict[str, list[float]] = {what: [] for what in options.broken.split(",")}
            for _ in range(options.times):
                _await_ready(product, STEADY + 1)
                for what, seconds in took.items():
                    _await_ready(product, _SETTLED_SECONDS)
                    started = time.monotonic()
                    seconds.append(_BREAK[what](product, client, arrivals) - started)
    for what, seconds in took.items():
        works = "answers" if what == "gateway killed" else "matches"
        report.add(f"{what}: {works} again, median", median(seconds), "s")
        report.add(f"{what}: {works} again, at most", max(seconds), "s", f"<= {_GOALS[what]}")
    report.write(folder)


def _await_ready(product: Product, steadily: float) -> None:
    """Return when all roles have been ready for `steadily` seconds.

    After `STEADY` seconds one that dies is started again at once; the restarts of others do not count.
    """
    since, before = time.monotonic(), dict[str, int]()
    while time.monotonic() < since + steadily:
        report = json.loads((product.data / "run" / "supervisor.json").read_text())
        product.pids = {name: role["pid"] for name, role in report["roles"].items()}
        if report["state"] != "ready" or product.pids != before:
            since, before = time.monotonic(), product.pids
        time.sleep(_LOOK_SECONDS)


def _gateway(product: Product, client: Client, arrivals: Arrivals) -> float:
    os.kill(product.pids["gateway"], signal.SIGKILL)
    client.execute("SHOW CQS LIMIT 1")
    return time.monotonic()


def _evaluator(product: Product, client: Client, arrivals: Arrivals) -> float:
    os.kill(product.pids["evaluator"], signal.SIGKILL)
    return arrivals.first_result()


def _redis(product: Product, client: Client, arrivals: Arrivals) -> float:
    shutil.rmtree(product.data / "redis" / "appendonlydir")
    os.kill(product.pids["redis"], signal.SIGKILL)
    return arrivals.first_result()


_BREAK: dict[str, Callable[[Product, Client, Arrivals], float]] = {
    "gateway killed": _gateway,
    "evaluator killed": _evaluator,
    "Redis lost": _redis,
}
