"""The consumer of commands: reads commands from the last committed offset on."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import MappingProxyType

from confluent_kafka import Consumer, KafkaException, TopicPartition

from gateway.kafka.driver import ANSWER_SECONDS, KafkaUnavailable, client_config, mapped
from gateway.kafka.record import Record, record_of
from grouping.settings.settings import Settings

__all__ = ["CommandConsumer"]

_SOME = 5
_GAP_SECONDS = 0.02
"""How long the consumer waits for further commands, if at least `_SOME` commands have come together. In this case, more
commands are likely to follow."""
_MANY = 1000
"""The consumer waits for no further commands when it has this many: a commit is then worth its fixed cost."""
_NONE: Mapping[int, int] = MappingProxyType({})


class CommandConsumer:
    """Reads a topic of commands from the last commit on. `rewind` must be called first."""

    def __init__(self, settings: Settings, topic: str, partitions: int) -> None:
        self._topic = topic
        self._partitions = partitions
        self._consumer = Consumer(
            client_config(
                settings,
                group_id=settings.clients.gateway,
                enable_auto_commit=False,
                isolation_level="read_committed",
                auto_offset_reset="earliest",
                # While commands of a partition wait in the driver's queue, the driver requests no more of them, since
                # many small requests burden the broker. Such a partition is left out of the next request, and a new
                # command in the partition waits until this request ends. Therefore requests end after 50 ms.
                queued_min_messages=1,
                fetch_queue_backoff_ms=2,
                fetch_wait_max_ms=50,
                max_partition_fetch_bytes=4_000_000,
                fetch_message_max_bytes=4_000_000,
            )
        )
        self.membership = self._consumer.consumer_group_metadata()
        """The consumer's group metadata, which a transaction needs to commit offsets. The metadata are kept, since the
        driver takes 45 ms for them."""

    def rewind(self, noted: Mapping[int, int] = _NONE) -> dict[int, int]:
        """Go back to the first command of each partition that was not carried out.

        Args:
            noted: Partition → offset up to which commands were carried out, from the catalog. Kafka deletes old
                committed offsets, so the higher one of the noted and the committed offset is used.

        Returns:
            Partition → offset, for partitions with a known offset.
        """
        with mapped("reading committed offsets"):
            places = [TopicPartition(self._topic, partition) for partition in range(self._partitions)]
            committed = self._consumer.committed(places, timeout=ANSWER_SECONDS)
            for place in committed:
                if place.error is not None:  # with an error, the offset looks like that of a partition without a commit
                    raise KafkaException(place.error)
            known = {
                place.partition: max(place.offset, noted.get(place.partition, place.offset)) for place in committed
            }
            self._consumer.assign(self.positions(known))
        return {partition: offset for partition, offset in known.items() if offset >= 0}

    def read(self, most: int, wait_seconds: float, gather_seconds: float | None = 0.0) -> list[Record]:
        """Return the waiting commands, at most `most`; wait up to `wait_seconds` for the first.

        Each commit and each request has a fixed cost. So while commands keep coming, the consumer waits for
        `gather_seconds`, so that more commands gather at the broker. If `gather_seconds` is None, no command waits for
        further commands.
        """
        with mapped("reading commands"):
            first = self._consumer.poll(wait_seconds)
            if first is None:
                return []
            messages = [first, *self._consumer.consume(most - 1, timeout=0)] if most > 1 else [first]
            if gather_seconds is not None and _SOME <= len(messages) < min(most, _MANY):
                more = self._consumer.consume(most - len(messages), timeout=_GAP_SECONDS)
                messages += more
                if gather_seconds and _SOME <= len(more) < _MANY and len(messages) < most:
                    time.sleep(gather_seconds)
                    messages += self._consumer.consume(most - len(messages), timeout=_GAP_SECONDS)
        for message in messages:
            if (error := message.error()) is not None:
                raise KafkaUnavailable("kafka failed at reading commands", detail=str(error))
        return [record_of(message) for message in messages]

    def positions(self, offsets: Mapping[int, int]) -> list[TopicPartition]:
        """Return offsets by partition in the driver's form."""
        return [TopicPartition(self._topic, partition, offset) for partition, offset in offsets.items()]

    def close(self) -> None:
        """Leave the consumer group."""
        self._consumer.close()
