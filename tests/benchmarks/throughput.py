"""Events per second from Kafka to Kafka, against copies of the same topic and against few CQs.

All sides run in one Spark application over the same topic, one after the other, round after round; ratios are medians
over the rounds. The first round warms up and does not count.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path

from spark_jobs.session import kill_jvm, open_session
from spark_jobs.worker import Evaluation
from tests.benchmarks import quotes
from tests.benchmarks.copies import headers_copy, plain_copy
from tests.benchmarks.ground import Ground, open_ground
from tests.benchmarks.pipeline import Run, Side, run
from tests.benchmarks.report import Report
from tests.benchmarks.tables import Tables

__all__ = ["add_options", "main"]

FEW = 1_000
PLAIN, HEADERS = "plain copy", "copy with headers"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the sizes."""
    parser.add_argument("--cqs", type=int, default=100_000, help="CQs on the stream")
    parser.add_argument("--events", type=int, default=1_000_000, help="events of one run")
    parser.add_argument("--rounds", type=int, default=3, help="rounds that count")


def main(options: argparse.Namespace, folder: Path) -> None:
    """Measure and report."""
    with open_ground() as ground:
        runs = _measure(ground, options.cqs, options.events, options.rounds)
    report = Report("throughput")
    many, few = f"{options.cqs:,} CQs", f"{FEW:,} CQs"
    for name, made in runs.items():
        report.add(name, statistics.median(one.rate for one in made), "events/s")
    for name, made in runs.items():
        report.add(f"{name}, CPU", statistics.median(sum(one.cpu.values()) for one in made), "µs/event")
    for other, target in ((PLAIN, "0.65"), (HEADERS, "0.8"), (few, "0.9")):
        pairs = list(zip(runs[many], runs[other], strict=True))
        report.add(f"{many} ÷ {other}", statistics.median(mine.rate / its.rate for mine, its in pairs), "", target)
        by_cpu = [sum(its.cpu.values()) / sum(mine.cpu.values()) for mine, its in pairs]
        report.add(f"{many} ÷ {other}, by CPU per event", statistics.median(by_cpu))
    report.write(folder, vars(options))
    report.bars(folder, "events/s")


def _measure(ground: Ground, cqs: int, events: int, rounds: int) -> dict[str, list[Run]]:
    settings = ground.settings
    ground.make_topic(quotes.TOPIC, quotes.PARTITIONS)
    ground.make_topic("copy", quotes.PARTITIONS, retention_bytes="200000000", segment_bytes="50000000")
    results = settings.topic("results")
    ground.make_topic(results, settings.results.partitions, retention_bytes="50000000", segment_bytes="25000000")
    quotes.publish(settings.kafka.bootstrap, events)
    tables = Tables(settings)
    plain = quotes.stream("s_plain")
    sides: dict[str, tuple[quotes.Stream, Side]] = {
        PLAIN: (plain, plain_copy("copy")),
        HEADERS: (quotes.stream("s_headers"), headers_copy("copy", plain)),
    }
    for count in (FEW, cqs):
        stream = quotes.stream(f"s_{count}")
        tables.put(stream, quotes.SELECTION, quotes.quote_rows(count))
        sides[f"{count:,} CQs"] = (stream, Evaluation.of(stream, settings))
    spark = open_session(settings, {"spark.sql.streaming.numRecentProgressUpdates": "1000"})
    made: dict[str, list[Run]] = {name: [] for name in sides}
    try:
        for number in range(rounds + 1):
            for name, (stream, side) in sides.items():
                done = run(spark, stream, side, quotes.PARTITIONS, events, settings)
                print(f"round {number}  {name:<20} {done.rate:>10,.0f} events/s", flush=True)
                made[name] += [done] if number else []
    finally:
        kill_jvm()
    return made
