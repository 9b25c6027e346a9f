"""The look-up of a batch in one part of a table: candidates by the part's index, and the matches among them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spark_jobs.engine.constants.constant_part import ConstantPart
from spark_jobs.engine.constants.constant_rows import ConstantRows
from spark_jobs.engine.constants.load import Load
from spark_jobs.engine.constants.table_shape import TableShape
from spark_jobs.engine.index import Ints, Pairs
from spark_jobs.engine.index.union_lookup import AnyCandidates
from spark_jobs.engine.match.matched_pairs import MatchedPairs
from spark_jobs.engine.match.residual import holds
from spark_jobs.engine.rows.arrays import distinct_values
from spark_jobs.engine.rows.columns import PlacedColumns
from spark_jobs.engine.rows.cpu_budget import charged
from spark_jobs.engine.rows.event_column import EventColumns

__all__ = ["PAIRS", "RESIDUAL_PAIRS", "TableLookup", "selected_events"]

PAIRS = 4_000_000
"""The largest number of pairs in memory at once; with their columns, this many pairs take some 300 MB."""
RESIDUAL_PAIRS = 500_000
"""The largest number of pairs for which constants are gathered and residuals are evaluated at once."""


def selected_events(shape: TableShape, source: PlacedColumns, events: EventColumns) -> Ints:
    """Return the events for which all of the table's conjuncts without constants are TRUE.

    If the entries of the table are leaving, only events before the offsets at which they have left are returned.
    """
    everything = np.arange(source.count)
    if shape.until:
        # All entries of the table are leaving: they get no event from these offsets on, and no event of new partitions.
        until = np.array([*shape.until, 0])
        ends = until[np.minimum(source.partitions, until.size - 1)]
        everything = np.flatnonzero(source.offsets < ends)
    if not shape.filters:
        return everything
    return everything[holds(shape.filters, events, everything)]


@dataclass(frozen=True, slots=True)
class TableLookup:
    """The candidates of a batch in one part of a table."""

    group: int
    part: ConstantPart
    candidates: AnyCandidates
    load: Load
    source: PlacedColumns
    """The events; their times decide whether they are within an entry's window."""

    def add_counts(self, counts: Ints) -> None:
        """Add each event's number of candidates to `counts`; add nothing if no pairs are made (`_by_existence`)."""
        if not self._by_existence:
            self.load.candidates += self.candidates.add_counts(counts)

    def mark(self, marks: NDArray[np.bool_]) -> None:
        """Mark the events that have a candidate."""
        counts = np.zeros(marks.size, np.int64)
        self.candidates.add_counts(counts)
        marks |= counts > 0

    def took(self, seconds: float) -> None:
        """Charge the seconds of the look-up to the table."""
        self.load.seconds += seconds

    def matched_pairs(self, events: EventColumns, first: int, last: int) -> Iterator[MatchedPairs]:
        """Yield the matched pairs of the events in [first, last), and count them as matches of the table."""
        for pairs in self._matched_pairs(events, first, last):
            self.load.matches += pairs.event.size
            yield pairs

    @property
    def _by_existence(self) -> bool:
        """Whether any candidate makes its event a match: the part is virtual and has no residual."""
        return self.part.shape.virtual and not self.part.shape.residual

    @property
    def identity(self) -> int:
        """An id of the part, unique while the part is in use."""
        return id(self.part)

    @property
    def rows(self) -> ConstantRows:
        """The constant rows of the part."""
        return self.part.rows

    def pairs(self, events: EventColumns, first: int, last: int) -> Iterator[Pairs]:
        """Yield the pairs of an event in [first, last) and a constant row for which all conjuncts are TRUE."""
        for pairs in self.candidates.between(first, last).pairs(RESIDUAL_PAIRS if self.part.shape.residual else PAIRS):
            found, rows = self._checked(events, pairs)
            if found.size:
                yield found, rows

    def group_of(self, rows: NDArray[np.integer]) -> NDArray[np.int32]:
        """Return the group number of each constant row."""
        return np.full(rows.size, self.group, np.int32)

    def _matched_pairs(self, events: EventColumns, first: int, last: int) -> Iterator[MatchedPairs]:
        part = self.part
        if self._by_existence:
            # The readers of a virtual destination apply START and EXPIRE (docs/results.md).
            existing = self.candidates.between(first, last).any(part.alive, part.version)
            yield MatchedPairs.virtual(existing, int(part.rows.variant[0]), self.group)
            return
        for found, rows in self.pairs(events, first, last):
            if self.part.shape.virtual:
                yield MatchedPairs.virtual(distinct_values(found), int(part.rows.variant[0]), self.group)
            else:
                yield MatchedPairs.of(found, part.rows, rows, self.group_of(rows))

    def _checked(self, events: EventColumns, pairs: Pairs) -> Pairs:
        """Return the pairs with a live entry, an event time within the entry's window and a TRUE residual."""
        found, rows = pairs
        part = self.part
        keep: NDArray[np.bool_] | None = None if part.alive is None else part.alive[rows]
        if not self.part.shape.virtual and part.rows.windowed:
            inside = part.rows.in_window(rows, self.source.time_ms[found])
            keep = inside if keep is None else keep & inside
        if keep is not None:
            found, rows = found[keep], rows[keep]
        shape = self.part.shape
        if shape.residual and found.size:
            group_id = shape.plan.group_id
            with charged(group_id, lambda: (group_id,)):
                true = holds(shape.residual, events, found, shape.types, part.rows.constants, rows)
            found, rows = found[true], rows[true]
        return found, rows
