"""Ranges of source partitions, read by a single consumer, which gets many partitions of a broker in one request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import compress
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Message

from grouping.model.errors import OperationalError
from grouping.settings.settings import Settings
from schemas.record_headers import headers_of
from spark_jobs.engine.rows.record_fields import HEADERS, readable_headers
from spark_jobs.runtime.kafka.positioned_consumer import PartitionUnreadable, PositionedConsumer, SourcePlace

__all__ = ["RangeReader", "RecordUnreadable", "SourceRange", "record_batch"]

_POLL_SECONDS = 1.0
_DOUBT = 1
"""The reader checks that the topics exist after this many polls in a row that bring no record."""
_PATIENCE = 20
"""The reader gives up after this many polls in a row that bring no record, although it has not reached the end."""
_TOGETHER = 5_000
"""The largest number of records in ranges that are read together; a longer range is read by itself."""
_HELD_BYTES = 32_000_000
_MOST_MILLIS = (2**63 - 1) // 1000
"""The latest timestamp, in milliseconds, whose value in microseconds fits into 64 bits."""


class SourceRange(NamedTuple):
    """A range of records of a source partition."""

    topic: str
    partition: int
    first: int
    end: int
    """The offset after the last record."""

    @property
    def place(self) -> SourcePlace:
        """The topic and the partition."""
        return self.topic, self.partition


class RecordUnreadable(OperationalError):
    """A record's timestamp is out of range. The message names the topic in the same words as Spark's own source."""

    def __init__(self, message: Message) -> None:
        place = f"topic {message.topic()} partition {message.partition()} offset {message.offset()}"
        super().__init__(f"Record at {place} has a timestamp that is too large")


class RangeReader:
    """Reads ranges of records. Only a single thread of the process that made the reader may use it."""

    def __init__(self, settings: Settings, held_bytes: int = _HELD_BYTES) -> None:
        """Connect.

        Args:
            settings: The evaluator's settings.
            held_bytes: If the records of incomplete ranges have at least this many bytes, fewer ranges are read
                together.
        """
        self._held_bytes = held_bytes
        self._consumer = PositionedConsumer(settings, settings.clients.evaluator_lane)

    def read(self, ranges: Sequence[SourceRange]) -> Iterator[tuple[SourceRange, Iterator[pa.RecordBatch]]]:
        """Yield ranges in the order in which they are complete, each with all its records.

        Args:
            ranges: The ranges, at most one for each partition. Readers of committed records must already be able to
                read up to the end of each range.

        Yields:
            A range, and its records in their order, as `record_batch` makes them. The caller must take the records
            before it asks for the next range.

        Raises:
            PartitionUnreadable: Kafka refuses a partition, or its topic was created again with fewer records.
            OperationalError: Kafka failed, or records that must be there did not come.
        """
        try:
            for together in _together(ranges):
                yield from self._read(together)
        except PartitionUnreadable:
            raise
        except KafkaException as exc:
            raise OperationalError("source partitions cannot be read", detail=str(exc)) from exc
        finally:
            self._consumer.end()

    def close(self) -> None:
        """Disconnect."""
        self._consumer.close()

    def _read(self, ranges: Sequence[SourceRange]) -> Iterator[tuple[SourceRange, Iterator[pa.RecordBatch]]]:
        if len(ranges) == 1:
            yield ranges[0], self._pieces(ranges[0])
            return
        left = {each.place: each for each in ranges}
        held: dict[SourcePlace, list[Message]] = {place: [] for place in left}
        size = 0
        self._consumer.begin({place: each.first for place, each in left.items()})
        while left and size < self._held_bytes:
            for message in self._taken(left):
                held[str(message.topic()), int(message.partition() or 0)].append(message)
                size += _size(message)
            for each in [each for place, each in left.items() if self._consumer.reached[place] >= each.end]:
                messages = held.pop(each.place)
                size -= sum(map(_size, messages))
                del left[each.place]
                self._consumer.leave([each.place])
                yield each, iter([record_batch(messages, each.end)])
        rest = list(left.values())
        for half in (rest[: len(rest) // 2], rest[len(rest) // 2 :]):
            if half:
                yield from self._read(half)

    def _pieces(self, wanted: SourceRange) -> Iterator[pa.RecordBatch]:
        """Yield the records of a range, some megabytes at a time."""
        self._consumer.begin({wanted.place: wanted.first})
        held, size = list[Message](), 0
        while held or self._consumer.reached[wanted.place] < wanted.end:
            complete = self._consumer.reached[wanted.place] >= wanted.end
            if not complete:
                records = self._taken([wanted.place])
                held += records
                size += sum(map(_size, records))
            if complete or size >= self._held_bytes:
                yield record_batch(held, wanted.end)
                held, size = [], 0

    def _taken(self, left: object) -> list[Message]:
        records = self._consumer.take(_POLL_SECONDS)
        for topic, _ in self._consumer.rewound:
            raise PartitionUnreadable(topic, KafkaError(KafkaError.OFFSET_OUT_OF_RANGE))
        if self._consumer.silent == _DOUBT:
            self._consumer.check_topics()
        if self._consumer.silent >= _PATIENCE:
            raise OperationalError("source partitions do not give all their records", detail=f"{left}")
        return records


def _together(ranges: Sequence[SourceRange]) -> Iterator[list[SourceRange]]:
    """Yield lists of ranges that are read together."""
    together: list[SourceRange] = []
    records = 0
    for each in ranges:
        if together and records + each.end - each.first > _TOGETHER:
            yield together
            together, records = [], 0
        together.append(each)
        records += each.end - each.first
    if together:
        yield together


def _size(message: Message) -> int:
    return len(message) + len(message.key() or b"")


def record_batch(messages: Sequence[Message], end: int) -> pa.RecordBatch:
    """Return records of a partition with the columns of Spark's Kafka source, including headers.

    Args:
        messages: The records, in their order.
        end: Records at this offset and later ones are left out.

    Raises:
        RecordUnreadable: A record's timestamp is too large.
    """
    offsets = np.fromiter(map(Message.offset, messages), np.int64, len(messages))
    if (behind := offsets >= end).any():
        messages, offsets = [*compress(messages, ~behind)], offsets[~behind]
    millis = np.fromiter((millis for _, millis in map(Message.timestamp, messages)), np.int64, len(messages))
    for place in np.flatnonzero(np.abs(millis) > _MOST_MILLIS)[:1]:
        raise RecordUnreadable(messages[int(place)])
    return pa.record_batch(
        {
            "key": pa.array([*map(Message.key, messages)], pa.binary()),
            "value": pa.array([*map(Message.value, messages)], pa.binary()),
            "partition": pa.array([*map(Message.partition, messages)], pa.int32()),
            "offset": pa.array(offsets),
            "timestamp": pa.array(millis * 1000, pa.timestamp("us", tz="UTC")),
            "headers": _headers([*map(headers_of, messages)]),
        }
    )


def _headers(headers: Sequence[Sequence[tuple[str, bytes | None]] | None]) -> pa.Array:
    if not any(headers):
        return pa.nulls(len(headers), HEADERS)
    pairs = ([{"key": key, "value": value} for key, value in each or ()] for each in headers)
    return readable_headers(pa.array([each or None for each in pairs], HEADERS))
