"""A worker's observations of one stream."""

from __future__ import annotations

import logging
import time

from grouping.model.catalog import Stream
from grouping.model.errors import OperationalError
from grouping.settings.settings import Settings
from grouping.store.first_records import FirstRecordsStore
from grouping.store.ownership import EvaluatorFences
from grouping.store.quarantine import QuarantineStore
from grouping.store.task_notes import ClockNotes, HeaderNotes, SchemaNotes
from spark_jobs.engine.constants.index_choice import IndexChoice
from spark_jobs.engine.rows.events import Events
from spark_jobs.runtime.worker.first_letters import FirstLetters
from spark_jobs.runtime.worker.quarantine_notes import QuarantineNotes
from spark_jobs.runtime.worker.record_headers import RecordHeaders
from spark_jobs.runtime.worker.record_schemas import RecordSchemas
from spark_jobs.runtime.worker.statistics import StreamSampler

__all__ = ["StreamWatch"]

log = logging.getLogger(__name__)

_CLOCK_SECONDS = 60.0
"""After this time, `note_clock` writes its note again, since Redis may have been emptied."""


class StreamWatch:
    """Observations of a stream, kept between tasks: for the choice of indexes, and as statistics for the gateway."""

    def __init__(self, stream: Stream, settings: Settings, fences: EvaluatorFences | None = None) -> None:
        self.stream_id = stream.stream_id
        self._settings = settings
        self._fences = fences
        self.notes = QuarantineNotes(stream.stream_id, QuarantineStore(settings, fences), _now_ms)
        self.choice = IndexChoice(time.monotonic)
        self._clock_due = 0.0
        self._begin(stream)
        self.last: Events | None = None
        """The latest events of the task."""

    def declare(self, stream: Stream) -> None:
        """Use the declaration of the stream that a task's micro-batch sees."""
        if stream.revision != self._revision:
            self._begin(stream)

    def _begin(self, stream: Stream) -> None:
        """Begin the observations that depend on the declaration."""
        settings, fences = self._settings, self._fences
        self._revision = stream.revision
        self.first = FirstLetters(stream.stream_id, FirstRecordsStore(settings, fences))
        self.schemas = RecordSchemas(settings, SchemaNotes(settings, fences))
        self.headers = RecordHeaders(stream, settings, HeaderNotes(settings, fences))
        self.sampler = StreamSampler(stream, time.time)

    def note_clock(self, now: float) -> None:
        """Note in Redis that the stream has an event-time query, unless the last note is recent.

        Args:
            now: Monotonic seconds.
        """
        if now < self._clock_due:
            return
        self._clock_due = now + _CLOCK_SECONDS
        try:
            ClockNotes(self._settings, self._fences).tell(self.stream_id)
        except OperationalError as error:
            self._clock_due = now
            log.warning("request for the clock not written", extra={"stream": self.stream_id, "reason": error.message})

    def take_last(self) -> Events | None:
        """Return the latest events, and forget them."""
        events, self.last = self.last, None
        return events


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
