"""The needs of a stream's CQs: headers of records, which cost time to read, and the clock of idle partitions."""

from __future__ import annotations

from collections.abc import Collection

from grouping.model.catalog import Stream
from grouping.model.ids import StreamId
from grouping.settings.settings import Settings
from grouping.store.task_notes import ClockNotes, HeaderNotes

__all__ = ["QueryUse"]


class QueryUse:
    """The streams whose CQs have special needs, as workers have noted in Redis. Only a single thread may use this.

    CQs that read `_headers` need headers. Event-time queries need the clock of idle partitions.
    """

    def __init__(self, settings: Settings) -> None:
        """Begin without the workers' notes."""
        self._headers, self._clock = HeaderNotes(settings), ClockNotes(settings)
        self._with_headers: frozenset[StreamId] = frozenset()
        self._timed: frozenset[StreamId] = frozenset()

    def refresh(self, stream_ids: Collection[StreamId]) -> None:
        """Read the workers' notes.

        Args:
            stream_ids: The live streams.

        Raises:
            StoreUnavailable: Redis does not answer.
        """
        self._with_headers, self._timed = self._headers.noted(stream_ids), self._clock.noted(stream_ids)

    def has_clock(self, stream: Stream) -> bool:
        """Tell whether the stream has an event-time query, so that the lane must evaluate the stream."""
        return stream.stream_id in self._timed

    def has_headers(self, stream: Stream) -> bool:
        """Tell whether the Spark query of a stream needs headers."""
        return stream.stream_id in self._with_headers or any(column.place.kind == "header" for column in stream.columns)
