"""The stage of operators, which makes the rows of computations over the events and passes them to the groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from grouping.model.errors import InternalError
from spark_jobs.engine.isolation.not_evaluated import NotEvaluatedLetters
from spark_jobs.engine.isolation.step import AnyStep, PlainStep, Records, Units
from spark_jobs.engine.rows.events import Events
from spark_jobs.engine.stages.task import GroupRows, JoinedGroups, Task, Then
from spark_jobs.engine.stages.whole_rows import whole_rows

__all__ = ["ClockMark", "advanced", "operated"]


class ClockMark(NamedTuple):
    """A mark of the clock, which has moved the watermark of an idle partition."""

    partition: int
    watermark: int
    """Epoch milliseconds."""


def operated(task: Task, events: Events, then: Then) -> Iterator[AnyStep]:
    """Pass the events to the groups over events, and the rows of each computation to the groups over its rows."""
    yield PlainStep(lambda: then(GroupRows(events, task.over_events)))
    for each in task.joins:
        yield JoinStep(task, each, events, then)


def advanced(task: Task, mark: ClockMark, then: Then) -> Iterator[AnyStep]:
    """Move the watermark of each computation to a mark of the clock, and pass the rows that are now complete on."""
    for each in task.joins:
        if each.timed is not None:
            yield ClockStep(task, each, mark, then)


class ClockStep:
    """Makes the rows of a computation that a mark of the clock completes (`isolation.step.SharedStep`)."""

    def __init__(self, task: Task, joined: JoinedGroups, mark: ClockMark, then: Then) -> None:
        self._task = task
        self._joined = joined
        self._mark = mark
        self._then = then
        self.ended = False
        """Whether the rows were made."""
        self.account = joined.computation.computation_id
        self.kind = _kind(joined)

    def shared_by(self) -> Units:
        """List the groups."""
        return self._joined.snapshot.groups

    def piece(self) -> GroupRows:
        """Make the rows."""
        timed = self._joined.timed
        assert timed is not None, "`advanced` makes this step only for event-time computations"
        self.ended = True
        found = timed.operator.advance(timed.state, self._mark.watermark)
        rows = timed.operator.rows(self._task.stream, self._mark.partition, found)
        return GroupRows(rows, self._joined.snapshot)

    def passed(self, piece: GroupRows) -> Records:
        """Yield the records of the rows."""
        if piece.rows.count:
            yield from self._then(piece)

    def rest(self, letters: NotEvaluatedLetters, unit: str, reason: str) -> Records:
        """Yield nothing, since a mark of the clock has no events that could become dead letters."""
        yield from ()


class JoinStep:
    """Makes the rows of a computation, once for all groups over it (`isolation.step.SharedStep`)."""

    def __init__(self, task: Task, joined: JoinedGroups, events: Events, then: Then) -> None:
        self._task = task
        self._joined = joined
        self._events = events
        self._then = then
        _, self._slices = joined.operator.step(joined.operator.begin(), events)
        self._done = 0
        self._was_whole = True
        if (state := joined.state) is not None:
            # If the step fails or is left out, the state lacks events; `piece` sets `whole` when all events are joined.
            self._was_whole, state.whole = state.whole, False
        self.account = joined.computation.computation_id
        self.kind = _kind(joined)

    @property
    def ended(self) -> bool:
        """Whether all events are joined."""
        return self._done >= self._events.count

    def shared_by(self) -> Units:
        """List the groups."""
        return self._joined.snapshot.groups

    def piece(self) -> GroupRows | None:
        """Make the rows of the next events; return None if the next event would make too many rows."""
        self._done, rows = next(self._slices)
        if rows is None:
            return None
        joined, before, made = self._joined, None, rows
        if not self._was_whole:
            raise InternalError("the state of a computation lacks events of this task")
        if joined.frames is not None:
            _, (made,) = joined.frames.operator.step(joined.frames.state, rows)
            rows = made
        if joined.before is not None:
            made = rows = joined.before.operator.prepared(whole_rows(rows, joined.before))
            self._task.guard.add(max(rows.count - self._events.count, 0))  # a truncate removes many rows
            _, (before,) = joined.before.operator.step(joined.before.state, rows)
        if joined.timed is not None:
            _, (made,) = joined.timed.operator.step(joined.timed.state, rows)
        if joined.state is not None:
            joined.state.whole = self.ended
        return GroupRows(made, joined.snapshot, before)

    def passed(self, piece: GroupRows | None) -> Records:
        """Yield the records of joined rows, or the dead letter of an event that would make too many rows."""
        if piece is None:
            letters = self._task.guard.not_evaluated
            yield letters.too_many_rows(self._events, self._done - 1, self._joined.computation)
            return
        self._task.observer.operated(piece.rows)
        if piece.rows.count:
            yield from self._then(piece)

    def rest(self, letters: NotEvaluatedLetters, unit: str, reason: str) -> Records:
        """Yield the dead letters of a group for the events after the last joined event."""
        yield from letters(self._events, np.arange(self._done, self._events.count), unit, reason)


def _kind(joined: JoinedGroups) -> str:
    """Return the word that messages use for the work of a computation."""
    if joined.computation.nodes:
        return "join"
    if joined.frames:
        return "frames"
    return "row before" if joined.before else "silences" if joined.computation.silence else "stays"
