"""The replicas of tables in the workers, from the workers' latest reports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import msgspec

from gateway.state.working_copy import WorkingCopy
from grouping.model.table import Table
from grouping.store.notes import ReplicaNote

__all__ = ["ReplicaFigures", "Replicas"]

_FRESH_MS = 1_000
"""Time for which figures are used before the notes are read again."""
_APART_MS = 60_000
"""A note is ignored if it is older than the newest note on the same table by more than this, since the worker that
wrote the older note may have ended."""
_WAITING_MS = 60_000
"""A report that a micro-batch waits is ignored if it is older than this, since the worker that wrote it may have
died."""


@dataclass(frozen=True, slots=True)
class ReplicaFigures:
    """The state of a table, from the reports of its replicas."""

    rows: int
    nbytes: int
    """The memory of the table's largest replica, in bytes."""
    workers: int
    """The number of workers that hold the table."""
    reached: dict[int, int]
    """Partition → the offset after the last change that at least one worker has read."""
    waiting: bool
    """Whether a micro-batch waits until a worker has read the table, because many changes are not read yet."""
    by_evaluator: dict[str, int] = field(default_factory=dict)
    """Name of an evaluator → the memory of the table's largest replica in the evaluator's workers, in bytes."""
    split_keys: bool = False
    """Whether a worker found a key in two partitions."""

    @classmethod
    def of(cls, notes: Sequence[ReplicaNote], now_ms: int) -> ReplicaFigures | None:
        """Combine the notes of several workers; None without notes."""
        if not notes:
            return None
        newest = max(note.at_ms for note in notes)
        fresh = [note for note in notes if note.at_ms > newest - _APART_MS]
        last = max(fresh, key=lambda note: (sum(note.reached.values()), note.at_ms))
        reached: dict[int, int] = {}
        for note in fresh:
            reached |= {each: max(offset, reached.get(each, 0)) for each, offset in note.reached.items()}
        most: dict[str, int] = {}
        for note in fresh:
            most[note.evaluator] = max(note.nbytes, most.get(note.evaluator, 0))
        waiting = any(note.waiting and note.at_ms > now_ms - _WAITING_MS for note in fresh)
        split = any(note.split_keys for note in fresh)
        return cls(last.rows, max(most.values()), len(fresh), reached, waiting, most, split)


class Replicas:
    """Reads the workers' notes on tables, at most once a second."""

    def __init__(self, working: WorkingCopy) -> None:
        self._working = working
        self._known: dict[str, ReplicaFigures] = {}
        """`Table.source_id` → figures, for the tables that at least one worker holds."""
        self._read_ms: int | None = None

    def of(self, table: Table, now_ms: int) -> ReplicaFigures | None:
        """Return the state of a table; None if no worker holds the table."""
        self._refresh(now_ms)
        return self._known.get(table.source_id)

    def nbytes(self, evaluator: str, now_ms: int) -> int:
        """Return the bytes that all tables take in a worker of an evaluator.

        The largest figure of each table may come from another worker, so the sum is an upper bound.
        """
        self._refresh(now_ms)
        return sum(figures.by_evaluator.get(evaluator, 0) for figures in self._known.values())

    def _refresh(self, now_ms: int) -> None:
        if self._read_ms is not None and 0 <= now_ms - self._read_ms < _FRESH_MS:
            return
        self._read_ms = now_ms
        tables = self._working.inventory.tables.values()
        noted = self._working.evaluator.replicas([table.source_id for table in tables])
        found = {source_id: ReplicaFigures.of(_readable(bodies), now_ms) for source_id, bodies in noted.items()}
        self._known = {source_id: figures for source_id, figures in found.items() if figures is not None}


def _readable(bodies: Iterable[bytes]) -> list[ReplicaNote]:
    """Return the readable notes; a note by a worker of another version is skipped, and soon replaced."""
    notes = []
    for body in bodies:
        with suppress(msgspec.MsgspecError):
            notes.append(ReplicaNote.unpack(body))
    return notes
