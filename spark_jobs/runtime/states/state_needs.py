"""The needs of live entries over a computation: the columns of its state, each with the first position that needs it.

In this module, a *name* is the name of a column; for frames, the column has the results of a window function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from grouping.model.catalog import Stream
from grouping.plan.computation import Computation
from grouping.plan.group import GroupPlan, SelectList
from grouping.settings.settings import Settings
from spark_jobs.engine.constants.constant_cache import Snapshot
from spark_jobs.engine.operators.framed_states import FramedState, fold_framed
from spark_jobs.engine.operators.frames.frame_rows import FrameRows
from spark_jobs.engine.operators.frames.operator import FrameOperator, read_values
from spark_jobs.engine.operators.log_state import LogState
from spark_jobs.engine.operators.row_before.last_rows import LastRows
from spark_jobs.engine.operators.row_before.operator import RowBeforeOperator
from spark_jobs.engine.operators.timed import timed_operator
from spark_jobs.engine.operators.timed_operator import TimedOperator, columns_read
from spark_jobs.engine.operators.timed_state import TimedState
from spark_jobs.engine.rows.row_source import RowSource
from spark_jobs.engine.stages.task import KeptRows
from spark_jobs.engine.stages.whole_rows import whole_rows

__all__ = ["ALL_ROWS", "StateNeeds", "needs_of"]

ALL_ROWS = ""
"""In place of a column's name: means the rows themselves, whatever columns they have."""


class StateNeeds(Protocol):
    """The needs of a computation with a state, under one version of the constant tables."""

    @property
    def computation(self) -> Computation:
        """The computation."""

    @property
    def names(self) -> frozenset[str]:
        """The names of the columns that the state must have."""

    def since(self, partition: int) -> Mapping[str, int]:
        """Return for each name, and for `ALL_ROWS`, the position from which on the state must have the column."""

    def prepare(self, state: LogState, partition: int) -> None:
        """Give the state the needs before a task begins.

        Must only be called between two tasks: afterwards, `undo` can no longer undo the changes of the last task.
        """

    def fold(self, state: LogState, rows: RowSource) -> None:
        """Take rows of the log into the state, without results. Rows that the state already has do not change it."""

    def settle(self, state: LogState, watermark: int) -> None:
        """Move the watermark of a state to that of a mark of the clock, and drop the results that are due by then.

        The change cannot be undone.
        """


@dataclass(frozen=True, slots=True)
class _EdgeNeeds:
    """The columns that the entries read in the previous row of a key."""

    computation: Computation
    operator: RowBeforeOperator
    begins: tuple[tuple[frozenset[str], Callable[[int], int]], ...]
    """For each part of a constant table: the columns that the part's entries read, and a function.

    The function takes a source partition, and returns the least offset at which one of these entries begins.
    """

    @classmethod
    def of(cls, settings: Settings, stream: Stream, computation: Computation, snapshot: Snapshot) -> _EdgeNeeds:
        """Collect the needs of the groups over a computation."""
        assert computation.before is not None, "the computation has previous rows"
        plans = [table.shape.plan for table in snapshot.tables]
        operator_of = partial(
            RowBeforeOperator.of,
            stream,
            computation.before,
            last_row_days=settings.limits.last_row_days,
            value_bytes=settings.evaluator.value_bytes,
        )
        operator = operator_of(plans)
        if stream.changes_of:  # a query over a table also needs the rows from before its begin
            return cls(computation, operator, ((operator.names | {ALL_ROWS}, lambda partition: 0),))
        begins = []
        for table in snapshot.tables:
            names = operator_of([table.shape.plan]).names | {ALL_ROWS}
            begins += [(names, part.rows.begins.least) for part in table.parts if part.rows.begins is not None]
        return cls(computation, operator, tuple(begins))

    @property
    def names(self) -> frozenset[str]:
        """The columns."""
        return self.operator.names

    def since(self, partition: int) -> dict[str, int]:
        """Return for each column the position from which on rows must have the column."""
        found: dict[str, int] = {}
        for names, least in self.begins:
            begin = least(partition)
            for name in names:
                found[name] = min(begin, found.get(name, begin))
        return found

    def prepare(self, state: LogState, partition: int) -> None:
        """Do nothing: the state keeps the columns that it has."""

    def fold(self, state: LogState, rows: RowSource) -> None:
        """Keep the last row of each key."""
        assert isinstance(state, LastRows), "a state of this kind"
        whole = whole_rows(rows, KeptRows(self.operator, state))
        if whole.count and (kept := self.operator.prepared(whole)).count:
            self.operator.fold(state, kept)

    def settle(self, state: LogState, watermark: int) -> None:
        """Do nothing: edges do not depend on the clock."""


