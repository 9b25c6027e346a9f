"""What the SDK writes goes to Kafka by a producer with the right options; its errors are mapped."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from gateway.sdk.driver_errors import CLIENT_OPTIONS, mapped, thrown
from gateway.sdk.errors import TransportError

__all__ = ["Sender"]


class Sender:
    """A producer that keeps order and sends nothing twice."""

    def __init__(
        self, bootstrap: str, extra: Mapping[str, str], *, failed: Callable[[bytes, TransportError], None]
    ) -> None:
        """Make the producer.

        Args:
            bootstrap: Kafka's servers.
            extra: Further options.
            failed: Called, out of `serve` or `flush`, with the value of a record that will never be written.
        """
        self._failed = failed
        options = {
            **CLIENT_OPTIONS,
            **extra,
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "partitioner": "murmur2_random",
            "linger.ms": 2,
            "queue.buffering.max.messages": 200_000,
            "on_delivery": self._undelivered,
            "delivery.report.only.error": True,
        }
        self._producer = Producer(options)

    def send(
        self, topic: str, value: bytes | None, *, key: bytes | None, headers: Mapping[str, bytes] | None = None
    ) -> bool:
        """Queue a record; False when the queue is full: `serve` and try again.

        Args:
            topic: Where to.
            value: The record's value; None removes what the key names.
            key: The record's key; None spreads records over partitions.
            headers: The record's headers.

        Raises:
            TransportError: The record cannot be sent at all, for one because it is too large.
        """
        try:
            self._producer.produce(topic, value, key, headers=dict(headers) if headers else None)
        except BufferError:
            return False
        except KafkaException as exc:
            raise thrown(exc, f'writing to "{topic}"') from exc
        return True

    def _undelivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failed(message.value() or b"", mapped(error, f'writing to "{message.topic()}"'))

    def serve(self, seconds: float) -> None:
        """Let reports of failed deliveries come in."""
        self._producer.poll(seconds)

    def flush(self, seconds: float) -> int:
        """Wait until everything is written, at most so long; returns how many records are not."""
        return int(self._producer.flush(seconds))

    def partitions(self, topic: str, seconds: float) -> int:
        """How many partitions a topic has; waits at most so long for Kafka.

        Raises:
            TransportError: Kafka is not reached, or there is no such topic.
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
        """Drop records that are not written yet, and close the connections."""
        self._producer.purge()
        self._producer.flush(1.0)
