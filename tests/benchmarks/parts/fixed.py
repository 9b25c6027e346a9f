"""The CPU time that an additional group takes in each micro-batch of its stream, independent of the events."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator, Sequence
from itertools import combinations, islice, product
from pathlib import Path
from random import Random

import msgspec
import pyarrow as pa

from gateway.testing import Table as KitTable
from grouping.model.catalog import StreamColumn
from grouping.model.table import Table
from tests.benchmarks.material import market
from tests.benchmarks.material.tables import Contents
from tests.benchmarks.parts.in_process import Worker
from tests.benchmarks.report import Report

__all__ = ["add_options", "main"]

_COLUMNS = tuple(f"c{number}" for number in range(50))
_TABLE = "profiles (k BIGINT PRIMARY KEY, kind BIGINT)"
_ROWS = 2_000
_TOP = 1_000
_EVENTS = 50
_REPEATS = 9
_FEW = 8
"""A half, a quarter … of the groups is measured too: the figure is the slope, without the fixed costs of a batch."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the sizes."""
    parser.add_argument("--fixed-groups", type=int, default=2_000, help="groups of each kind; of joins a tenth")


def main(options: argparse.Namespace, folder: Path) -> None:
    """Measure and report."""
    report, count = Report(options.command), options.fixed_groups
    for name, selects in _KINDS.items():
        found = list(islice(selects(), count // 10 if "JOIN" in name else count))
        report.add(f"{name}, {len(found):,} groups", _micros(found), "µs/group")
    report.write(folder)


def _micros(selects: Sequence[str]) -> float:
    """Return the time of one group more in a batch."""
    few = len(selects) // _FEW
    return (_batch_micros(selects) - _batch_micros(selects[:few])) / (len(selects) - few)


def _batch_micros(selects: Sequence[str]) -> float:
    """Return the CPU time to match a batch that hardly any query matches."""
    stream = msgspec.structs.replace(
        market.stream("s_fixed", "quotes"), columns=tuple(StreamColumn(name, "BIGINT") for name in _COLUMNS)
    )
    keyed = (StreamColumn("k", "BIGINT"), StreamColumn("kind", "BIGINT"))
    table = Table("t_profiles", "profiles", keyed, ("k",), "profiles", "json", "")
    rows = [{"k": number, "kind": number % _TOP} for number in range(_ROWS)]
    worker = Worker(Contents(stream, [table]).add_each(selects), {"t_profiles": KitTable(_TABLE, rows).view()})
    batches = [_batch()]
    worker.run(batches)
    return statistics.median(worker.run(batches).match for _ in range(_REPEATS)) * 1e6


def _batch() -> pa.RecordBatch:
    random = Random(1)
    events = [{name: random.randrange(_TOP) for name in _COLUMNS} for _ in range(_EVENTS)]
    return market.as_source([msgspec.json.encode(event) for event in events])


def _keyed() -> Iterator[str]:
    random = Random(2)
    for three in combinations(_COLUMNS, 3):
        yield _over("quotes", " AND ".join(f"{name} = {random.randrange(_TOP)}" for name in three))


def _bounds() -> Iterator[str]:
    for operator, name in product((">", ">=", "<", "<="), _COLUMNS):
        yield _over("quotes", f"{name} {operator} {0 if '<' in operator else _TOP - 1}")


def _ranges() -> Iterator[str]:
    random = Random(2)
    for three in combinations(_COLUMNS, 3):
        yield _over("quotes", " AND ".join(f"{name} > {random.randrange(_TOP - 20, _TOP)}" for name in three))


def _wide_ranges() -> Iterator[str]:
    random = Random(2)
    for three in combinations(_COLUMNS, 3):
        yield _over("quotes", " AND ".join(f"{name} > {random.randrange(_TOP // 2)}" for name in three))


def _scans() -> Iterator[str]:
    random = Random(2)
    for three in combinations(_COLUMNS, 3):
        yield _over("quotes", " AND ".join(f"{name} % {random.randrange(2, _TOP)} = 1" for name in three))


def _computed() -> Iterator[str]:
    for one, two, three in combinations(_COLUMNS, 3):
        yield _over("quotes", f"{one} + {two} * {three} = -1")


def _joins() -> Iterator[str]:
    for number in range(_ROWS):
        yield _over(f"quotes JOIN profiles t ON t.k = c0 + {number}", "t.kind = 5")


def _over(source: str, condition: str) -> str:
    return f"SELECT c1 FROM {source} WHERE {condition}"


_KINDS = {
    "c0 = ? AND c1 = ? AND c2 = ?": _keyed,
    "c0 > ?, passed by hardly an event": _bounds,
    "c0 > ? AND c1 > ? AND c2 > ?, passed by a hundredth of the events": _ranges,
    "c0 > ? AND c1 > ? AND c2 > ?, passed by most": _wide_ranges,
    "c0 % ? = 1 AND c1 % ? = 1 AND c2 % ? = 1": _scans,
    "c0 + c1 * c2 = ?": _computed,
    "JOIN t ON t.k = c0 + ?": _joins,
}