@dataclass(frozen=True, slots=True)
class _FrameNeeds:
    """The window functions that the entries use, in their predicates or SELECT lists."""

    computation: Computation
    operator: FrameOperator
    begins: tuple[tuple[frozenset[str], NDArray[np.int64]], ...]
    """Pairs of a set of window functions and the distinct begins of the live entries that use these functions.

    The begins are a matrix with a row for each begin and a column for each source partition (`Begins.offsets`).
    """

    @classmethod
    def of(cls, computation: Computation, snapshot: Snapshot, value_bytes: int) -> _FrameNeeds:
        """Collect the needs of the groups over a computation."""
        operator = FrameOperator.over(computation, snapshot, value_bytes)
        return cls(computation, operator, _live_begins(snapshot, read_values))

    @property
    def names(self) -> frozenset[str]:
        """The names of the window functions' columns."""
        return frozenset(value.column.stored for value in self.operator.values)

    def since(self, partition: int) -> dict[str, int]:
        """Return for each window function the begin of the first live entry that uses the function."""
        return _least(self.begins, partition)

    def prepare(self, state: LogState, partition: int) -> None:
        """Note which window functions are used, how far back their frames reach, and where the frames may begin.

        The frames of a window function contain no rows from before the begin of the first query that uses the function.
        """
        assert isinstance(state, FrameRows), "a state of this kind"
        state.keep(self.names)
        state.reach, state.visible = self.operator.reach, self.since(partition)

    def fold(self, state: LogState, rows: RowSource) -> None:
        """Keep the rows for which WHERE is TRUE."""
        assert isinstance(state, FrameRows), "a state of this kind"
        self.operator.fold(state, rows)

    def settle(self, state: LogState, watermark: int) -> None:
        """Do nothing: frames do not depend on the clock."""


@dataclass(frozen=True, slots=True)
class _TimedNeeds:
    """For rows that wait for the watermark: the columns that entries read in predicates or SELECT lists."""

    computation: Computation
    operator: TimedOperator[Any, Any]
    begins: tuple[tuple[frozenset[str], NDArray[np.int64]], ...]
    """As `_FrameNeeds.begins`, but with columns in place of window functions."""

    @classmethod
    def of(cls, stream: Stream, computation: Computation, snapshot: Snapshot, settings: Settings) -> _TimedNeeds:
        """Collect the needs of the groups over a computation."""
        assert computation.timed is not None, "the rows of the computation wait for the watermark"
        operator = timed_operator(stream, computation, computation.timed, snapshot, settings)
        return cls(computation, operator, _live_begins(snapshot, partial(columns_read, stream)))

    @property
    def names(self) -> frozenset[str]:
        """The columns."""
        return frozenset(column.stored for column in self.operator.reads)

    def since(self, partition: int) -> dict[str, int]:
        """Return for each column the begin of the first live entry that reads the column."""
        return _least(self.begins, partition)

    def prepare(self, state: LogState, partition: int) -> None:
        """Drop columns that no entry reads."""
        state.keep(self.names)

    def fold(self, state: LogState, rows: RowSource) -> None:
        """Keep the rows that wait."""
        assert isinstance(state, TimedState), "a state of this kind"
        self.operator.fold(state, rows)

    def settle(self, state: LogState, watermark: int) -> None:
        """Remove the rows that are complete at a watermark."""
        assert isinstance(state, TimedState), "a state of this kind"
        self.operator.advance(state, watermark, undoable=False)


