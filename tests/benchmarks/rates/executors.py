"""Two executors of one core each on a Spark cluster, beside one process with two cores: events per second.

Both do the same: 100,000 CQs `symbol = ? AND price < ?` from Kafka to Kafka. Each turn is a Spark application of its
own, whose first run warms up.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Collection, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from multiprocessing import get_context
from pathlib import Path

from grouping.settings.settings import Settings
from spark_jobs.runtime.worker.worker import Evaluation
from tests.benchmarks.material import quotes
from tests.benchmarks.material.tables import Contents, Tables
from tests.benchmarks.rates.contest import bench_session, in_turns, make_outputs
from tests.benchmarks.rates.pipeline import Run, through
from tests.benchmarks.rates.scraping import scraped
from tests.benchmarks.report import Report
from tests.cluster.standalone.cluster import standalone
from tests.ground import Ground, open_ground

__all__ = ["add_options", "main", "median_rates", "on_cluster", "prepare"]

_CQS = 100_000
_LOCAL, _CLUSTER = "local[2]", "two executors"
_SPARK = {"spark.executor.cores": "1", "spark.executor.memory": "1g"}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the sizes."""
    parser.add_argument("--executor-events", type=int, default=1_000_000, help="events of one run")
    parser.add_argument("--executor-rounds", type=int, default=3, help="applications of each side")


def main(options: argparse.Namespace, folder: Path) -> None:
    """Measure and report."""
    with tempfile.TemporaryDirectory() as name, open_ground() as ground, standalone(Path(name)) as cluster:
        prepare(ground, options.executor_events)
        sides = {_LOCAL: ground.settings, _CLUSTER: on_cluster(ground.settings, cluster.master)}
        rates = median_rates(sides, options.executor_events, options.executor_rounds)
    report = Report(options.command)
    for side, rate in rates.items():
        report.add(side, rate, "events/s")
    report.add(f"{_CLUSTER} ÷ {_LOCAL}", rates[_CLUSTER] / rates[_LOCAL], "", "0.85")
    report.write(folder)


def on_cluster(settings: Settings, master: str) -> Settings:
    """Return settings of an evaluator with two executors of one core each."""
    spread = {"master": master, "driver_host": "127.0.0.1", "spark": _SPARK}
    return settings.model_copy(update={"evaluator": settings.evaluator.model_copy(update=spread)})


def prepare(ground: Ground, events: int) -> None:
    """Publish the events, and put the CQs into Redis."""
    settings = ground.settings
    ground.make_topic(quotes.TOPIC, quotes.PARTITIONS)
    make_outputs(ground)
    quotes.publish(settings.kafka.bootstrap, events)
    constants = quotes.quote_rows(_CQS)
    Tables(settings).put(Contents(quotes.stream("s_cqs")).add(quotes.SELECTION, constants))


def median_rates(
    sides: Mapping[str, Settings], events: int, rounds: int, watched: Collection[str] = ()
) -> dict[str, float]:
    """Run the sides in turns, each time as a Spark application of its own, and return their median events a second.

    Args:
        sides: By name, the settings of each.
        events: How many there are.
        rounds: Applications of each side.
        watched: Sides whose metrics are read meanwhile.
    """
    runs: dict[str, list[Run]] = {side: [] for side in sides}
    for _ in range(rounds):
        for side, settings in sides.items():
            runs[side].append(_application_run(side, settings, events, watched=side in watched))
    return {side: statistics.median(run.rate for run in made) for side, made in runs.items()}


def _application_run(side: str, settings: Settings, events: int, *, watched: bool) -> Run:
    """Run a Spark application in a process of its own, and return its second run."""
    with ProcessPoolExecutor(1, get_context("spawn")) as alone:
        return alone.submit(_run, side, settings, events, watched).result()


def _run(side: str, settings: Settings, events: int, watched: bool) -> Run:
    stream = quotes.stream("s_cqs")
    with bench_session(settings) as spark, scraped(stream.name) if watched else nullcontext():
        sides = {side: through(stream, Evaluation.of(stream, settings))}
        return in_turns(spark, sides, events, 1, settings)[side][0]
