"""Reads records at many places of a topic: neighbouring records in one read, with jumps over long gaps."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from gateway.kafka.driver import END_OF_PARTITION, mapped, reader_config
from gateway.kafka.record import Record, record_of
from grouping.digests.pending_log import Place
from grouping.settings.settings import Settings

__all__ = ["Place", "PlaceReader"]

_FAR = 2_000
"""Gap between two wanted records, in records, from which the reader jumps instead of reading on."""
_AT_ONCE = 5_000
_WAIT_SECONDS = 0.02


class PlaceReader:
    """Reads committed records by their places, as many as the time allows."""

    def __init__(self, settings: Settings, topic: str) -> None:
        self._topic = topic
        self._consumer = Consumer(
            reader_config(
                settings,
                settings.clients.gateway_places,
                isolation_level="read_committed",
                fetch_wait_max_ms=5,
                # Fetches are small, since the neighbours of scattered records are not wanted.
                max_partition_fetch_bytes=256 << 10,
                queued_min_messages=1,
                fetch_queue_backoff_ms=5,  # by default, a second passes between two reads
            )
        )

    def read(self, places: Iterable[Place], seconds: float) -> Iterator[tuple[Place, Record | None]]:
        """Yield each place with its record, or None if the record is gone; places not reached in time are left out.

        The reader waits for a record that was written a moment ago and is still invisible at the broker.

        Raises:
            KafkaUnavailable: Kafka failed; records yielded before are valid.
        """
        wanted = _by_partition(places)
        deadline = time.monotonic() + seconds
        with mapped("reading records by their places"):
            self._consumer.assign([self._place(partition, rest[0]) for partition, rest in wanted.items()])
            try:
                while wanted and time.monotonic() < deadline:
                    yield from self._step(wanted)
            finally:
                self._consumer.unassign()

    def _step(self, wanted: dict[int, deque[int]]) -> Iterator[tuple[Place, Record | None]]:
        """Yield the arrived records at wanted offsets, remove these offsets, and read on."""
        reached: dict[int, int] = {}
        for message in self._some():
            partition, offset = message.partition(), message.offset()
            if partition is None or offset is None or partition not in wanted:
                continue
            rest, there = wanted[partition], _is_record(message)
            while rest and rest[0] < offset:
                yield (partition, rest.popleft()), None
            if there and rest and rest[0] == offset:
                yield (partition, rest.popleft()), record_of(message)
            reached[partition] = offset
        self._go_on(wanted, reached)

    def _some(self) -> list[Message]:
        """Return the records that are there, without waiting for the full count as the driver would."""
        first = self._consumer.poll(_WAIT_SECONDS)
        return [] if first is None else [first, *self._consumer.consume(_AT_ONCE, timeout=0)]

    def _go_on(self, wanted: dict[int, deque[int]], reached: dict[int, int]) -> None:
        """Leave finished partitions, and skip unwanted records."""
        for partition, offset in reached.items():
            rest = wanted[partition]
            if not rest:
                del wanted[partition]
                self._consumer.incremental_unassign([TopicPartition(self._topic, partition)])
            elif rest[0] > offset + _FAR:
                self._consumer.seek(self._place(partition, rest[0]))

    def _place(self, partition: int, offset: int) -> TopicPartition:
        return TopicPartition(self._topic, partition, offset)


def _by_partition(places: Iterable[Place]) -> dict[int, deque[int]]:
    found: dict[int, deque[int]] = {}
    for partition, offset in sorted(set(places)):
        found.setdefault(partition, deque()).append(offset)
    return found


def _is_record(message: Message) -> bool:
    """Return whether a message is a record, not the notice of the end of a partition."""
    error = message.error()
    if error is not None and error.code() != END_OF_PARTITION:
        raise KafkaException(error)
    return error is None
