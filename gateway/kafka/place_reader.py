"""Reads the records at many given places of a topic. Nearby records are read in one go, and long gaps are skipped."""

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
"""If the next wanted record is further away than this number of records, the reader jumps to it."""
_AT_ONCE = 5_000
_WAIT_SECONDS = 0.02


class PlaceReader:
    """Reads the committed records at given places, as many as a given time allows."""

    def __init__(self, settings: Settings, topic: str) -> None:
        self._topic = topic
        self._consumer = Consumer(
            reader_config(
                settings,
                settings.clients.gateway_places,
                isolation_level="read_committed",
                fetch_wait_max_ms=5,
                # Fetches are small, since the wanted records are scattered and their neighbours are not needed.
                max_partition_fetch_bytes=256 << 10,
                queued_min_messages=1,
                fetch_queue_backoff_ms=5,  # by default, the driver pauses for a second between two fetches
            )
        )

    def read(self, places: Iterable[Place], seconds: float) -> Iterator[tuple[Place, Record | None]]:
        """Yield each place with its record, or with None if the record was deleted.

        The reader waits for a record that was written a moment ago and cannot be read yet. Places that are not reached
        within `seconds` are left out.

        Raises:
            KafkaUnavailable: Kafka failed. The records that were yielded before are valid.
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
        """Yield the wanted records that have come in, remove them from `wanted`, and prepare the next read."""
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
        """Return the records that have come in. `consume` with a timeout would wait for the full number of records."""
        first = self._consumer.poll(_WAIT_SECONDS)
        return [] if first is None else [first, *self._consumer.consume(_AT_ONCE, timeout=0)]

    def _go_on(self, wanted: dict[int, deque[int]], reached: dict[int, int]) -> None:
        """Stop reading partitions without further wanted records, and jump over long gaps."""
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
    """Return whether a message is a record, and not the driver's notice that a partition was read to its end."""
    error = message.error()
    if error is not None and error.code() != END_OF_PARTITION:
        raise KafkaException(error)
    return error is None
