"""Elements of arrays as events, ten in a record, beside the same events as single records, with many CQs.

Both sides run in one Spark application, in turns, each over its own topic. A rate counts elements, or single records.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec
from pyspark.sql import SparkSession

from grouping.settings.settings import Settings
from spark_jobs.runtime.worker.worker import Evaluation
from tests.benchmarks.material import quotes
from tests.benchmarks.material.tables import Contents, Tables
from tests.benchmarks.rates.contest import bench_session, make_outputs, report_ratio, report_sides, turns
from tests.benchmarks.rates.pipeline import Run, Start, run, through
from tests.benchmarks.report import Report
from tests.ground import Ground, open_ground

__all__ = ["add_options", "main"]

_SINGLE, _EXPLODED = "single records", "elements of arrays"
_ELEMENTS = 10


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the sizes."""
    parser.add_argument("--exploded-cqs", type=int, default=100_000, help="CQs symbol = ? AND price < ?")
    parser.add_argument("--exploded-events", type=int, default=1_000_000, help="events of one run")
    parser.add_argument("--exploded-rounds", type=int, default=3, help="rounds that count")


def main(options: argparse.Namespace, folder: Path) -> None:
    """Measure and report."""
    with open_ground() as ground:
        runs = _measure(ground, options.exploded_cqs, options.exploded_events, options.exploded_rounds)
    report = Report(options.command)
    report_sides(report, runs)
    report_ratio(report, runs, _EXPLODED, _SINGLE, ">= 0.8")
    report.write(folder)


def _measure(ground: Ground, cqs: int, events: int, rounds: int) -> dict[str, list[Run]]:
    make_outputs(ground)
    starts: dict[str, tuple[int, Start, Settings]] = {}
    for name, size in ((_SINGLE, 1), (_EXPLODED, _ELEMENTS)):
        # Micro-batches of both sides have as many events: their fixed time must not decide.
        evaluator = ground.settings.evaluator.model_copy(update={"events_per_batch": events // 4 // size})
        settings = ground.settings.model_copy(update={"evaluator": evaluator})
        topic = f"quotes-{size}"
        ground.make_topic(topic, quotes.PARTITIONS)
        quotes.send(settings.kafka.bootstrap, topic, _records(events, size))
        stream = msgspec.structs.replace(quotes.stream(f"s_{size}"), topic=topic)
        if size > 1:
            stream = msgspec.structs.replace(stream, explode="$.quotes")
        Tables(settings).put(Contents(stream).add(quotes.SELECTION, quotes.quote_rows(cqs)))
        starts[name] = size, through(stream, Evaluation.of(stream, settings)), settings
    with bench_session(ground.settings) as spark:
        sides = {name: partial(_run, spark, events, *start) for name, start in starts.items()}
        return dict(turns(sides, rounds))


def _run(spark: SparkSession, events: int, size: int, start: Start, settings: Settings) -> Run:
    """Return a run over records of some elements as a run over the elements."""
    records = run(spark, start, events // size, settings)
    cpu = {program: spent / size for program, spent in records.cpu.items()}
    return Run(records.events * size, records.seconds, cpu)


def _records(events: int, size: int) -> Iterator[tuple[str, str]]:
    """Yield keys and records of some quotes each; the quotes are the same for each size."""
    made = quotes.records(events)
    if size == 1:
        yield from made
        return
    while some := tuple(itertools.islice(made, size)):
        yield some[0][0], '{"quotes": [' + ", ".join(body for _, body in some) + "]}"
