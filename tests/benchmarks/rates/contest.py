"""Several sides over the same topic in one Spark application, in turns, and their ratios."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from pyspark.sql import SparkSession

from grouping.settings.settings import Settings
from spark_jobs.runtime.application.jvm import end_jvm
from spark_jobs.runtime.application.session import open_session
from tests.benchmarks.material import quotes
from tests.benchmarks.rates.pipeline import Run, Start, run
from tests.benchmarks.report import Report
from tests.ground import Ground

__all__ = ["bench_session", "in_turns", "make_outputs", "report_ratio", "report_sides", "turns"]

Runs = Mapping[str, list[Run]]


def make_outputs(ground: Ground, *others: str) -> None:
    """Make the topic of results, and further topics that a side writes to; Kafka soon deletes their records."""
    for topic in others:
        ground.make_topic(topic, quotes.PARTITIONS, retention_bytes="200000000", segment_bytes="50000000")
    results, partitions = ground.settings.topics.results, ground.settings.results.partitions
    ground.make_topic(results, partitions, retention_bytes="50000000", segment_bytes="25000000")


@contextmanager
def bench_session(settings: Settings) -> Iterator[SparkSession]:
    """Open a session whose queries keep the progress of all batches, until the end of the block."""
    spark = open_session(settings, {"spark.sql.streaming.numRecentProgressUpdates": "1000"})
    try:
        yield spark
    finally:
        end_jvm()


def in_turns(
    spark: SparkSession,
    sides: Mapping[str, Start],
    events: int,
    rounds: int,
    settings: Settings,
) -> Runs:
    """Run the sides over the same events, as `turns` does."""
    return turns({name: partial(run, spark, start, events, settings) for name, start in sides.items()}, rounds)


def turns(sides: Mapping[str, Callable[[], Run]], rounds: int) -> Runs:
    """Run the sides in turn, round after round; the first round warms up and does not count."""
    made: dict[str, list[Run]] = {name: [] for name in sides}
    for number in range(rounds + 1):
        for name, side in sides.items():
            done = side()
            print(f"round {number}  {name:<40} {done.rate:>10,.0f} events/s", flush=True)
            made[name] += [done] if number else []
    return made


def report_sides(report: Report, made: Runs) -> None:
    """Report each side's rate and CPU time, medians over the rounds."""
    for name, runs in made.items():
        report.add(name, statistics.median(one.rate for one in runs), "events/s")
    for name, runs in made.items():
        report.add(f"{name}, CPU", statistics.median(sum(one.cpu.values()) for one in runs), "µs/event")


def report_ratio(report: Report, made: Runs, mine: str, other: str, target: str = "") -> None:
    """Report how fast a side is as a part of another, by time and by CPU time: medians over the rounds."""
    pairs = list(zip(made[mine], made[other], strict=True))
    report.add(f"{mine} ÷ {other}", statistics.median(own.rate / its.rate for own, its in pairs), "", target)
    by_cpu = [sum(its.cpu.values()) / sum(own.cpu.values()) for own, its in pairs]
    report.add(f"{mine} ÷ {other}, by CPU per event", statistics.median(by_cpu))
