"""The operator that counts matches: its state is the partial aggregates of one form (`Partials.form`).

A call of Polars takes about as long for a thousand rows as for one row. Therefore the matches of all work units of one
form are aggregated together, many at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import polars as pl

from spark_jobs.engine.operators.aggregate.partials import Partials, packed_states
from spark_jobs.engine.operators.aggregate.records import BY

__all__ = ["PartialTables", "PartialAggregate"]

_LIFTED_ROWS = 100_000
"""The number of matches that are collected before they are aggregated."""
_LIFTED_BYTES = 20_000_000
"""The number of bytes of matches that are collected before they are aggregated."""


@dataclass(slots=True)
class PartialTables:
    """Partial aggregates of one form."""

    lifted: list[pl.DataFrame] = field(default_factory=list)
    """Matches that are still to be aggregated."""
    rows: int = 0
    """The number of matches in `lifted`."""
    bytes: int = 0
    """The bytes of matches in `lifted`."""
    tables: list[pl.DataFrame] = field(default_factory=list)
    """Partial aggregates, in the order of their matches."""


class PartialAggregate:
    """Counts matches of one form (`operators.operator.Operator`)."""

    def __init__(self, partials: Partials) -> None:
        """Take the columns of the form."""
        self.partials = partials

    def begin(self) -> PartialTables:
        """Return the state of no matches."""
        return PartialTables()

    def step(
        self, state: PartialTables, rows: pl.DataFrame | None, watermark: int | None = None
    ) -> tuple[PartialTables, Iterator[pl.DataFrame]]:
        """Take in matches.

        Args:
            state: The partial aggregates of earlier matches.
            rows: Matches, as `Partials.lifted` makes them; None for no matches.
            watermark: The last offset of the task at the task's end, otherwise None. At the end, the output is the
                partial aggregates; the given state stays valid, so that the caller can repeat the call.
        """
        if rows is not None:
            state.lifted.append(rows)
            state.rows += rows.height
            state.bytes += int(rows.estimated_size())
            if state.rows >= _LIFTED_ROWS or state.bytes >= _LIFTED_BYTES:
                self._count(state)
        if watermark is None:
            return state, iter(())
        return self.begin(), iter(self._whole(state))

    def snapshot(self, state: PartialTables) -> bytes:
        """Return the partial aggregates as an Arrow stream; empty if there are none."""
        return b"".join(map(packed_states, self._whole(state)))

    def restore(self, snapshot: bytes) -> PartialTables:
        """Return the state that a snapshot holds."""
        return PartialTables(tables=[pl.read_ipc_stream(snapshot)] if snapshot else [])

    def size(self, state: PartialTables) -> int:
        """Return the bytes of matches and partial aggregates."""
        return state.bytes + sum(int(table.estimated_size()) for table in state.tables)

    def _whole(self, state: PartialTables) -> list[pl.DataFrame]:
        """Return a list with the table of all partial aggregates; empty if there are no matches."""
        if state.lifted:
            self._count(state)
        if len(state.tables) > 1:
            state.tables = [self.partials.merged(_joined(state.tables), BY)]
        return state.tables

    def _count(self, state: PartialTables) -> None:
        state.tables.append(self.partials.counted(_joined(state.lifted), BY))
        state.lifted, state.rows, state.bytes = [], 0, 0


def _joined(tables: list[pl.DataFrame]) -> pl.DataFrame:
    return tables[0] if len(tables) == 1 else pl.concat(tables, how="vertical_relaxed")
