"""Readers of the gateway's own topics: one reads from given offsets to the end, the other follows the end."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress

from confluent_kafka import Consumer, KafkaException, TopicPartition

from gateway.kafka.driver import END_OF_PARTITION, mapped, reader_config
from gateway.kafka.record import Record, record_of
from grouping.settings.settings import Settings

__all__ = ["LogReader", "TailReader"]

_OPEN_SECONDS = 10.0
"""How long a reader waits for the end of a transaction that was open at the end of the log."""


class LogReader:
    """Reads the committed records of a topic from given offsets on."""

    def __init__(self, settings: Settings) -> None:
        self._consumer = Consumer(
            reader_config(
                settings,
                settings.clients.gateway_log,
                isolation_level="read_committed",
                fetch_wait_max_ms=20,
                max_partition_fetch_bytes=4_000_000,
            )
        )

    def since(self, topic: str, offsets: Mapping[int, int], at_once: int = 10_000) -> Iterator[Record]:
        """Yield the records from given offsets to the present end.

        A commit may return before its records can be read. So the reader waits until open transactions have ended, but
        only for some seconds.

        Args:
            topic: The topic.
            offsets: Partition → offset of the first record.
            at_once: The largest number of records that are in memory together.
        """
        places = [TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]
        left = set(offsets)
        ends: dict[int, tuple[int, float]] = {}
        """Partition that was read to its visible end → the end that the reader must reach, and the time until which the
        reader waits for this end. Records of open transactions are before this end, but not yet visible."""
        with mapped("reading a log"):
            self._consumer.assign(places)
            try:
                while left:
                    for message in self._consumer.consume(at_once, timeout=0.1):
                        error, partition, offset = message.error(), message.partition(), message.offset()
                        if error is None:
                            yield record_of(message)
                        elif error.code() != END_OF_PARTITION:
                            raise KafkaException(error)
                        elif partition is not None and offset is not None:
                            known = self._end(topic, partition), time.monotonic() + _OPEN_SECONDS
                            if offset >= ends.setdefault(partition, known)[0]:
                                left.discard(partition)
                    left -= {partition for partition, (_, until) in ends.items() if time.monotonic() >= until}
            finally:
                with suppress(RuntimeError):  # the reader may be closed already
                    # Otherwise the consumer would ask the broker for new records fifty times a second.
                    self._consumer.unassign()

    def _end(self, topic: str, partition: int) -> int:
        """Return the end of a partition as of the latest fetch, including records of open transactions."""
        known = self._consumer.get_watermark_offsets(TopicPartition(topic, partition), cached=True)
        return 0 if known is None else known[1]

    def span(self, topic: str, partition: int, first: int, last: int) -> Iterator[Record]:
        """Yield the records of a partition from a first to a last offset, both included."""
        for record in self.since(topic, {partition: first}):
            if record.offset <= last:
                yield record
            if record.offset >= last:
                return

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()


class TailReader:
    """Follows the ends of a topic's partitions. A read never waits for records."""

    def __init__(self, settings: Settings, topic: str, offsets: Mapping[int, int]) -> None:
        """Begin at the given offsets: partition → offset."""
        self.reached = dict(offsets)
        """Partition → offset; all records before it were read."""
        self._consumer = Consumer(
            reader_config(
                settings,
                settings.clients.gateway_tail,
                # The broker answers as soon as there are records. A shorter wait would only cause more requests while
                # there are none.
                fetch_wait_max_ms=500,
                queued_max_messages_kbytes=32_768,
                max_partition_fetch_bytes=4_000_000,
            )
        )
        with mapped("following a log"):
            self._consumer.assign([TopicPartition(topic, number, offset) for number, offset in offsets.items()])

    def read(self, most: int) -> list[Record]:
        """Return records that the driver has fetched already, at most `most`."""
        found = []
        with mapped("following a log"):
            for message in self._consumer.consume(most, timeout=0):
                error, partition, offset = message.error(), message.partition(), message.offset()
                if error is not None and error.code() != END_OF_PARTITION:
                    raise KafkaException(error)
                if partition is None or offset is None:
                    continue
                self.reached[partition] = max(self.reached.get(partition, 0), offset + (error is None))
                if error is None:
                    found.append(record_of(message))
        return found

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()
