"""Events per second from Kafka to Kafka with each kind of query, against copies of the same topic."""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path

from pyspark.sql import SparkSession

from spark_jobs.runtime.worker.worker import Evaluation
from tests.benchmarks.material import market
from tests.benchmarks.material.tables import Tables
from tests.benchmarks.material.workloads import WORKLOADS, Workload
from tests.benchmarks.rates.contest import bench_session, in_turns, make_outputs, report_ratio
from tests.benchmarks.rates.copies import headers_copy, own_copy, plain_copy, tuned_copy
from tests.benchmarks.rates.pipeline import through
from tests.benchmarks.report import Report
from tests.ground import Ground, open_ground

__all__ = ["add_options", "main"]

PLAIN, TUNED, HEADERS = "plain copy", "tuned copy", "tuned copy with headers"
OWN = "copy with headers, written as results are"
_BATCHES = 4
"""Micro-batches of a run; the first one does not count."""
_SLOW = 100
"""Divisor of the number of events for a slow kind."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the sizes."""
    parser.add_argument("--kinds", nargs="+", choices=WORKLOADS, default=list(WORKLOADS), help="which ones")
    parser.add_argument("--kind-events", type=int, default=400_000, help="events of one run")
    parser.add_argument("--kind-rounds", type=int, default=1, help="rounds that count")
    parser.add_argument("--full", action="store_true", help="as many CQs as the targets are about")


def main(options: argparse.Namespace, folder: Path) -> None:
    """Measure and report."""
    report = Report(options.command)
    with open_ground() as ground:
        settings = ground.settings
        make_outputs(ground, "copy")
        with bench_session(settings) as spark:
            for name in options.kinds:
                kind = WORKLOADS[name]
                cqs = kind.full if options.full else kind.quick
                events = options.kind_events // (_SLOW if kind.slow else 1)
                _measure(report, ground, spark, name, kind, cqs, events, options.kind_rounds)
    report.write(folder)


def _measure(
    report: Report,
    ground: Ground,
    spark: SparkSession,
    name: str,
    kind: Workload,
    cqs: int,
    events: int,
    rounds: int,
) -> None:
    evaluator = ground.settings.evaluator.model_copy(update={"events_per_batch": events // _BATCHES})
    settings = ground.settings.model_copy(update={"evaluator": evaluator})
    ground.make_topic(name, market.PARTITIONS)
    kind.source.publish(settings.kafka.bootstrap, name, events, kind.symbols(cqs))
    stream = kind.source.stream(f"s_{name}", name)
    contents = kind.contents(stream, cqs)
    for group in contents.virtual_groups:
        ground.make_topic(settings.topics.own_results(group), market.PARTITIONS, retention_bytes="50000000")
    Tables(settings).put(contents)
    title = f"{cqs:,} × {kind.title}"
    sides = {title: through(stream, Evaluation.of(stream, settings))}
    if not kind.slow:
        copied = kind.source.stream("s_copy", name)
        sides = {
            PLAIN: plain_copy(name, "copy"),
            TUNED: tuned_copy(copied, "copy"),
            HEADERS: headers_copy(copied, "copy"),
            OWN: own_copy(copied, "copy"),
            **sides,
        }
    # Java compiles for longer than one round: the plain copy gained a quarter from its second to its fourth run.
    in_turns(spark, sides, events, 0, settings)
    made = in_turns(spark, sides, events, rounds, settings)
    report.add(title, statistics.median(one.rate for one in made[title]), "events/s")
    report.add(f"{title}, CPU", statistics.median(sum(one.cpu.values()) for one in made[title]), "µs/event")
    for other in (PLAIN, TUNED, HEADERS, OWN) if not kind.slow else ():
        target = f">= {kind.target}" if kind.target and other == PLAIN else ""
        report_ratio(report, made, title, other, target)
    ground.delete_topic(name)
