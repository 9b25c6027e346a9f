"""A task of the evaluator, as its stages use it, and the inputs of stages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa

from grouping.model.catalog import Stream
from grouping.plan.computation import Computation
from grouping.settings.settings import Settings
from grouping.store.notes import TableVersion
from spark_jobs.engine.constants.constant_cache import Snapshot
from spark_jobs.engine.constants.load import Loads
from spark_jobs.engine.isolation.step import Records
from spark_jobs.engine.isolation.unit_guard import UnitGuard
from spark_jobs.engine.match.residual import evaluate_expression
from spark_jobs.engine.operators.aggregate.counting import AggregateCounting
from spark_jobs.engine.operators.framed_states import FramedState, timed_state
from spark_jobs.engine.operators.frames.frame_rows import FrameRows
from spark_jobs.engine.operators.frames.operator import FrameOperator
from spark_jobs.engine.operators.log_state import LogState
from spark_jobs.engine.operators.lookup_join.join import LookupJoinOperator
from spark_jobs.engine.operators.lookup_join.table_view import TableView
from spark_jobs.engine.operators.operator import Operator
from spark_jobs.engine.operators.row_before.key_numbers import key_values
from spark_jobs.engine.operators.row_before.last_rows import LastRows
from spark_jobs.engine.operators.row_before.operator import RowBeforeOperator
from spark_jobs.engine.operators.state_kinds import state_kind
from spark_jobs.engine.operators.timed import timed_operator
from spark_jobs.engine.operators.timed_operator import TimedOperator
from spark_jobs.engine.operators.timed_state import TimedState
from spark_jobs.engine.results.encode import EvaluateExpression
from spark_jobs.engine.rows.arrays import Ints
from spark_jobs.engine.rows.events import Events, arrow_type
from spark_jobs.engine.rows.matches import Matches
from spark_jobs.engine.rows.output import dead_letters
from spark_jobs.engine.rows.row_source import RowSource
from spark_jobs.engine.rows.rows_before import RowsBefore

__all__ = ["Found", "GroupRows", "JoinedGroups", "KeptRows", "Observer", "Task", "Then"]

Then = Callable[[Any], Records]
"""Runs the next stages, and yields their records."""


class GroupRows(NamedTuple):
    """Rows, and the constant tables of the groups over these rows."""

    rows: RowSource
    snapshot: Snapshot
    before: RowsBefore | None = None
    """The previous rows of the same keys, for groups whose results are edges; else None."""


class Found(NamedTuple):
    """Rows, and their matches with entries of the constant tables."""

    rows: RowSource
    matches: Matches


class JoinedGroups(NamedTuple):
    """A computation, and the groups over its rows."""

    computation: Computation
    operator: Operator[Any, Events, tuple[int, RowSource | None]]
    snapshot: Snapshot
    before: KeptRows | None = None
    """The operator and state of a computation that adds the previous row of the same key to each row; else None."""
    frames: KeptFrames | None = None
    """The operator and state of a computation with frames; else None."""
    timed: KeptTimed | None = None
    """The operator and state of a computation whose rows wait for the watermark; else None."""
    state: LogState | None = None
    """The state of the computation; None if it keeps no state."""


class KeptRows(NamedTuple):
    """The operator that finds the previous rows of keys, and its state in the task's source partition."""

    operator: RowBeforeOperator
    state: LastRows

    def numbers(self, rows: RowSource) -> Ints:
        """Return the number of each row's key (`whole_rows.RowsByKey`)."""
        return self.operator.numbers(self.state, rows)

    def values(self, name: str, numbers: Ints) -> pa.Array | None:
        """Return a column of the kept rows of keys: NULL for a key without a row; None if no row was ever kept."""
        return self.state.values(name, numbers)

    def keys(self) -> dict[str, pa.Array]:
        """Return the key columns of all kept rows, by stored name; an empty dict if no row was ever kept."""
        there = self.state.present()
        kept = self.state.taken((column.stored for column in self.operator.by), there)
        return {
            column.stored: kept[column.stored] if column.stored in kept else key_values(keys, arrow_type(column.type))
            for column, keys in zip(self.operator.by, self.state.keys.columns(there), strict=False)
        }


class KeptFrames(NamedTuple):
    """The operator that computes window functions, and its state in the task's source partition."""

    operator: FrameOperator
    state: FrameRows


class KeptTimed(NamedTuple):
    """The operator of rows that wait for the watermark, and its state in the task's source partition."""

    operator: TimedOperator[Any, Any]
    state: TimedState


