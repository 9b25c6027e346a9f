"""Dead letters for events that could not be evaluated for some of the queries.

These are a share (`grouping.store.quarantine`) that is left out, or all over a join that makes too many rows of one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from grouping.model.catalog import Stream
from grouping.model.computation import Computation
from grouping.settings.settings import Settings
from grouping.store.quarantine import WITHHELD, parts_of
from spark_jobs.batch.output import dead_letters, no_record
from spark_jobs.batch.row_source import RowSource
from spark_jobs.index import Ints

__all__ = ["NotEvaluatedLetters"]

_SINGLE = 1_000
"""Dead letters of a task that name one event each; further events share one for each share and batch of records."""


class NotEvaluatedLetters:
    """Writes these dead letters of one task; the code is ``not-evaluated`` where a share is left out."""

    def __init__(self, stream: Stream, settings: Settings) -> None:
        self._stream = stream
        self._settings = settings
        self._room = _SINGLE
        self.reasons: dict[str, str] = {}
        """Why shares were left out."""
        self.left_out: set[str] = set()
        """Groups and shares that were left out of some events of the task, for whatever reason."""

    def __call__(self, events: RowSource, rows: Ints, share: str, reason: str) -> Iterator[pa.RecordBatch]:
        """Yield the dead letters of some events for a share.

        Args:
            events: The batch.
            rows: Which of them may have met it; ascending.
            share: What is left out.
            reason: Why, without anything that a subscriber or an event says.
        """
        self.reasons[share] = reason
        self.left_out.add(share)
        text = f"{described(share)} was not evaluated for"
        single, others = rows[: self._room], rows[self._room :]
        self._room -= single.size
        details = {row: f"{text} this event: {reason}." for row in single.tolist()}
        if others.size:
            first, last = events.source["offset"].take(pa.array(others[[0, -1]])).to_pylist()
            details[int(others[0])] = f"{text} {others.size} events from offset {first} to {last}: {reason}."
        if details:
            yield dead_letters(events.source, details, "not-evaluated", self._stream, self._settings)

    def withheld(self, events: RowSource, shares: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the dead letter of some events for all that is left out for what others of its subscriber did.

        Args:
            events: The batch.
            shares: What is withheld; there may be hundreds, so that they have one letter together.
        """
        if not shares or not events.count:
            return
        self.left_out.update(shares)
        whose = described(shares[0])
        if others := len(shares) - 1:
            whose += f" and {others} more"
        first, last = events.source["offset"].take(pa.array([0, events.count - 1])).to_pylist()
        were = "were" if others else "was"
        detail = f"{whose} {were} not evaluated for the events from offset {first} to {last}: {WITHHELD}."
        yield dead_letters(events.source, {0: detail}, "not-evaluated", self._stream, self._settings)

    def incomplete(self, share: str, offsets: tuple[int, int, int], matches: int) -> pa.RecordBatch:
        """Return the dead letter of matches that were counted in vain, as their share was left out of other events.

        Args:
            share: The share.
            offsets: Partition, first and last offset of the task's events.
            matches: The number of matches.
        """
        partition, first, last = offsets
        detail = (
            f"{described(share)} was left out of some of the events from offset {first} to {last}:"
            f" none of its matches among them counts, nor do the {matches} that were evaluated."
        )
        return dead_letters(no_record(partition, first), {0: detail}, "not-evaluated", self._stream, self._settings)

    def too_many_rows(self, events: RowSource, row: int, computation: Computation) -> pa.RecordBatch:
        """Return the dead letter (code ``too-many-rows``) of an event that no group over a join was evaluated for."""
        most = self._settings.evaluator.event_rows
        detail = (
            f'Join "{computation.computation_id}" makes more than {most} rows of this event '
            "(CQ_EVALUATOR_EVENT_ROWS): no query over the join was evaluated for it."
        )
        return dead_letters(events.source, {row: detail}, "too-many-rows", self._stream, self._settings)


def described(share: str) -> str:
    """Return what a share is.

    Example:
        >>> described("g_1"), described("g_1/s_2")
        ('Group "g_1"', 'SELECT list "s_2" of group "g_1"')
    """
    group, select = parts_of(share)
    return f'SELECT list "{select}" of group "{group}"' if select else f'Group "{group}"'
