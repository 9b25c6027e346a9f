"""The transactional writer: writes records and the offsets of the commands that these records answer, atomically."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from operator import attrgetter

import msgspec
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from gateway.kafka.command_consumer import CommandConsumer
from gateway.kafka.driver import (
    ALL_BROKERS_DOWN,
    ANSWER_SECONDS,
    FITTING_BYTES,
    LARGEST_RECORD,
    client_config,
    mapped,
)
from gateway.kafka.markers import Markers
from gateway.kafka.offsets import Partition
from grouping.process.broker_errors import BrokerErrors
from grouping.settings.settings import Settings

__all__ = ["OutgoingRecord", "TransactionalWriter"]

log = logging.getLogger(__name__)

_OFFSETS_SECONDS = 10.0
_STUCK_SECONDS = 12.0
_NOBODY = b"nobody"
"""The key of the records that `abort_hanging` writes and aborts."""
_UNPLACED = "Kafka was started again while it took records, and does not say at which offsets it has them."
_PLACE = attrgetter("topic", "partition")


class OutgoingRecord(msgspec.Struct, frozen=True, array_like=True):
    """A record to be written."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()
    partition: int = -1
    """The partition; with -1, Kafka's murmur2 hash of the key decides."""

    @property
    def size(self) -> int:
        """The number of bytes of the key, the value and the headers together."""
        return len(self.key or b"") + len(self.value or b"") + sum(len(name) + len(body) for name, body in self.headers)

    @property
    def fits(self) -> bool:
        """Whether the record is small enough for the gateway's own topics."""
        return self.size <= FITTING_BYTES


