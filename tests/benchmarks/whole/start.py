"""The creation of many CQs, the time of `cq up` on their data folder, also with Redis lost, and the memory."""

from __future__ import annotations

import argparse
import shutil
import time
from pathlib import Path

import psutil

from tests.benchmarks.material import quotes
from tests.benchmarks.report import Report
from tests.benchmarks.whole.arrivals import Arrivals
from tests.benchmarks.whole.product import Product, open_product

__all__ = ["add_options", "main"]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the sizes."""
    parser.add_argument("--kept", type=int, default=100_000, help="CQs in the data folder")
    parser.add_argument(
        "--lost", action=argparse.BooleanOptionalAction, default=True, help="whether Redis is lost as well"
    )


def main(options: argparse.Namespace, folder: Path) -> None:
    """Measure, and report the figures also when something fails on the way: ten million CQs take a while."""
    report = Report(options.command)
    try:
        _measure(options, report)
    finally:
        report.write(folder)


def _measure(options: argparse.Namespace, report: Report) -> None:
    with open_product(results_dedicated_limit=0, limits_cqs_per_subscriber=options.kept) as product:
        with product.client("bench") as client:
            client.create_stream(quotes.TOPIC, quotes.COLUMNS, partitions=quotes.PARTITIONS)
            started = time.monotonic()
            tally = client.create_all(quotes.queries("q", options.kept), timeout=600)
        report.add("CQs accepted", tally.accepted, "", str(options.kept))
        report.add("registration", tally.accepted / (time.monotonic() - started), "CQs/s")
        _add_memory(report, product, "when all are registered")
        for what, lost in (("with its data", False), ("with Redis lost", True)):
            if lost and not options.lost:
                break
            product.stop()
            if lost:
                shutil.rmtree(product.data / "redis")
            started = time.monotonic()
            product.start()
            report.add(f"cq up {what}", time.monotonic() - started, "s", "<= 60" if not lost else "")
            with Arrivals(product.bootstrap) as arrivals:
                started = time.monotonic()
                report.add(f"first result after cq up {what}", arrivals.first_result() - started, "s")
            _add_memory(report, product, f"after cq up {what}")


def _add_memory(report: Report, product: Product, when: str) -> None:
    """Report the most memory that each role has taken, and all of them in the meantime."""
    for role, memory in _peaks(product).items():
        report.add(f"{role}, most memory {when}", memory / 1e6, "MB")
    everything = [psutil.Process(pid) for pid in product.pids.values()]
    everything += [child for each in everything for child in each.children(recursive=True)]
    now = sum(map(_share, {each.pid: each for each in everything}.values()))
    report.add(f"all processes {when}, shared memory counted once", now / 1e6, "MB")


def _share(process: psutil.Process) -> int:
    """Return the memory of a process in bytes, its share of shared pages included; 0 where the process is gone."""
    try:
        return int(process.memory_full_info().pss)
    except psutil.NoSuchProcess:
        return 0


def _peaks(product: Product) -> dict[str, int]:
    """Return the most memory that processes have taken, in bytes: resident, with shared memory counted in each."""
    roles = {name: psutil.Process(product.pids[name]) for name in ("gateway", "redis", "evaluator")}
    peaks = {name: _peak(process) for name, process in roles.items()}
    return peaks | {"a worker": max(map(_peak, product.workers()), default=0)}


def _peak(process: psutil.Process) -> int:
    try:
        status = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0  # a worker that is gone
    return 1024 * next((int(line.split()[1]) for line in status if line.startswith("VmHWM")), 0)
