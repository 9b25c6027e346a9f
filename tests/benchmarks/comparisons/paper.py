"""NiagaraCQ's experiments again: grouped evaluation against each query alone, Figures 5.3 to 5.6 and 5.8.

Grouped is a worker's work for a batch. Alone is the same decoded batch given to a loop over a compiled predicate for
each query, and, for small numbers, a Spark query for each (`paper_spark`). Times are of the CPU, medians.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from grouping.settings.settings import Settings
from spark_jobs.engine.decode.decode import decode
from spark_jobs.engine.match.evaluate import matches
from spark_jobs.engine.match.residual import evaluate_expression
from spark_jobs.engine.results.split import split
from tests.benchmarks import curves
from tests.benchmarks.comparisons import paper_spark
from tests.benchmarks.comparisons.alone import compiled, run_alone
from tests.benchmarks.comparisons.paper_queries import (
    CHANGED,
    FIRED,
    Setting,
    delta_values,
    mixed,
    selections,
    stream,
    thresholds,
)
from tests.benchmarks.material.market import as_source
from tests.benchmarks.material.tables import Contents
from tests.benchmarks.parts.in_process import Worker
from tests.benchmarks.report import Report

__all__ = ["add_options", "main"]

_REPEATS = 9
_FEWEST_REPEATS = 3
_SECONDS = 1.0
"""Spent on one point: slow ones are repeated less."""


@dataclass(frozen=True, slots=True)
class Point:
    """The measurements at a place of a figure; times in ms of CPU for one batch."""

    x: int
    delivered: int
    grouped: float
    alone: float
    output: float
    """Making the records, the same for both."""

    @property
    def ratio(self) -> float:
        """Matching grouped ÷ alone."""
        return self.grouped / self.alone


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of the paper: its variable, and the queries and the delta at each place."""

    name: str
    title: str
    axis: str
    at: Callable[[int], tuple[list[Setting], int]]
    """Gives the queries and how many tuples changed."""
    xs: Sequence[int]
    target: str = ""
    """Target of grouped ÷ alone at the last place."""


def _figures(most: int) -> list[Figure]:
    counts = [count for count in (1_000, 2_000, 4_000, 6_000, 8_000, 10_000) if count <= most]
    half = [count // 2 for count in counts]
    return [
        Figure("5.3 case 1", "symbol = ?, all fire", "N", lambda n: ([selections(n)], CHANGED), counts, "<= 0.2"),
        Figure(
            "5.3 case 2", "symbol = ?, 100 fire", "N", lambda n: ([selections(n, fired=FIRED)], CHANGED), counts,
            "<= 0.02",
        ),
        Figure(
            "5.4", "symbol = ?, N = 2,000", "C", lambda c: ([selections(2_000, among=100)], c),
            (100, 500, 1_000, 1_500, 2_000),
        ),
        Figure("5.5", "change_ratio > ?", "N", lambda n: ([thresholds(n)], CHANGED), counts, "<= 0.3"),
        Figure("5.5 uniform", "change_ratio > ?, half match", "N",
               lambda n: ([thresholds(n, uniform=True)], CHANGED), counts[:3]),
        Figure("5.6", "symbol = ? AND price < ?", "N", lambda n: ([mixed(n)], CHANGED), counts, "<= 0.2"),
        Figure("5.8", "half of each type", "N",
               lambda n: ([selections(n // 2), mixed(n // 2)], CHANGED), [2 * n for n in half], "<= 0.3"),
    ]  # fmt: skip


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the sizes."""
    parser.add_argument(
        "--paper-queries", type=int, default=10_000, help="the largest N of the figures, at most 10,000"
    )
    parser.add_argument("--paper-spark", type=int, nargs="*", default=[1, 4, 16], help="Spark queries side by side")


def main(options: argparse.Namespace, folder: Path) -> None:
    """Measure and report."""
    report = Report(options.command)
    drawn = []
    for figure in _figures(options.paper_queries):
        points = [_measure(*figure.at(x), x) for x in figure.xs]
        drawn.append(curves.Panel(f"Figure {figure.name}: {figure.title}", figure.axis, [
            curves.Curve("each alone", [point.x for point in points], [point.alone for point in points]),
            curves.Curve("grouped", [point.x for point in points], [point.grouped for point in points]),
        ], "CPU ms a delta"))  # fmt: skip
        _report(report, figure, points)
    if options.paper_spark:
        drawn.append(paper_spark.measure(report, options.paper_spark))
    report.write(folder)
    curves.draw(drawn, folder / "paper.png")


def _measure(settings: list[Setting], changed: int, x: int) -> Point:
    contents = Contents(stream())
    for setting in settings:
        contents.add_each(setting.texts())
    worker = Worker(contents)
    events, _ = decode(as_source(delta_values(changed)), contents.stream, Settings())
    for name in ("symbol", "current_price", "change_ratio"):
        events.column(name)
    predicates = compiled(settings)
    delivered = run_alone(predicates, events)
    found = list(matches(worker.snapshot, events))
    assert sum(part.event.size for part in found) == delivered, "both sides find the same"
    return Point(
        x,
        delivered,
        _millis(lambda: list(matches(worker.snapshot, events))),
        _millis(lambda: run_alone(predicates, events)),
        _millis(lambda: [list(split(events, part, stream(), Settings(), evaluate_expression)) for part in found]),
    )


def _millis(step: Callable[[], object]) -> float:
    """Return the CPU time of a step in ms: the median of several, after one that does not count."""
    step()
    times: list[float] = []
    while len(times) < _FEWEST_REPEATS or (len(times) < _REPEATS and sum(times) < _SECONDS):
        began = time.process_time()
        step()
        times.append(time.process_time() - began)
    return statistics.median(times) * 1000


def _report(report: Report, figure: Figure, points: list[Point]) -> None:
    name = f"Figure {figure.name}"
    for point in points:
        at = f"{name}, {figure.axis} = {point.x:,}"
        report.add(f"{at}: grouped", point.grouped, "ms")
        report.add(f"{at}: alone", point.alone, "ms")
        report.add(f"{at}: writing {point.delivered:,} results", point.output, "ms")
    last = points[-1]
    report.add(f"{name}: grouped ÷ alone at {figure.axis} = {last.x:,}", last.ratio, "", figure.target)
    with_output = (last.grouped + last.output) / (last.alone + last.output)
    report.add(f"{name}: the same with writing", with_output)
    growth = points[-1].grouped / points[0].grouped
    target = {"5.3 case 2": "<= 1.1", "5.4": "<= 1.2"}.get(figure.name, "")
    report.add(f"{name}: grouped at {last.x:,} ÷ at {points[0].x:,}", growth, "", target)
