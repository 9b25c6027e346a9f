"""Changes of a table's rows for many CQs, beside a plain copy.

The sides with CQs `industry = ? AND price < ?`, by EMIT CHANGES and by EMIT ON ENTER, and the copy run in one Spark
application over the same topic, in turns. The topic begins with the rows of the table; the changes follow, and each
updates a row. An update leads to about one result of EMIT CHANGES.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from grouping.model.catalog import StreamColumn
from grouping.model.table import Table
from grouping.plan.table_changes import table_changes
from spark_jobs.runtime.worker.worker import Evaluation
from tests.benchmarks.material import quotes
from tests.benchmarks.material.tables import Contents, Tables
from tests.benchmarks.rates.contest import bench_session, in_turns, make_outputs, report_ratio, report_sides
from tests.benchmarks.rates.copies import plain_copy
from tests.benchmarks.rates.pipeline import Run, through
from tests.benchmarks.report import Report
from tests.ground import Ground, open_ground

__all__ = ["COLUMNS", "add_options", "main", "table_records"]

_TOPIC = "profiles"
_PLAIN, _CHANGES, _ENTER = "plain copy", "EMIT CHANGES", "EMIT ON ENTER"
_QUERY = "SELECT symbol, price FROM profiles WHERE industry = 'S00000' AND price < 1.5"
COLUMNS = {"symbol": "STRING", "industry": "STRING", "price": "DOUBLE"}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the sizes."""
    parser.add_argument("--change-cqs", type=int, default=100_000, help="CQs over the table's changes")
    parser.add_argument("--change-rows", type=int, default=100_000, help="rows of the table")
    parser.add_argument("--change-events", type=int, default=1_000_000, help="changes of one run")
    parser.add_argument("--change-rounds", type=int, default=3, help="rounds that count")


def main(options: argparse.Namespace, folder: Path) -> None:
    """Measure and report."""
    rows = options.change_rows
    with open_ground() as ground:
        runs = _measure(ground, options.change_cqs, rows, options.change_events, options.change_rounds)
    report = Report(options.command)
    report_sides(report, runs)
    report_ratio(report, runs, _CHANGES, _PLAIN, ">= 0.5")
    report_ratio(report, runs, _ENTER, _PLAIN, ">= 0.5")
    report.write(folder)


def _measure(ground: Ground, cqs: int, rows: int, changes: int, rounds: int) -> dict[str, list[Run]]:
    settings = ground.settings
    ground.make_topic(_TOPIC, quotes.PARTITIONS)
    make_outputs(ground, "copy")
    quotes.send(settings.kafka.bootstrap, _TOPIC, table_records(range(rows)))
    updated = quotes.keys_in_turns(np.random.default_rng(2), rows, changes)
    quotes.send(settings.kafka.bootstrap, _TOPIC, table_records(updated.tolist()))
    constants = quotes.quote_rows(cqs)
    # A row is as likely to cease to match as to begin, so half as many matches make one result a change.
    constants["c1"] = pc.divide(constants["c1"], pa.scalar(2.0))
    tables, sides = Tables(settings), {_PLAIN: plain_copy(_TOPIC, "copy")}
    for clause, table_id in ((_CHANGES, "t_changes"), (_ENTER, "t_enter")):
        columns = tuple(StreamColumn(*column) for column in COLUMNS.items())
        table = Table(table_id, "profiles", columns, ("symbol",), _TOPIC, "json", "2026-01-01T00:00:00Z")
        starts = {str(partition): rows // quotes.PARTITIONS for partition in range(quotes.PARTITIONS)}
        stream = msgspec.structs.replace(table_changes(table), start_offsets=starts)
        tables.put(Contents(stream, [table]).add(f"{_QUERY} {clause}", constants))
        sides[clause] = through(stream, Evaluation.of(stream, settings))
    with bench_session(settings) as spark:
        return dict(in_turns(spark, sides, changes, rounds, settings))


def table_records(numbers: Sequence[int]) -> Iterator[tuple[str, str]]:
    """Yield keys and rows: each row has its industry for good, and a new price each time."""
    prices = np.random.default_rng(len(numbers)).uniform(0, quotes.TOP_PRICE, len(numbers)).tolist()
    for number, price in zip(numbers, prices, strict=True):
        symbol, industry = f"C{number:07d}", quotes.symbol(number % quotes.SYMBOLS)
        yield symbol, f'{{"symbol": "{symbol}", "industry": "{industry}", "price": {price:.4f}}}'
