"""The cost of checking a residual predicate: µs of CPU for each pair of event and row."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterable
from pathlib import Path

from grouping.access.access_path import choose_index
from tests.benchmarks.material import market
from tests.benchmarks.material.shapes import single_conjuncts
from tests.benchmarks.material.tables import Contents
from tests.benchmarks.parts.in_process import Worker
from tests.benchmarks.report import Report

__all__ = ["add_options", "main"]

_EVENTS = 1_000
_SYMBOLS = 1_000
_REPEATS = 5


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the sizes."""
    parser.add_argument("--residual-rows", type=int, default=200, help="CQs of one shape")


def main(options: argparse.Namespace, folder: Path) -> None:
    """Measure and report."""
    report = Report(options.command)
    costs = _measured(report, single_conjuncts(options.residual_rows), options.residual_rows)
    report.add("median of these", statistics.median(costs), "µs/pair")
    _measured(report, single_conjuncts(options.residual_rows, of_alerts=True), options.residual_rows)
    report.write(folder)


def _measured(report: Report, kinds: Iterable[list[str]], rows: int) -> list[float]:
    """Report the cost of each kind that no index decides, and return them."""
    batches = market.source_batches(_EVENTS, _SYMBOLS)
    costs = []
    for selects in kinds:
        worker = Worker(Contents(market.stream("s_residual", "quotes")).add_each(selects))
        [table] = worker.snapshot.tables
        if not choose_index(table.shape.plan.conjuncts).residual:
            continue
        worker.run(batches)
        spent = statistics.median(worker.run(batches).match for _ in range(_REPEATS))
        costs.append(spent * 1e6 / (_EVENTS * rows))
        report.add(table.shape.plan.signature.partition("WHERE ")[2], costs[-1], "µs/pair")
    return costs
