"""The streams whose Spark query asks Kafka for headers. No other query asks, as each header of a record costs time."""

from __future__ import annotations

from collections.abc import Collection

from grouping.model.catalog import Stream
from grouping.model.ids import StreamId
from grouping.settings.settings import Settings
from grouping.store.task_notes import HeaderNotes

__all__ = ["HeaderUse"]


class HeaderUse:
    """The streams with a column FROM HEADER, or with a query that reads `_headers`. For one thread."""

    def __init__(self, settings: Settings) -> None:
        """Begin without the workers' notes."""
        self._notes = HeaderNotes(settings)
        self._told: frozenset[StreamId] = frozenset()

    def refresh(self, stream_ids: Collection[StreamId]) -> None:
        """Read the workers' notes.

        Args:
            stream_ids: The live streams.

        Raises:
            StoreUnavailable: Redis does not answer.
        """
        self._told = self._notes.told(stream_ids)

    def wanted(self, stream: Stream) -> bool:
        """Tell whether the Spark query of a stream needs headers."""
        return stream.stream_id in self._told or any(column.place.kind == "header" for column in stream.columns)
