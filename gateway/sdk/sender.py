"""The SDK's idempotent Kafka producer, which turns the driver's errors into SDK errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from gateway.sdk.driver_errors import CLIENT_OPTIONS, mapped, thrown, unknown
from gateway.sdk.errors import TransportError

__all__ = ["Delivered", "Sender"]

Delivered = Callable[[str | None | TransportError], None]
"""Called with a record's place, ``<partition>/<offset>``, or with the error of a record that Kafka has not confirmed.

The place is None if Kafka has the record at an unknown offset: a broker that took the record and then died may not know
the offset when the driver sends the record again. After an error, Kafka may still have written the record.
"""


class Sender:
    """A producer that keeps the order of records and writes no record twice."""

    def __init__(self, bootstrap: str, extra: Mapping[str, str]) -> None:
        """Make the producer.

        Args:
            bootstrap: Kafka's bootstrap servers.
            extra: Further options of librdkafka.
        """
        options = {
            **CLIENT_OPTIONS,
            **extra,
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "partitioner": "murmur2_random",
            "linger.ms": 2,
            "queue.buffering.max.messages": 200_000,
        }
        self._producer = Producer(options)

    def send(
        self,
        topic: str,
        value: bytes | None,
        delivered: Delivered,
        *,
        key: bytes | None,
        headers: Mapping[str, bytes] | None = None,
    ) -> bool:
        """Queue a record, and return True; False if the queue is full. The caller must then call `serve` and try again.

        Args:
            topic: The topic to write to.
            value: The record's value. None, on the topic of a table, removes the row with this key.
            delivered: Called with the record's outcome, in the thread that calls `serve` or `close`.
            key: The record's key; without a key, records are spread over partitions.
            headers: The record's headers.

        Raises:
            TransportError: The record cannot be sent at all, for example because it is too large.
        """
        report = partial(_report, delivered)
        try:
            self._producer.produce(topic, value, key, headers=dict(headers) if headers else None, on_delivery=report)
        except BufferError:
            return False
        except KafkaException as exc:
            raise thrown(exc, f'writing to "{topic}"') from exc
        return True

    def serve(self, seconds: float) -> None:
        """Take in delivery reports; wait at most `seconds` for the first one."""
        self._producer.poll(seconds)

    def knows(self, topic: str, seconds: float) -> bool:
        """Tell whether Kafka knows a topic; wait at most `seconds` for Kafka.

        Raises:
            TransportError: Kafka cannot be reached.
        """
        try:
            error = self._producer.list_topics(topic, timeout=seconds).topics[topic].error
        except KafkaException as exc:
            raise thrown(exc, f'asking for topic "{topic}"') from exc
        return error is None or not unknown(error)

    def partitions(self, topic: str, seconds: float) -> int:
        """Return how many partitions a topic has; wait at most `seconds` for Kafka.

        Raises:
            TransportError: Kafka cannot be reached, or reports an error for the topic, for example that it is missing.
        """
        try:
            found = self._producer.list_topics(topic, timeout=seconds).topics[topic]
        except KafkaException as exc:
            raise thrown(exc, f'asking for topic "{topic}"') from exc
        if found.error is not None:
            raise TransportError(
                f'topic "{topic}" does not exist',
                detail=f"{found.error.str()}.",
                hint="Start the gateway, or pass its topic prefix.",
            )
        return len(found.partitions)

    def close(self) -> None:
        """Give up the records that Kafka has not confirmed, close the connections, and end the driver's threads."""
        self._producer.purge()
        self._producer.flush(1.0)
        self._producer.close()  # type: ignore[attr-defined]  # the type stubs lack it


def _report(delivered: Delivered, error: KafkaError | None, message: Message) -> None:
    if error is None:
        offset = message.offset()
        delivered(None if offset is None else f"{message.partition()}/{offset}")
    else:
        delivered(mapped(error, f'writing to "{message.topic()}"'))