class Observer:
    """Observes the progress of a task; this base class does nothing."""

    def decoded(self, events: Events, letters: pa.RecordBatch | None) -> None:
        """Take note of decoded events, and of the dead letters for the other records."""

    def operated(self, rows: RowSource) -> None:
        """Take note of the rows of a computation over the events that were decoded last."""

    def found(self, rows: RowSource, matches: Matches) -> None:
        """Take note of matches, before their records are made."""

    def written(self, results: pa.RecordBatch) -> None:
        """Take note of records of results; some of them may be dead letters."""

    def finished(self, rows: RowSource, matches: Matches) -> None:
        """Take note of matches, after all their records were made."""


@dataclass(frozen=True, slots=True)
class Task:
    """The objects that all stages of a task use."""

    stream: Stream
    settings: Settings
    version: TableVersion
    """The version of the constant tables."""
    guard: UnitGuard
    over_events: Snapshot
    """The constant tables of the groups over the events themselves."""
    joins: Sequence[JoinedGroups]
    counting: AggregateCounting
    evaluate: EvaluateExpression
    loads: Loads = field(default_factory=Loads)
    """Counts the costs of each constant table."""
    observer: Observer = field(default_factory=Observer)

    @classmethod
    def of(
        cls,
        stream: Stream,
        settings: Settings,
        version: TableVersion,
        guard: UnitGuard,
        snapshot: Snapshot,
        views: Mapping[str, TableView],
        *,
        singly_until: Mapping[int, int] | None = None,
        loads: Loads | None = None,
        observer: Observer | None = None,
        states: Mapping[str, LogState] | None = None,
    ) -> Task:
        """Begin a task.

        Args:
            stream: The stream of the events.
            settings: The evaluator's settings.
            version: The version of the constant tables.
            guard: Runs the steps.
            snapshot: The constant tables.
            views: By table id, the joined tables at the offsets that are pinned for the batch.
            singly_until: By source partition, an offset. Each partial aggregate of events before this offset has only
                the matches of a single offset.
            loads: Counts the costs of each constant table; None to count nothing.
            observer: Observes the progress of the task.
            states: By computation id, the states of operators; None to begin without earlier rows.
        """
        value_bytes, event_rows = settings.evaluator.value_bytes, settings.evaluator.event_rows
        evaluate = partial(evaluate_expression, value_bytes=value_bytes)

        def too_large(source: pa.RecordBatch, details: Mapping[int, str]) -> pa.RecordBatch:
            return dead_letters(source, details, "result-too-large", stream, settings)

        parts = snapshot.by_computation()
        joins = [
            _joined_groups(
                stream,
                each,
                LookupJoinOperator(each, views, value_bytes, event_rows),
                parts[each.computation_id],
                None if states is None or not each.has_state else states[each.computation_id],
                settings,
            )
            for each in snapshot.computations
        ]
        counting = AggregateCounting(evaluate, too_large, snapshot.bounds, singly_until)
        return cls(
            stream,
            settings,
            version,
            guard,
            parts.get("") or snapshot.over(""),
            joins,
            counting,
            evaluate,
            loads or Loads(),
            observer or Observer(),
        )


def _joined_groups(
    stream: Stream,
    computation: Computation,
    operator: LookupJoinOperator,
    snapshot: Snapshot,
    state: LogState | None,
    settings: Settings,
) -> JoinedGroups:
    """Return a computation for a task; without a state, the computation begins without earlier rows."""
    before = frames = timed = None
    value_bytes = settings.evaluator.value_bytes
    if state is None and (kind := state_kind(computation)) is not None:
        state = kind()
    if computation.frames is not None:
        rows = state.frames if isinstance(state, FramedState) else state
        assert isinstance(rows, FrameRows), "the computation has frames"
        frames = KeptFrames(FrameOperator.over(computation, snapshot, value_bytes), rows)
    if computation.before is not None:
        last = state.above if isinstance(state, FramedState) else state
        assert isinstance(last, LastRows), "the computation has a RowBefore"
        plans = [table.shape.plan for table in snapshot.tables]
        days = settings.limits.last_row_days
        before = KeptRows(RowBeforeOperator.of(stream, computation.before, plans, days, value_bytes), last)
    if computation.timed is not None:
        waiting = timed_state(state)
        assert waiting is not None, "the rows of the computation wait for the watermark"
        timed = KeptTimed(timed_operator(stream, computation, computation.timed, snapshot, settings), waiting)
    return JoinedGroups(computation, operator, snapshot, before, frames, timed, state)
