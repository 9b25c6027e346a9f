"""Events per second from Kafka to Kafka, against copies of the same topic and against few CQs.

All sides run in one Spark application over the same topic, in turn, round after round; ratios are medians over the
rounds. The first round warms up and does not count.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from spark_jobs.runtime.worker.worker import Evaluation
from tests.benchmarks.material import quotes
from tests.benchmarks.material.tables import Contents, Tables
from tests.benchmarks.rates.contest import bench_session, in_turns, make_outputs, report_ratio, report_sides
from tests.benchmarks.rates.copies import headers_copy, own_copy, plain_copy, tuned_copy
from tests.benchmarks.rates.pipeline import Run, through
from tests.benchmarks.report import Report
from tests.ground import Ground, open_ground

__all__ = ["add_options", "main"]

FEW = 1_000
PLAIN, TUNED, HEADERS = "plain copy", "tuned copy", "tuned copy with headers"
OWN = "copy with headers, written as results are"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the sizes."""
    parser.add_argument("--cqs", type=int, nargs="+", default=[100_000], help="CQs on the stream; of several the last")
    parser.add_argument("--events", type=int, default=1_000_000, help="events of one run")
    parser.add_argument("--rounds", type=int, default=3, help="rounds that count")


def main(options: argparse.Namespace, folder: Path) -> None:
    """Measure and report."""
    with open_ground() as ground:
        runs = _measure(ground, options.cqs, options.events, options.rounds)
    report = Report(options.command)
    *fewer, many = (f"{count:,} CQs" for count in (FEW, *options.cqs))
    report_sides(report, runs)
    for other, target in ((PLAIN, "0.65"), (TUNED, ""), (HEADERS, "0.8"), (OWN, ""), *((few, "0.9") for few in fewer)):
        report_ratio(report, runs, many, other, target)
    report.write(folder)
    report.bars(folder, "events/s")


def _measure(ground: Ground, cqs: Sequence[int], events: int, rounds: int) -> dict[str, list[Run]]:
    settings = ground.settings
    ground.make_topic(quotes.TOPIC, quotes.PARTITIONS)
    make_outputs(ground, "copy")
    quotes.publish(settings.kafka.bootstrap, events)
    tables = Tables(settings)
    copied = quotes.stream("s_copy")
    sides = {
        PLAIN: plain_copy(quotes.TOPIC, "copy"),
        TUNED: tuned_copy(copied, "copy"),
        HEADERS: headers_copy(copied, "copy"),
        OWN: own_copy(copied, "copy"),
    }
    for count in (FEW, *cqs):
        stream = quotes.stream(f"s_{count}")
        tables.put(Contents(stream).add(quotes.SELECTION, quotes.quote_rows(count)))
        sides[f"{count:,} CQs"] = through(stream, Evaluation.of(stream, settings))
    with bench_session(settings) as spark:
        return dict(in_turns(spark, sides, events, rounds, settings))
