"""Many CQs `price > ? EMIT ON ENTER BY symbol` with many keys, beside a plain copy and beside one such CQ.

All sides run in one Spark application over the same topic, in turns. Prices are such that an event crosses 0.8
thresholds upward on the average. The first event of each key lies below all thresholds.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import msgspec

from grouping.model.catalog import Stream
from spark_jobs.runtime.worker.worker import Evaluation
from tests.benchmarks.material import quotes
from tests.benchmarks.material.crossings import crossing_quotes, thresholds
from tests.benchmarks.material.tables import Contents, Tables
from tests.benchmarks.rates.contest import bench_session, in_turns, make_outputs, report_ratio, report_sides
from tests.benchmarks.rates.copies import plain_copy
from tests.benchmarks.rates.pipeline import Run, through
from tests.benchmarks.report import Report
from tests.ground import Ground, open_ground

__all__ = ["add_options", "main"]

_PLAIN = "plain copy"
_QUERY = "SELECT symbol, price FROM quotes WHERE price > 1.5"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the sizes."""
    parser.add_argument("--queries", type=int, default=1_000_000, help="CQs with edges")
    parser.add_argument("--edge-keys", type=int, default=1_000_000, help="symbols")
    parser.add_argument("--edge-events", type=int, default=3_000_000, help="events of one run")
    parser.add_argument("--edge-rounds", type=int, default=3, help="rounds that count")


def main(options: argparse.Namespace, folder: Path) -> None:
    """Measure and report."""
    with open_ground() as ground:
        runs = _measure(ground, options.queries, options.edge_keys, options.edge_events, options.edge_rounds)
    report = Report(options.command)
    many = f"{options.queries:,} CQs"
    report_sides(report, runs)
    report_ratio(report, runs, many, _PLAIN, "0.5")
    report_ratio(report, runs, many, "1 CQ")
    report.write(folder)
    report.bars(folder, "events/s")


def _measure(ground: Ground, cqs: int, keys: int, events: int, rounds: int) -> dict[str, list[Run]]:
    settings = ground.settings
    ground.make_topic(quotes.TOPIC, quotes.PARTITIONS)
    make_outputs(ground, "copy")
    quotes.send(settings.kafka.bootstrap, quotes.TOPIC, crossing_quotes(events, keys, cqs))
    tables = Tables(settings)
    sides = {_PLAIN: plain_copy(quotes.TOPIC, "copy")}
    for count in (1, cqs):
        stream = _stream(f"s_{count}")
        tables.put(Contents(stream).add(f"{_QUERY} EMIT ON ENTER BY symbol", {"c0": thresholds(count, cqs)}))
        sides["1 CQ" if count == 1 else f"{count:,} CQs"] = through(stream, Evaluation.of(stream, settings))
    with bench_session(settings) as spark:
        return dict(in_turns(spark, sides, events, rounds, settings))


def _stream(stream_id: str) -> Stream:
    return msgspec.structs.replace(quotes.stream(stream_id), partition_key=("symbol",))
