"""Dead letters of events for which some work units (`grouping.store.work_units`) were not evaluated."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from grouping.model.catalog import Stream
from grouping.plan.computation import Computation
from grouping.settings.settings import Settings
from grouping.store.work_units import parts_of
from spark_jobs.engine.index import Ints
from spark_jobs.engine.rows.output import dead_letters, no_record
from spark_jobs.engine.rows.row_source import RowSource

__all__ = ["NotEvaluatedLetters"]

_SINGLE = 1_000
"""The largest number of a task's dead letters for single events.

For further events, there is only a single dead letter for each unit and each batch of records.
"""


class NotEvaluatedLetters:
    """Makes a task's dead letters: ``not-evaluated`` for units that are left out; ``too-many-rows`` for joins."""

    def __init__(self, stream: Stream, settings: Settings) -> None:
        self._stream = stream
        self._settings = settings
        self._room = _SINGLE
        self.reasons: dict[str, str] = {}
        """By unit, why the unit was left out."""

    def __call__(self, events: RowSource, rows: Ints, unit: str, reason: str) -> Iterator[pa.RecordBatch]:
        """Yield the dead letters of some events for a unit.

        Args:
            events: The batch.
            rows: The events that may match the unit, ascending.
            unit: The unit that is left out.
            reason: Why the unit is left out; the reason must not contain any text of a subscriber or an event.
        """
        self.reasons[unit] = reason
        text = f"{described(unit)} was not evaluated for"
        single, others = rows[: self._room], rows[self._room :]
        self._room -= single.size
        details = {row: f"{text} this event: {reason}." for row in single.tolist()}
        if others.size:
            first, last = events.source["offset"].take(pa.array(others[[0, -1]])).to_pylist()
            details[int(others[0])] = f"{text} {others.size} events from offset {first} to {last}: {reason}."
        if details:
            yield dead_letters(events.source, details, "not-evaluated", self._stream, self._settings)

    def of_task(self, offsets: tuple[int, int, int], unit: str, reason: str) -> pa.RecordBatch:
        """Return the dead letter of all events of the task for a unit.

        Args:
            offsets: The partition, the first offset and the last offset of the task's events.
            unit: The unit that is left out.
            reason: Why the unit is left out.
        """
        self.reasons[unit] = reason
        partition, first, last = offsets
        detail = f"{described(unit)} was not evaluated for the events from offset {first} to {last}: {reason}."
        return dead_letters(no_record(partition, first), {0: detail}, "not-evaluated", self._stream, self._settings)

    def incomplete(self, unit: str, offsets: tuple[int, int, int], matches: int) -> pa.RecordBatch:
        """Return the dead letter of matches that are not counted, because their unit was left out for some events.

        Args:
            unit: The unit.
            offsets: The partition, the first offset and the last offset of the task's events.
            matches: The number of matches.
        """
        partition, first, last = offsets
        detail = (
            f"{described(unit)} was not evaluated for some of the events from offset {first} to {last}:"
            f" none of its matches among these events count, not even the {matches} that were found."
        )
        return dead_letters(no_record(partition, first), {0: detail}, "not-evaluated", self._stream, self._settings)

    def too_many_rows(self, events: RowSource, row: int, computation: Computation) -> pa.RecordBatch:
        """Return the dead letter (``too-many-rows``) of an event that joins too many rows.

        No group over the join was evaluated for this event.
        """
        most = self._settings.evaluator.event_rows
        detail = (
            f'Join "{computation.computation_id}" makes more than {most} rows of this event '
            "(CQ_EVALUATOR_EVENT_ROWS): no query over the join was evaluated for it."
        )
        return dead_letters(events.source, {row: detail}, "too-many-rows", self._stream, self._settings)


def described(unit: str) -> str:
    """Return the name of a unit for messages.

    Example:
        >>> described("g_1"), described("g_1/s_2")
        ('Group "g_1"', 'SELECT list "s_2" of group "g_1"')
    """
    group, select = parts_of(unit)
    return f'SELECT list "{select}" of group "{group}"' if select else f'Group "{group}"'
