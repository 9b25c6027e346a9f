"""Bytes per CQ in a Spark worker: the growth of a process that loads the tables, as a worker does."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import psutil

from grouping.settings.settings import Settings
from grouping.store.notes import TableVersion
from grouping.store.table_store import TableStore
from spark_jobs.engine.constants.constant_cache import ConstantTables
from spark_jobs.runtime.worker.garbage import give_back, settle
from tests.benchmarks.material import market, quotes
from tests.benchmarks.material.tables import Contents, Tables
from tests.benchmarks.material.workloads import WORKLOADS
from tests.benchmarks.report import Report
from tests.ground import Ground, open_ground

__all__ = ["add_options", "main"]


_FEW = 20_000


def _quotes(stream_id: str, rows: int) -> Contents:
    return Contents(quotes.stream(stream_id)).add(quotes.SELECTION, quotes.quote_rows(rows))


def _kind(name: str) -> Callable[[str, int], Contents]:
    return lambda stream_id, rows: WORKLOADS[name].contents(market.stream(stream_id, "quotes"), rows)


_FILLS = {
    "symbol = ? AND price < ?": _quotes,
    **{WORKLOADS[name].title: _kind(name) for name in ("equal", "between", "virtual")},
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the sizes."""
    parser.add_argument("--rows", type=int, default=300_000, help="CQs in the tables")


def main(options: argparse.Namespace, folder: Path) -> None:
    """Measure and report."""
    report = Report(options.command)
    with open_ground() as ground:
        for name, fill in _FILLS.items():
            for_process, for_tables = _footprint(ground, fill, options.rows)
            report.add(f"{name}, growth of the process", for_process, "bytes/CQ", "<= 100")
            report.add(f"{name}, rows and indexes", for_tables, "bytes/CQ")
    report.write(folder)


def _footprint(ground: Ground, fill: Callable[[str, int], Contents], rows: int) -> tuple[float, float]:
    """Return bytes per row, measured in a fresh process, because memory freed earlier would be used again."""
    tables = Tables(ground.settings)
    # The first load brings modules and memory pools, which are not the rows'.
    tables.put(fill("s_small", _FEW))
    tables.put(fill("s_large", rows))
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        grown, kept = process.submit(_load, ground.settings).result()
    return grown / rows, kept / rows


def _load(settings: Settings) -> tuple[int, int]:
    """Load the tables as a worker does; return the growth of this process and the tables' own count of bytes."""
    store = TableStore(settings)
    warm = ConstantTables("s_small")
    warm.at(TableVersion(1, 1), store)
    before = _resident()
    loaded = ConstantTables("s_large")
    snapshot = loaded.at(TableVersion(1, 1), store)
    return _resident() - before, snapshot.nbytes


def _resident() -> int:
    settle()
    give_back()
    return int(psutil.Process().memory_info().rss)
