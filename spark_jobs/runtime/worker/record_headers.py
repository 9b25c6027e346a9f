"""Reads headers for CQs that need them, as long as Spark's query of the stream does not read headers.

A new CQ that reads `_headers` must not miss an event. A column FROM HEADER that ALTER STREAM has just added must have
its values, too. But Spark's query cannot get a further column while it runs. Therefore the worker itself reads the
headers of the micro-batch from the topic, and leaves a note, by which the driver restarts Spark's query with headers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import pyarrow as pa

from grouping.model.catalog import Stream
from grouping.model.errors import OperationalError
from grouping.settings.settings import Settings
from grouping.store.task_notes import HeaderNotes
from spark_jobs.engine.constants.constant_cache import Snapshot
from spark_jobs.engine.rows.record_fields import HEADERS, readable_headers
from spark_jobs.runtime.kafka.range_reader import RangeReader, SourceRange

__all__ = ["RecordHeaders"]

log = logging.getLogger(__name__)


class RecordHeaders:
    """Adds missing headers to batches of one stream."""

    def __init__(
        self,
        stream: Stream,
        settings: Settings,
        notes: HeaderNotes,
        open_reader: Callable[[Settings], RangeReader] = RangeReader,
    ) -> None:
        """Start without a reader.

        Args:
            stream: The stream.
            settings: The evaluator's settings.
            notes: Where the note for the driver is left.
            open_reader: Opens a reader of the topic.
        """
        self._stream = stream
        self._settings = settings
        self._notes = notes
        self._open_reader = open_reader
        self._can_be_read = "_headers" in stream.record_fields
        self._is_declared = any(column.place.kind == "header" for column in stream.columns)

    def completed(self, batch: pa.RecordBatch, snapshot: Snapshot) -> pa.RecordBatch:
        """Return a batch of source records, with headers if a column or the groups of the snapshot need them.

        Args:
            batch: At least one record; all records must be of the same partition.
            snapshot: The constant tables by which the batch is evaluated.

        Raises:
            OperationalError: The headers cannot be read from Kafka.
        """
        needed = self._is_declared or (self._can_be_read and snapshot.reads_headers)
        if not needed:
            return batch
        if "headers" in batch.schema.names:
            own = batch["headers"]
            place, read = batch.schema.get_field_index("headers"), readable_headers(own)
            return batch if read is own else batch.set_column(place, "headers", read)
        try:
            self._notes.tell(self._stream.stream_id)
        except OperationalError as error:
            log.warning(
                "request for headers not written", extra={"stream": self._stream.stream_id, "reason": error.message}
            )
        first, last = batch["offset"][0].as_py(), batch["offset"][-1].as_py()
        wanted = SourceRange(self._stream.topic, batch["partition"][0].as_py(), first, last + 1)
        found: dict[int, list[dict[str, object]] | None] = {}
        for _, pieces in self._open_reader(self._settings).read([wanted]):
            for piece in pieces:
                found.update(zip(piece["offset"].to_pylist(), piece["headers"].to_pylist(), strict=True))
        offsets = batch["offset"].to_pylist()
        if missing := [each for each in offsets if each not in found]:
            raise OperationalError(
                "headers cannot be read", detail=f"The record {wanted.topic}/{wanted.partition}/{missing[0]} is gone."
            )
        return batch.append_column("headers", pa.array([found[each] for each in offsets], HEADERS))
