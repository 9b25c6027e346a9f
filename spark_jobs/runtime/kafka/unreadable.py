"""Records that Spark's Kafka source cannot read, because their timestamp in microseconds does not fit into 64 bits.

Kafka's timestamps are milliseconds since 1970. If a producer writes nanoseconds instead, the time is in the year 55
million. A topic accepts such a time if ``message.timestamp.after.max.ms`` is large. Spark converts the timestamp of
each record in the JVM, whichever columns a query selects, and the overflow ends the query.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from grouping.model.errors import OperationalError
from grouping.process.broker_errors import with_quiet_log
from grouping.settings.kafka_options import client_options
from grouping.settings.settings import Settings

__all__ = ["LATEST_MS", "Unreadable", "find_unreadable"]

LATEST_MS = (2**63 - 1) // 1000
"""The latest timestamp that Spark can read."""
_AT_ONCE = 10_000
_SILENT_SECONDS = 30.0
_END_OF_PARTITION: int = KafkaError._PARTITION_EOF  # noqa: SLF001  # librdkafka's own codes begin with "_"


class Unreadable(NamedTuple):
    """The unreadable records at the beginning of a micro-batch, and the bounds of the readable records after them."""

    records: list[Message]
    starts: dict[int, int]
    """By partition: the offset after the unreadable records with which the micro-batch begins."""
    ends: dict[int, int]
    """By partition: the offset of the next unreadable record, or the end of the micro-batch."""


def find_unreadable(settings: Settings, topic: str, starts: Mapping[int, int], ends: Mapping[int, int]) -> Unreadable:
    """Find the unreadable records with which a micro-batch begins, and the next unreadable record after readable ones.

    Args:
        settings: The evaluator's settings.
        topic: The source topic.
        starts: By partition, the first offset of the micro-batch; 0 for a partition that is missing here.
        ends: By partition, the offset after the last record of the micro-batch.

    Raises:
        OperationalError: The records could not be read from Kafka.
    """
    found = Unreadable([], {partition: starts.get(partition, 0) for partition in ends}, dict(ends))
    left = {partition for partition, end in ends.items() if found.starts[partition] < end}
    readable: set[int] = set()
    """The partitions in which a readable record has been found."""
    options = {
        **with_quiet_log(client_options(settings.kafka)),
        "group.id": settings.clients.evaluator_log,
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
        "fetch.wait.max.ms": 20,
    }
    heard_at = time.monotonic()
    with closing(Consumer(options)) as consumer:
        consumer.assign([TopicPartition(topic, partition, found.starts[partition]) for partition in left])
        while left:
            messages = consumer.consume(_AT_ONCE, 0.1)
            heard_at = time.monotonic() if messages else heard_at
            if time.monotonic() - heard_at > _SILENT_SECONDS:
                raise OperationalError(f'topic "{topic}" does not give its records', detail=f"{sorted(left)}")
            for message in messages:
                if _ends_search(message, left, readable, found):
                    left.discard(message.partition())
    return found


def _ends_search(message: Message, left: set[int], readable: set[int], found: Unreadable) -> bool:
    """Take a message into account; return whether the search in its partition is over."""
    partition, offset = message.partition(), message.offset()
    assert partition is not None and offset is not None
    if partition not in left:
        return False
    error = message.error()
    if error is not None and error.code() != _END_OF_PARTITION:
        raise OperationalError("a source topic cannot be read", detail=str(KafkaException(error)))
    if error is not None or offset >= found.ends[partition]:
        return offset >= found.ends[partition]
    if abs(message.timestamp()[1]) <= LATEST_MS:
        readable.add(partition)
    elif partition in readable:
        found.ends[partition] = offset
        return True
    else:
        found.records.append(message)
        found.starts[partition] = offset + 1
    return offset + 1 >= found.ends[partition]
