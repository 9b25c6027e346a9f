"""The sign board: a text on Kafka that a gateway writes for the other gateways of its prefix.

The text is the metadata of the offset that the gateway's group commits for `cq.catalog`. No record is written, so the
catalog does not grow with each sign of life. The gateway needs no rights beyond those that it has for commands.
"""

from __future__ import annotations

from confluent_kafka import Consumer, KafkaException, TopicPartition

from gateway.kafka.driver import ANSWER_SECONDS, client_config, mapped, retriable
from grouping.settings.settings import Settings

__all__ = ["SignBoard"]


class SignBoard:
    """The text of a prefix, which each gateway of the prefix can read and replace."""

    def __init__(self, settings: Settings) -> None:
        """Prepare to connect; the connection is made at the first use.

        Args:
            settings: The settings with Kafka's address and the prefix.
        """
        self._topic = settings.topics.catalog
        self._consumer = Consumer(client_config(settings, group_id=settings.clients.gateway, enable_auto_commit=False))

    def read(self) -> str:
        """Return the text; empty if there is none.

        Raises:
            KafkaUnavailable: Kafka did not answer.
        """
        with mapped("reading the gateway's sign"):
            return retriable(self._read)

    def write(self, text: str) -> None:
        """Replace the text. The committed offset is the catalog's end, so that monitoring tools show no lag.

        Raises:
            KafkaUnavailable: Kafka did not take the text.
        """
        with mapped("writing the gateway's sign"):
            place = TopicPartition(self._topic, 0)
            _, end = self._consumer.get_watermark_offsets(place, timeout=ANSWER_SECONDS)
            self._consumer.commit(offsets=[TopicPartition(self._topic, 0, end, text)], asynchronous=False)

    def _read(self) -> str:
        (place,) = self._consumer.committed([TopicPartition(self._topic, 0)], timeout=ANSWER_SECONDS)
        if place.error is not None:
            raise KafkaException(place.error)
        return place.metadata or ""

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()
