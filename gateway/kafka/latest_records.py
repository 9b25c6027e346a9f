"""Reads the latest records of a topic, so that columns can be inferred from them.

The number of records, their bytes and the time for reading are limited.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from gateway.kafka.driver import END_OF_PARTITION, error_code, mapped, reader_config
from gateway.kafka.offsets import Offsets
from gateway.kafka.topic_refusals import FORBIDDEN, unreadable
from grouping.settings.settings import Settings

__all__ = ["LatestRecords"]

_MOST_RECORDS = 400
_MOST_BYTES = 2 << 20
"""Once the records that were read have more bytes than this, reading ends. The last record may have any size."""
_MOST_PARTITIONS = 20
_MOST_SECONDS = 5.0
_AT_ONCE = 100


class LatestRecords:
    """Reads the latest committed records of topics. Any thread may call `read`."""

    def __init__(self, settings: Settings, offsets: Offsets) -> None:
        self._settings = settings
        self._offsets = offsets

    def read(self, topic: str, partitions: int) -> list[bytes | None]:
        """Return the values of some hundred records, from the partitions with the most records.

        Args:
            topic: The topic.
            partitions: The number of the topic's partitions.

        Returns:
            The values, partition after partition, the oldest first. Reading ends early after 5 seconds, or once the
            values have more than 2 MiB.

        Raises:
            TopicRefusal: The gateway may not read the topic.
            KafkaUnavailable: Kafka failed.
        """
        places = [(topic, number) for number in range(partitions)]
        ends, begins = self._offsets.ends(places, committed=True), self._offsets.beginnings(places)
        sizes = {number: ends[topic, number] - begins[topic, number] for _, number in places}
        largest = sorted(sizes, key=lambda number: (-sizes[number], number))[:_MOST_PARTITIONS]
        share = -(-_MOST_RECORDS // max(sum(sizes[number] > 0 for number in largest), 1))
        firsts = {
            number: ends[topic, number] - min(share, sizes[number]) for number in sorted(largest) if sizes[number] > 0
        }
        return self._read(topic, firsts, {number: ends[topic, number] for number in firsts})

    def _read(self, topic: str, firsts: Mapping[int, int], ends: Mapping[int, int]) -> list[bytes | None]:
        """Return the values from the first offsets to the ends, by partition; the ends are excluded."""
        if not firsts:
            return []
        found: dict[int, list[bytes | None]] = {number: [] for number in firsts}
        left, size = set(firsts), 0
        deadline = time.monotonic() + _MOST_SECONDS
        with mapped("reading a topic"):
            consumer = Consumer(
                reader_config(
                    self._settings,
                    self._settings.clients.gateway_places,
                    isolation_level="read_committed",
                    fetch_wait_max_ms=20,
                    fetch_max_bytes=_MOST_BYTES,
                    max_partition_fetch_bytes=256 << 10,
                    queued_max_messages_kbytes=_MOST_BYTES >> 10,
                )
            )
            try:
                consumer.assign([TopicPartition(topic, number, offset) for number, offset in firsts.items()])
                while left and size <= _MOST_BYTES and time.monotonic() < deadline:
                    for message in consumer.consume(_AT_ONCE, timeout=0.1):
                        number, offset = message.partition(), message.offset()
                        is_end = _is_end(topic, message)
                        if number is None or offset is None:
                            continue
                        if is_end or offset >= ends[number] - 1:
                            left.discard(number)
                        if not is_end and offset < ends[number]:
                            found[number].append(message.value())
                            size += len(message)
            finally:
                consumer.close()
        return [value for values in found.values() for value in values]


def _is_end(topic: str, message: Message) -> bool:
    """Tell whether a message is not a record, but the driver's notice that a partition was read to its end.

    Raises:
        TopicRefusal: The topic may not be read.
        KafkaException: Kafka reports another error.
    """
    error = message.error()
    if error is None:
        return False
    failed = KafkaException(error)
    if error_code(failed) in FORBIDDEN:
        raise unreadable(f'topic "{topic}"', failed) from failed
    if error.code() != END_OF_PARTITION:
        raise failed
    return True
