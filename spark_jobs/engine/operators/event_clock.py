"""The watermark of a source partition: how the event times of rows move it, and which rows are left out as late."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grouping.model.catalog import Stream
from grouping.settings.settings import Settings
from spark_jobs.engine.index import Ints
from spark_jobs.engine.operators.timed_state import BEGINNING, NEVER, TimedState
from spark_jobs.engine.rows.row_source import RowSource

__all__ = ["NO_TIME", "EventClock", "TimedRows"]

NO_TIME = 2 * BEGINNING
"""Replaces a missing event time; this number is less than every watermark."""


class TimedRows(NamedTuple):
    """The event times of rows, and the watermark after each row."""

    times: Ints
    """The event time of each row in epoch milliseconds; `NO_TIME` if it is NULL, before 1970 or marked in `future`."""
    after: Ints
    """The watermark after each row."""
    left_out: NDArray[np.bool_]
    """Whether the row is left out, because its time is earlier than the watermark; `NO_TIME` always is."""
    future: NDArray[np.bool_]
    """Whether the event time of a row is too far ahead of its record's time; such a row is left out."""

    def at(self, rows: Ints) -> TimedRows:
        """Return some of the rows."""
        return TimedRows(self.times[rows], self.after[rows], self.left_out[rows], self.future[rows])


class EventClock(NamedTuple):
    """The rule by which rows move the watermark. The watermark depends only on the rows and on the marks of the clock.

    A mark sets the watermark of an idle partition (`TimedState.marks`).
    """

    delay_ms: int = 0
    """The number of milliseconds by which the watermark is earlier than the latest event time."""
    future_ms: int = NEVER >> 1
    """The largest number of milliseconds by which an event time may be later than the time of its record."""

    @classmethod
    def of(cls, stream: Stream, settings: Settings) -> EventClock:
        """Return the clock of a stream; the settings have the delay for a stream that does not declare one."""
        limits = settings.evaluator
        return cls(stream.event_time.delay_or(limits.watermark_delay_seconds), round(limits.future_seconds * 1000))

    def timed(self, state: TimedState, rows: RowSource, known: int = 0, *, noted: bool) -> TimedRows:
        """Return the times of rows, and the watermark after each row.

        Args:
            state: The state before the rows; its watermark is not changed.
            rows: The rows of a partition in their order.
            known: The number of rows at the beginning that are skipped, since the state already has them.
            noted: Whether the state notes the rows that are left out. A task counts such rows; a fold of the log, which
                only builds up a state, does not.
        """
        times, offsets = _event_times(rows)[known:], rows.offsets[known:]
        future = times > rows.time_ms[known:] + self.future_ms
        times = np.where(future, NO_TIME, times)
        after, left_out = state.passed(times, offsets, self.delay_ms)
        if noted and left_out.any():
            number = None if rows.number is None else rows.number[known:][left_out]
            state.miss(offsets[left_out], number, future[left_out])
        return TimedRows(times, after, left_out, future)


def _event_times(rows: RowSource) -> Ints:
    """Return the event time of each row, from the column that the stream declares or else the record's time."""
    column = rows.stream.event_time.column
    if column is None:
        return rows.time_ms
    micros = rows.column(column).cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    times: Ints = micros // 1000
    return np.where(times < 0, NO_TIME, times)
