"""CQs over a join with a table, beside Pathway: matching alone, in one process each, on the same events.

Pathway (Rust under Python, from PyPI) has no group for queries that differ in constants. The constants are a further
table of a single dataflow, or each query is a dataflow of its own. Pathway needs Python 3.10 to 3.13 and some eighty
packages, so it is not among ours: ``pip install pathway==0.33.0`` in a separate environment, given by
`--pathway-python`.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pyarrow as pa

from gateway.testing import Table as KitTable
from grouping.model.catalog import Stream, StreamColumn
from grouping.model.table import Table
from tests.benchmarks.material import quotes
from tests.benchmarks.material.market import as_source
from tests.benchmarks.material.tables import Contents
from tests.benchmarks.parts.in_process import Worker
from tests.benchmarks.report import Report

__all__ = ["add_options", "main"]

_FLOW = Path(__file__).with_name("pathway_flow.py")
_TABLE = "profiles (symbol STRING PRIMARY KEY, industry STRING)"
_SELECT = """SELECT q.row FROM quotes q JOIN profiles p ON q.symbol = p.symbol
    WHERE p.industry = 'a' AND price < 1.5"""
_SYMBOLS, _INDUSTRIES = 50_000, 10_000
_TOP_PRICE = 100.0
_BATCH = 20_000
_ROUNDS = 3

_Rows = Sequence[dict[str, Any]]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the sizes."""
    parser.add_argument(
        "--pathway-python", metavar="PYTHON", help="a Python that has Pathway; nothing is measured without it"
    )
    parser.add_argument("--pathway-cqs", type=int, nargs="+", default=[100, 100_000], help="how many queries")
    parser.add_argument("--pathway-events", type=int, default=200_000, help="events of one run")
    parser.add_argument("--pathway-alone", type=int, default=100, help="most queries with a dataflow each")


def main(options: argparse.Namespace, folder: Path) -> None:
    """Measure and report."""
    if options.pathway_python is None:
        print("dataflows: skipped, --pathway-python names no Python that has it")
        return
    report = Report(options.command)
    for count in options.pathway_cqs:
        _measure(report, options, count)
    report.write(folder)


def _measure(report: Report, options: argparse.Namespace, count: int) -> None:
    random = Random(1)
    profiles = [{"symbol": _symbol(n), "industry": quotes.symbol(n % _INDUSTRIES)} for n in range(_SYMBOLS)]
    industries = min(count, _INDUSTRIES)
    # About one match an event, however many queries there are.
    bounds = [random.uniform(0, 2 * _TOP_PRICE * industries / count * _INDUSTRIES / industries) for _ in range(count)]
    constants = [
        {"number": n, "industry": quotes.symbol(n % industries), "bound": bound} for n, bound in enumerate(bounds)
    ]
    events = [
        {"row": n, "symbol": _symbol(random.randrange(_SYMBOLS)), "price": random.uniform(0, _TOP_PRICE)}
        for n in range(options.pathway_events)
    ]
    ours, found = _ours(events, profiles, constants)
    report.add(f"{count:,} queries: ours, in one group", ours, "events/s")
    for how in ("shared", "alone"):
        if how == "shared" or count <= options.pathway_alone:
            theirs, matches = _theirs(options.pathway_python, how, events, profiles, constants)
            assert matches == found, f"Pathway finds {matches} matches, we {found}"
            name = "Pathway, constants as a table" if how == "shared" else "Pathway, a dataflow each"
            report.add(f"{count:,} queries: {name}", theirs, "events/s")
            report.add(f"{count:,} queries: ours ÷ {name}", ours / theirs)


def _ours(events: _Rows, profiles: _Rows, constants: _Rows) -> tuple[float, int]:
    """Return events a second of one core, decoding and making records included, and how many matches there are."""
    columns = tuple(StreamColumn(*each) for each in (("row", "BIGINT"), ("symbol", "STRING"), ("price", "DOUBLE")))
    stream: Stream = msgspec.structs.replace(quotes.stream("s_join"), columns=columns)
    keyed = tuple(StreamColumn(name, "STRING") for name in ("symbol", "industry"))
    table = Table("t_profiles", "profiles", keyed, ("symbol",), "profiles", "json", "")
    values = {
        "c0": pa.array([each["industry"] for each in constants]),
        "c1": pa.array([each["bound"] for each in constants]),
    }
    worker = Worker(Contents(stream, [table]).add(_SELECT, values), {"t_profiles": KitTable(_TABLE, profiles).view()})
    bodies = [msgspec.json.encode(each) for each in events]
    batches = [as_source(bodies[first : first + _BATCH]) for first in range(0, len(bodies), _BATCH)]
    worker.run(batches[:1])
    runs = [worker.run(batches) for _ in range(_ROUNDS)]
    best = min(sum(run.micros.values()) for run in runs)
    return 1e6 / best, runs[0].results


def _theirs(python: str, how: str, events: _Rows, profiles: _Rows, constants: _Rows) -> tuple[float, int]:
    """Return the same of Pathway; the time of a run without events is taken off."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(folder / "profiles.csv", profiles)
        _write(folder / "constants.csv", constants)
        seconds = {}
        for part in (events[:1], events):
            _write(folder / "events.csv", part)
            seconds[len(part)] = min(_run(python, folder, how) for _ in range(_ROUNDS))
        count = sum(sum(1 for _ in path.open()) - 1 for path in folder.glob("found*.csv"))
    return len(events) / (seconds[len(events)] - seconds[1]), count


def _run(python: str, folder: Path, how: str) -> float:
    ran = subprocess.run([python, str(_FLOW), str(folder), how], capture_output=True, text=True, check=True)
    return float(ran.stdout.split()[-1])


def _write(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    rows = list(rows)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)


def _symbol(number: int) -> str:
    return f"C{number:07d}"
