"""Bytes per CQ in a Spark worker: the growth of a process that loads the tables, as a worker does."""

from __future__ import annotations

import argparse
from pathlib import Path

import psutil

from grouping.redis_store import TableStore, TableVersion
from spark_jobs.constant_cache import ConstantTables
from spark_jobs.garbage import give_back, settle
from tests.benchmarks import quotes
from tests.benchmarks.ground import open_ground
from tests.benchmarks.report import Report
from tests.benchmarks.tables import Contents, Tables

__all__ = ["add_options", "main"]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the sizes."""
    parser.add_argument("--rows", type=int, default=300_000, help="CQs in the tables")


def main(options: argparse.Namespace, folder: Path) -> None:
    """Measure and report."""
    report = Report("footprint")
    with open_ground() as ground:
        tables, store = Tables(ground.settings), TableStore(ground.settings)
        small, large = quotes.stream("s_small"), quotes.stream("s_large")
        tables.put(Contents(small).add(quotes.SELECTION, quotes.quote_rows(quotes.SYMBOLS)))
        tables.put(Contents(large).add(quotes.SELECTION, quotes.quote_rows(options.rows)))
        # What the first load brings along (modules, memory pools) is not the rows'.
        warm = ConstantTables(small.stream_id)
        warm.at(TableVersion(1, 1), store)
        before = _resident()
        loaded = ConstantTables(large.stream_id)
        snapshot = loaded.at(TableVersion(1, 1), store)
        report.add("worker, growth of the process", (_resident() - before) / options.rows, "bytes/CQ", "<= 100")
        report.add("worker, rows and indexes", snapshot.nbytes / options.rows, "bytes/CQ")
    report.write(folder, vars(options))


def _resident() -> int:
    settle()
    give_back()
    return int(psutil.Process().memory_info().rss)
