"""Elements of arrays as events, ten in a record, beside the same events as single records, with many CQs.

Both sides run in one Spark application, in turns, each over its own topic. A rate counts elements, or single records.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator
from pathlib import Path

import msgspec

from spark_jobs.runtime.worker.worker import Evaluation
from tests.benchmarks.material import quotes
from tests.benchmarks.material.tables import Contents, Tables
from tests.benchmarks.rates.contest import bench_session, report_ratio, report_sides
from tests.benchmarks.rates.pipeline import Run, run, through
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
    results = ground.settings.topics.results
    ground.make_topic(results, ground.settings.results.partitions, retention_bytes="50000000", segment_bytes="25000000")
    sides = {_SINGLE: 1, _EXPLODED: _ELEMENTS}
    made: dict[str, list[Run]] = {name: [] for name in sides}
    starts = {}
    for name, size in sides.items():
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
        starts[name] = through(stream, Evaluation.of(stream, settings)), settings
    with bench_session(ground.settings) as spark:
        for number in range(rounds + 1):
            for name, size in sides.items():
                start, settings = starts[name]
                done = _of_elements(run(spark, start, events // size, settings), size)
                print(f"round {number}  {name:<40} {done.rate:>10,.0f} events/s", flush=True)
                made[name] += [done] if number else []
    return made


def _of_elements(records: Run, size: int) -> Run:
    """Return a run over records as a run over their elements."""
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
