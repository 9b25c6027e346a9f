"""The first records of a stream: each worker counts the dead letters among them, and adds its count in Redis."""

from __future__ import annotations

import logging

import pyarrow as pa

from grouping.model.errors import OperationalError
from grouping.model.ids import StreamId
from grouping.store.first_records import FIRST_RECORDS, FirstRecordsStore
from spark_jobs.engine.rows.events import Events
from spark_jobs.engine.rows.headers import unpacked_headers

__all__ = ["FirstLetters"]

log = logging.getLogger(__name__)


class FirstLetters:
    """The outcomes of the first records of one stream in a worker. Redis adds up the counts of all workers.

    The counts are approximate: a micro-batch that is evaluated again is counted again, and two workers that count at
    the same time may exceed the number of records to count.
    """

    def __init__(self, stream_id: StreamId, store: FirstRecordsStore) -> None:
        """Begin without records.

        Args:
            stream_id: The stream.
            store: The counts of all workers.
        """
        self._stream_id = stream_id
        self._store = store
        self._details: list[str | None] = []
        """For each record of the task, in order: the detail of its dead letter; None for a good record."""
        self._is_over = False

    def take(self, events: Events, letters: pa.RecordBatch | None) -> None:
        """Take note of a decoded batch.

        Args:
            events: The good records.
            letters: The dead letters of the bad records; None if there are none.
        """
        left = FIRST_RECORDS - len(self._details)
        if self._is_over or left <= 0:
            return
        # A record may have several events, and bad elements in addition.
        found: dict[int, str | None] = dict.fromkeys(events.source["offset"][:left].to_pylist())
        if letters is not None:
            for packed in letters["headers"][:left].to_pylist():
                headers = dict(unpacked_headers(packed))
                offset = int(headers["source"].rpartition(b"/")[2])
                found[offset] = headers["detail"].decode("utf-8", "replace")
        self._details += [found[offset] for offset in sorted(found)[:left]]

    def report(self) -> None:
        """Add the outcomes of the task's first records in Redis, unless enough records of the stream are counted."""
        details, self._details = self._details, []
        if self._is_over or not details:
            return
        try:
            counted = self._store.count(self._stream_id)
            if counted < FIRST_RECORDS:
                details = details[: FIRST_RECORDS - counted]
                counted = self._store.add(self._stream_id, len(details), [each for each in details if each is not None])
            self._is_over = counted >= FIRST_RECORDS
        except OperationalError as error:
            log.warning("first records not counted", extra={"stream": self._stream_id, "reason": error.message})