@dataclass(frozen=True, slots=True)
class _FramedNeeds:
    """The window functions that the entries use, and the needs of the node above the frames."""

    frames: _FrameNeeds
    above: _EdgeNeeds | _TimedNeeds

    @property
    def computation(self) -> Computation:
        """The computation."""
        return self.frames.computation

    @property
    def names(self) -> frozenset[str]:
        """The names of the window functions' columns, and of the columns of the node above the frames.

        If a column of this node holds the result of a window function, both have the same name.
        """
        return self.frames.names | self.above.names

    def since(self, partition: int) -> dict[str, int]:
        """Return for each name the begin of the first entry that reads the column of this name."""
        found = self.above.since(partition)
        for name, begin in self.frames.since(partition).items():
            found[name] = min(begin, found.get(name, begin))
        return found

    def prepare(self, state: LogState, partition: int) -> None:
        """Note which window functions are used, and drop columns that no entry reads."""
        assert isinstance(state, FramedState), "a state of this kind"
        state.keep(self.names)
        self.frames.prepare(state.frames, partition)

    def fold(self, state: LogState, rows: RowSource) -> None:
        """Keep the rows of the frames, and take the rows with their window functions into the state above."""
        assert isinstance(state, FramedState), "a state of this kind"
        fold_framed(self.frames.operator, state, rows, partial(self.above.fold, state.above))

    def settle(self, state: LogState, watermark: int) -> None:
        """Move the watermark of the state above the frames."""
        assert isinstance(state, FramedState), "a state of this kind"
        self.above.settle(state.above, watermark)


def _live_begins(
    snapshot: Snapshot, read: Callable[[GroupPlan, SelectList], Iterable[str]]
) -> tuple[tuple[frozenset[str], NDArray[np.int64]], ...]:
    """Return sets of names, each with the distinct begins of the live entries that read these names.

    Args:
        snapshot: The tables of the entries.
        read: Returns the names that a group and a SELECT list read.
    """
    found = []
    for table in snapshot.tables:
        for part in table.parts:
            rows = part.rows
            assert rows.begins is not None, "entries over a state have begins"
            for variant in part.variants.tolist():
                select = snapshot.selects[snapshot.select_of[variant]]
                live = rows.variant == variant if part.alive is None else part.alive & (rows.variant == variant)
                own = rows.begins.take(np.flatnonzero(live)).pruned()
                if own.codes.size:
                    found.append((frozenset((ALL_ROWS, *read(table.shape.plan, select))), own.offsets))
    return tuple(found)


def _least(begins: Iterable[tuple[frozenset[str], NDArray[np.int64]]], partition: int) -> dict[str, int]:
    """Return for each name the least offset in a partition at which an entry that reads the name begins."""
    found: dict[str, int] = {}
    for names, offsets in begins:
        begin = int(offsets[:, min(partition, offsets.shape[1] - 1)].min())
        for name in names:
            found[name] = min(begin, found.get(name, begin))
    return found


def needs_of(settings: Settings, stream: Stream, computation: Computation, snapshot: Snapshot) -> StateNeeds | None:
    """Return the needs of the groups over a computation; None if the computation has no state.

    Args:
        settings: The evaluator's settings.
        stream: The stream of the events.
        computation: The computation.
        snapshot: The tables of the groups over it.
    """
    value_bytes = settings.evaluator.value_bytes
    frames = None if computation.frames is None else _FrameNeeds.of(computation, snapshot, value_bytes)
    edges = None if computation.before is None else _EdgeNeeds.of(settings, stream, computation, snapshot)
    timed = None if computation.timed is None else _TimedNeeds.of(stream, computation, snapshot, settings)
    above = edges or timed
    return above if frames is None else frames if above is None else _FramedNeeds(frames, above)
