"""Reads the records of `cq.pending` by their offsets, for a worker."""

from __future__ import annotations

from collections.abc import Iterator

from confluent_kafka import Consumer, KafkaException, TopicPartition

from grouping.model.errors import OperationalError
from grouping.process.broker_errors import with_quiet_log
from grouping.settings.kafka_options import client_options
from grouping.settings.settings import Settings

__all__ = ["StoredMatches"]

_POLL_SECONDS = 1.0
_PATIENCE = 60
"""The reader gives up after this many polls in a row that bring no record. Kafka must have a record, since the reader
has not reached the end."""


class StoredMatches:
    """Reads the records of a partition between two offsets."""

    def __init__(self, settings: Settings) -> None:
        """Prepare to connect at the first use."""
        self._topic = settings.topics.pending
        self._consumer = Consumer(
            {
                **with_quiet_log(client_options(settings.kafka)),
                "group.id": settings.clients.evaluator_log,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 20,
                "max.partition.fetch.bytes": 4_000_000,
                "queued.max.messages.kbytes": 16_384,
            }
        )

    def span(self, partition: int, first: int, last: int) -> Iterator[tuple[int, bytes]]:
        """Yield the offsets and values of the records from offset `first` to `last`, inclusive.

        Raises:
            OperationalError: Kafka failed, or lacks a record that must be there.
        """
        try:
            self._consumer.assign([TopicPartition(self._topic, partition, first)])
            polls = 0
            while first <= last:
                messages = self._consumer.consume(last - first + 1, _POLL_SECONDS)
                polls = 0 if messages else polls + 1
                if polls == _PATIENCE:
                    raise OperationalError(
                        "kafka did not answer", detail=f"{self._topic}/{partition}/{first} is awaited."
                    )
                for message in messages:
                    if (error := message.error()) is not None:
                        raise KafkaException(error)
                    offset, body = message.offset(), message.value()
                    assert offset is not None, "a record has an offset"
                    first = offset + 1
                    if offset <= last and isinstance(body, bytes):
                        yield offset, body
        except KafkaException as exc:
            raise OperationalError("kafka failed at reading stored matches", detail=str(exc)) from exc
        finally:
            self._consumer.unassign()  # otherwise the consumer would go on fetching later records
