"""Many CQs `price > ? EMIT ON ENTER BY symbol FOR '5 minutes'`, beside the same CQs without FOR.

Both sides run in one Spark application over the same topic, in turns. The times of the records are spread over half an
hour that ends now, and come out of order by up to a second.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import msgspec
import numpy as np

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

_PLAIN, _AT_ONCE, _LASTING = "plain copy", "without FOR", "FOR '5 minutes'"
_QUERY = "SELECT symbol, price FROM quotes WHERE price > 1.5 EMIT ON ENTER BY symbol"
_SPAN_MS = 1_800_000
_DISORDER_MS = 1000


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the sizes."""
    parser.add_argument("--stay-cqs", type=int, default=100_000, help="CQs, each with a threshold")
    parser.add_argument("--stay-keys", type=int, default=100_000, help="symbols")
    parser.add_argument("--stay-events", type=int, default=1_000_000, help="events of one run")
    parser.add_argument("--stay-rounds", type=int, default=3, help="rounds that count")


def main(options: argparse.Namespace, folder: Path) -> None:
    """Measure and report."""
    with open_ground() as ground:
        runs = _measure(ground, options.stay_cqs, options.stay_keys, options.stay_events, options.stay_rounds)
    report = Report(options.command)
    report_sides(report, runs)
    report_ratio(report, runs, _LASTING, _AT_ONCE, ">= 0.7")
    report_ratio(report, runs, _LASTING, _PLAIN)
    report.write(folder)
    report.bars(folder, "events/s")


def _measure(ground: Ground, cqs: int, keys: int, events: int, rounds: int) -> dict[str, list[Run]]:
    settings = ground.settings
    ground.make_topic(quotes.TOPIC, quotes.PARTITIONS)
    make_outputs(ground, "copy")
    times = quotes.times_until_now(events, _SPAN_MS)
    times -= np.random.default_rng(2).uniform(0, _DISORDER_MS, events)
    quotes.send(
        settings.kafka.bootstrap, quotes.TOPIC, crossing_quotes(events, keys, cqs), times.astype(np.int64).tolist()
    )
    tables, sides = Tables(settings), {_PLAIN: plain_copy(quotes.TOPIC, "copy")}
    for name, stream_id, clause in ((_AT_ONCE, "s_at_once", ""), (_LASTING, "s_lasting", f" {_LASTING}")):
        stream = msgspec.structs.replace(quotes.stream(stream_id), partition_key=("symbol",))
        tables.put(Contents(stream).add(f"{_QUERY}{clause}", {"c0": thresholds(cqs, cqs)}))
        sides[name] = through(stream, Evaluation.of(stream, settings))
    with bench_session(settings) as spark:
        return dict(in_turns(spark, sides, events, rounds, settings))
