"""W7: a hundredth of the queries replaced every second, while events are matched.

The Python binding of the peer cannot remove a query.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from random import Random

from grouping.compiler.prepared import Preparer
from grouping.model.catalog import Catalog, Stream
from grouping.plan.group import GroupPlan, SelectList
from grouping.statements.cq_text import CqText
from grouping.store.constant_table import Block, Entry, Segment, net
from grouping.store.notes import TableVersion
from spark_jobs.engine.constants.constant_cache import ConstantTables
from spark_jobs.engine.match.evaluate import matches
from spark_jobs.engine.rows.events import Events
from tests.benchmarks.comparisons.peer_workloads import WORKLOADS, sql
from tests.benchmarks.report import Report

__all__ = ["measure"]

_PART = 100
"""The share of queries replaced each second: one in this many."""
_COMMITS = 10
"""In a second, at most."""
_SECONDS = 4.0


def measure(report: Report, stream: Stream, events: Events, queries: int) -> None:
    """Measure how much of the rate is left; compiling is the gateway's, and is not counted."""
    selects = [sql(selection) for selection in WORKLOADS["W2"].queries(Random(2), queries)]
    log = _Log(stream)
    tables = ConstantTables(stream.stream_id)
    version = log.replace([], selects, 0)
    rates = []
    for churning in (False, True):
        spent, done, replaced = 0.0, 0, 0
        while spent < _SECONDS:
            due = int(spent * queries / _PART) - replaced if churning else 0
            if due > queries / _PART / _COMMITS:
                # The oldest go; their texts come back under new numbers.
                gone = range(replaced, replaced + due)
                version = log.replace(gone, [selects[number % queries] for number in gone], replaced + queries)
                replaced += due
            began = time.process_time()
            for _ in matches(tables.at(version, log), events):
                pass
            spent += time.process_time() - began
            done += events.count
        rates.append(done / spent)
    at = f"W7, {queries:,} × {WORKLOADS['W2'].title}"
    report.add(f"{at}, 1% replaced a second: ours", rates[1], "events/s")
    report.add(f"{at}, with ÷ without replacing", rates[1] / rates[0])


class _Log:
    """Segments of a stream's tables, one for each version; destinations are numbered."""

    def __init__(self, stream: Stream) -> None:
        self._preparer = Preparer(Catalog([stream]))
        self._segments: list[Segment] = []
        self._plans: dict[str, GroupPlan] = {}
        self._selects: dict[str, SelectList] = {}

    def replace(self, gone: Sequence[int], selects: Sequence[str], first: int) -> TableVersion:
        """Take some destinations away and add one for each SELECT, numbered from `first` on."""
        entries = []
        for number, select in enumerate(selects, first):
            _, query = self._preparer.create(CqText.cut(f"CREATE CQ a AS {select}"))
            self._plans[query.plan.group_id] = query.plan
            self._selects[query.select.select_id] = query.select
            block = Block(query.plan.group_id, query.row.type_texts, query.select.select_id, "shared")
            entries.append(Entry(block, _name(number), query.row, number, 0))
        self._segments.append(Segment.of(map(_name, gone), entries))
        return TableVersion(1, len(self._segments))

    def changes(self, stream_id: str, epoch: int, since: int, until: int) -> Iterator[Segment]:
        """Return the net of the changes (since, until]."""
        return net(([segment] for segment in reversed(self._segments[since:until])), oldest=not since)

    def plans(self, stream_id: str, ids: list[str]) -> dict[str, GroupPlan]:
        """Return the plans of groups."""
        return {group: self._plans[group] for group in ids}

    def selects(self, stream_id: str, ids: list[str]) -> dict[str, SelectList]:
        """Return SELECT lists."""
        return {select: self._selects[select] for select in ids}


def _name(number: int) -> str:
    # Ids are hashes: replaced ids lie anywhere among them.
    return f"d_{Random(number).randbytes(12).hex()}"
