"""Chooses the indexes of constant tables again while the evaluator runs, by the actual events and constants.

A table is reviewed if its index gives many more candidates than matches. The review indexes a sample of the table's
rows by each possible access path, looks up a sample of the latest events in each of these indexes, and changes the
table's index if another path gives far fewer candidates. Results are the same with any index, so each worker decides
for itself, and nothing is restarted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from grouping.access.access_path import AccessPath, access_paths, choose_index
from grouping.model.sql_type import SqlType
from spark_jobs.engine.constants.constant_cache import ConstantTable, ConstantTables, Snapshot
from spark_jobs.engine.constants.constant_part import ConstantPart
from spark_jobs.engine.constants.constant_rows import ConstantRows
from spark_jobs.engine.constants.load import Loads
from spark_jobs.engine.index.union_lookup import lookup_of
from spark_jobs.engine.rows.columns import Columns
from spark_jobs.engine.rows.cpu_budget import charged
from spark_jobs.engine.rows.event_column import EventColumns

__all__ = ["IndexChoice", "expected_candidates"]

log = logging.getLogger(__name__)

_EVENTS = 200
"""A table is reviewed only if its load covers at least this many events."""
_WASTE = 4
"""A table is reviewed if its index gives at least this many candidates per match, and at least this many per event."""
_GAIN = 2
"""A table changes to the best path only if this path divides the number of candidates by more than `_GAIN`."""
_SAMPLED_EVENTS = 1_000
_SAMPLED_ROWS = 20_000
_LOOKS = 0.5
"""The seconds between two checks of the loads of all tables."""
_FIRST_WAIT, _LONGEST_WAIT = 2.0, 10.0
"""The seconds between two reviews of a table: at first, and at most.

The time doubles with each review that finds no better index.
"""


@dataclass(slots=True)
class _Review:
    """When a table may be reviewed again."""

    at: float
    wait: float


class IndexChoice:
    """Revises the indexes of a stream's tables, at most one at a time."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Begin with the present indexes.

        Args:
            clock: Monotonic seconds.
        """
        self._clock = clock
        self._reviews: dict[tuple[str, tuple[SqlType, ...], bool], _Review] = {}
        self._at = 0.0

    def revise(self, tables: ConstantTables, snapshot: Snapshot, source: Columns, loads: Loads) -> None:
        """Change the index of the most wasteful table, if there is a better index.

        Args:
            tables: The tables. If an index is changed, `snapshot` is no longer valid.
            snapshot: The last snapshot of the tables.
            source: The latest events.
            loads: The cost of each table.
        """
        now = self._clock()
        if now < self._at:
            return
        self._at = now + _LOOKS
        if len(self._reviews) > len(snapshot.tables):
            live = {_key(table) for table in snapshot.tables}
            self._reviews = {key: review for key, review in self._reviews.items() if key in live}
        wasteful = max(
            (found for table in snapshot.tables if (found := self._waste(table, loads)) is not None),
            key=lambda found: found[0],
            default=None,
        )
        if wasteful is None:
            return
        table = wasteful[1]
        shape = table.shape
        review = self._reviews[_key(table)]
        group_id = shape.plan.group_id
        with charged(group_id, lambda: (group_id,)):
            costs = expected_candidates(table, EventColumns(source))
        best = choose_index(shape.plan.conjuncts, lambda path: costs.get(path, float("inf")))
        if costs[best] * _GAIN < costs.get(shape.path, float("inf")):
            log.info(
                "group looked up another way",
                extra={"group": group_id, "before": shape.path.kind, "after": best.kind},
            )
            review.wait = _FIRST_WAIT
            tables.rebuild(table, replace(shape, path=best))
        else:
            review.wait = min(2 * review.wait, _LONGEST_WAIT)
        review.at = now + review.wait

    def _waste(self, table: ConstantTable, loads: Loads) -> tuple[float, ConstantTable] | None:
        """Return the number of a table's candidates per event, and the table; None if it needs no review now."""
        if not table.shape.residual or table.shape.until:
            return None
        load = loads.of(table.shape)
        if load.events < _EVENTS or load.candidates < _WASTE * max(load.events, load.matches):
            return None
        review = self._reviews.setdefault(_key(table), _Review(0.0, _FIRST_WAIT))
        if self._at - _LOOKS < review.at or not access_paths(table.shape.plan.conjuncts)[1:]:
            return None
        return load.candidates / load.events, table


def expected_candidates(table: ConstantTable, events: EventColumns) -> dict[AccessPath, float]:
    """Estimate the candidates per event for each possible access path, from samples of the rows and events."""
    count = events.source.count
    chosen = np.unique(np.linspace(0, count - 1, min(count, _SAMPLED_EVENTS)).astype(np.int64))
    rows = _sampled(table.parts)
    shape = table.shape
    whole = sum(len(part.rows) for part in table.parts)
    costs = {}
    for path in access_paths(shape.plan.conjuncts):
        lookup = lookup_of(shape.plan.conjuncts, path, shape.types, rows.constants, len(rows))
        found = lookup.find(events, chosen).add_counts(np.zeros(count, np.int64))
        costs[path] = found / max(chosen.size, 1) * whole / max(len(rows), 1)
    return costs


def _sampled(parts: tuple[ConstantPart, ...]) -> ConstantRows:
    """Return every n-th row of each part: a random sample, since rows are sorted by ids, which are hashes."""
    whole = sum(len(part.rows) for part in parts)
    step = max(1, whole // _SAMPLED_ROWS)
    return ConstantRows.concat([part.rows.take(np.arange(0, len(part.rows), step)) for part in parts])


def _key(table: ConstantTable) -> tuple[str, tuple[SqlType, ...], bool]:
    return table.shape.plan.group_id, table.shape.types, table.shape.virtual
