"""The recent load of each group of a stream in a worker, which EXPLAIN, admission and the choice of an index use."""

from __future__ import annotations

from dataclasses import dataclass

from grouping.access.access_path import AccessPath
from grouping.access.stream_statistics import GroupLoad
from grouping.model.sql_type import SqlType
from spark_jobs.engine.constants.table_shape import TableShape

__all__ = ["Load", "Loads"]

_REMEMBERED = 2_000
"""`Load.fade` halves the sums if they cover more events than this, so that older events weigh less."""


@dataclass(slots=True)
class Load:
    """The load of a table of a group: sums over events, in which older events weigh less."""

    path: AccessPath
    rows: int = 0
    """The number of the table's rows at the last batch; 0 if there was no batch since the last `Loads.take`."""
    events: float = 0.0
    candidates: float = 0.0
    matches: float = 0.0
    seconds: float = 0.0

    def fade(self) -> None:
        """Halve the sums if they cover more than `_REMEMBERED` events."""
        if self.events > _REMEMBERED:
            self.events /= 2
            self.candidates /= 2
            self.matches /= 2
            self.seconds /= 2


class Loads:
    """The loads of a stream's tables. The sums of a table start again from 0 when the table gets another index."""

    def __init__(self) -> None:
        self._loads: dict[tuple[str, tuple[SqlType, ...], bool, bool, bool], Load] = {}

    def of(self, shape: TableShape) -> Load:
        """Return the load of a table."""
        key = (shape.plan.group_id, shape.types, shape.virtual, bool(shape.until), shape.ending)
        load = self._loads.get(key)
        if load is None or load.path != shape.path:
            load = self._loads[key] = Load(shape.path)
        return load

    def take(self) -> dict[str, GroupLoad]:
        """Return the loads by group, and fade them. Tables without a batch since the last call are forgotten."""
        groups: dict[str, GroupLoad] = {}
        for key, load in list(self._loads.items()):
            if not load.rows:
                del self._loads[key]
                continue
            before = groups.get(key[0])
            rows = 0 if key[-1] else load.rows  # the second table of a group, for UNTIL, has the same rows
            groups[key[0]] = GroupLoad(
                load.path if before is None or load.rows >= before.rows else before.path,
                rows + (before.rows if before else 0),
                max(load.events, before.events if before else 0.0),
                load.candidates + (before.candidates if before else 0.0),
                load.matches + (before.matches if before else 0.0),
                load.seconds * 1e6 + (before.micros if before else 0.0),
            )
            load.fade()
            load.rows = 0
        return groups