class TransactionalWriter:
    """Writes all records of a commit and the offsets of the commands that these records answer, or writes nothing.

    When `write` returns, readers can read the records. With `ahead`, `write` returns earlier, and the next `write`
    first waits until the earlier records can be read. Without this wait, the earlier transaction might hang
    (`markers.py`), and its records would be lost if the next transaction is aborted.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._markers = Markers(settings)
        self._errors = BrokerErrors()
        self._outdated, self._lost = True, False
        """Whether the Kafka client must be replaced, and whether it has lost the connections to all brokers."""
        self._unseen: dict[Partition, int] = {}
        """Partition → offset of the last transaction's last record; empty once all markers were seen."""
        self._begin()

    def _begin(self) -> None:
        """Make a new Kafka client; the previous client, if any, can no longer commit."""
        self._written: set[str] = set()
        """The topics to which the client has written. The client has noted the leaders of their partitions."""
        options = client_config(
            self._settings,
            transactional_id=self._settings.clients.gateway,
            partitioner="murmur2_random",
            linger_ms=50,  # batches are large, and no commit waits, since a commit flushes the records
            compression_type="gzip",  # every client can read gzip; kafkajs cannot read LZ4
            compression_level=1,
            queue_buffering_max_messages=2_000_000,
            queue_buffering_max_kbytes=2_000_000,
            batch_num_messages=100_000,
            message_max_bytes=LARGEST_RECORD,
            transaction_timeout_ms=60_000,
        )
        self._producer = Producer({**options, "error_cb": self._hear})
        with mapped("starting transactions"):
            self._producer.init_transactions(ANSWER_SECONDS)
        self._producer.poll(0)  # `poll` calls `_hear` with failures during the start, which are ignored
        self._outdated = self._lost = False

    def _hear(self, error: KafkaError) -> None:
        """Note that a broker went away. The client may wait for this broker forever, so the client is outdated.

        A client asks only once which broker is the coordinator of a group. If this broker then leaves the metadata, as
        each broker does during a restart, the client never sends the offsets, whatever its timeout is (librdkafka
        issues 5456 and 5511).
        """
        self._errors.note(error)
        self._outdated = True
        self._lost = self._lost or error.code() == ALL_BROKERS_DOWN

    def _renew(self) -> None:
        """Make a new Kafka client if the present client is outdated."""
        self._producer.poll(0)  # `poll` calls `_hear` with failures since the last transaction
        if self._outdated:
            self._begin()

    def note_made(self, topics: Collection[str]) -> None:
        """Note created topics. If the client knew an earlier topic with the same name, the client is outdated.

        The leader epochs of the new topic are lower than those of the earlier topic, so the driver considers
        the new epochs outdated. If the leader is another broker than before, the driver waits until the transaction
        times out after a minute, and all commands wait with it (librdkafka issue 4898). Therefore the writer makes a
        new client.
        """
        self._outdated = self._outdated or not self._written.isdisjoint(topics)

    def write(
        self,
        records: Iterable[OutgoingRecord],
        reads: tuple[CommandConsumer, Mapping[int, int]] | None = None,
        watched: Collection[int] = (),
        *,
        ahead: bool = False,
    ) -> dict[int, int]:
        """Write records in one transaction.

        Args:
            records: The records to write.
            reads: The consumer of commands; and partition → offset after the last command that the records answer.
            watched: The indexes of records whose offsets are returned.
            ahead: Whether to return without waiting for markers. The next `write` then waits for them.

        Returns:
            Index of a watched record → its offset.

        Raises:
            ProducerFenced: The client can no longer write. The caller needs a new writer.
            RecordTooLarge: Nothing was written, because Kafka refuses a record for its size.
            KafkaUnavailable: Either nothing was written, or the transaction hangs. `abort_hanging` of the next writer
                finds this out.
        """
        records = list(records)
        self._see_markers()
        self._renew()
        producer = self._producer
        places = dict(zip(map(_PLACE, records), range(len(records)), strict=True))
        last = {place: number for place, number in places.items() if place[1] >= 0}
        self._written.update(topic for topic, _ in last)
        offsets: dict[int, int] = {}
        unplaced: list[int] = []
        """The indexes of records that Kafka has at unknown offsets."""

        def report(number: int) -> Callable[[KafkaError | None, Message], None]:
            def delivered(error: KafkaError | None, message: Message) -> None:
                offset = message.offset()
                if offset is not None:
                    offsets[number] = offset
                elif error is None:
                    unplaced.append(number)

            return delivered

        reports = {number: report(number) for number in (*watched, *last.values())}
        with mapped("writing a commit"):
            producer.begin_transaction()
            try:
                # If a record cannot be written, the whole transaction fails. So only records whose offsets are needed
                # have delivery reports.
                for number, each in enumerate(records):
                    headers: list[tuple[str, str | bytes]] | None = list(each.headers) or None
                    # All arguments are positional, since named arguments would take a tenth of the driver's time.
                    producer.produce(
                        each.topic, each.value, each.key, each.partition, reports.get(number), None, 0, headers
                    )
                # The records are flushed before the offsets are sent. Then the driver sends the offsets in
                # 3 ms. While records wait to be sent, sending the offsets takes 100 ms.
                producer.flush(ANSWER_SECONDS)
                if unplaced:  # the next attempt gets new offsets
                    raise KafkaException(KafkaError(KafkaError.DUPLICATE_SEQUENCE_NUMBER, _UNPLACED))
                if reads is not None:
                    self._send_offsets(*reads)
                producer.commit_transaction(ANSWER_SECONDS)
            except KafkaException:
                producer.abort_transaction(ANSWER_SECONDS)
                raise
        # A report that came during the commit may lack the offset; the records of its partition are not waited for.
        self._unseen = {partition: offsets[number] for partition, number in last.items() if number in offsets}
        if not ahead:
            self._see_markers()
        return offsets

    def _send_offsets(self, consumer: CommandConsumer, ends: Mapping[int, int]) -> None:
        """Add the offsets of commands to the transaction; fail at once if the client has lost all brokers."""
        if self._lost:
            raise KafkaException(KafkaError(ALL_BROKERS_DOWN))
        with _ending_if_stuck():
            self._producer.send_offsets_to_transaction(consumer.positions(ends), consumer.membership, _OFFSETS_SECONDS)

    def _see_markers(self) -> None:
        """Wait until the records of the last transaction can be read."""
        if self._unseen:
            self._markers.await_markers(self._unseen)
            self._unseen = {}

    def abort_hanging(self, topics: Collection[str], consumer: CommandConsumer) -> frozenset[Partition]:
        """Abort an earlier transaction that hangs, and return the partitions in which it was open.

        The method aborts a new transaction in these partitions. The marker of this transaction also ends the open
        transaction of an earlier writer, which had the same transactional id. No other writer may be active.

        Args:
            topics: The topics to search. Other programs must not have transactions in them.
            consumer: The consumer of commands. The hanging transaction may include its offsets.

        Raises:
            KafkaUnavailable: Kafka did not abort the transaction.
        """
        hanging = self._markers.missing(topics)
        if hanging:
            log.warning("a transaction hangs", extra={"partitions": hanging})
            self._renew()
            with mapped("aborting a hanging transaction"):
                self._producer.begin_transaction()
                for topic, partition in hanging:
                    self._producer.produce(topic, None, _NOBODY, partition)
                self._producer.flush(ANSWER_SECONDS)
                self._send_offsets(consumer, {0: 0})
                self._producer.abort_transaction(ANSWER_SECONDS)
            self._markers.await_all(topics)
        return frozenset(hanging)


@contextmanager
def _ending_if_stuck() -> Iterator[None]:
    """End the process if the driver does not return. The next process finishes the commit from the journal.

    If a broker dies during the call, the driver may wait forever (see `_hear`).
    """
    watchdog = threading.Timer(_STUCK_SECONDS, _end)
    watchdog.daemon = True
    watchdog.start()
    try:
        yield
    finally:
        watchdog.cancel()


def _end() -> None:
    log.error("a call of kafka's driver does not return")
    os._exit(1)
