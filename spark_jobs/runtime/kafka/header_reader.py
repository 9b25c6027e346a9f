"""The headers of records that Spark's source gave without them, read from the topic once more."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing

from confluent_kafka import Consumer, KafkaException, TopicPartition

from grouping.model.errors import OperationalError
from grouping.process.broker_errors import with_quiet_log
from grouping.settings.kafka_options import client_options
from grouping.settings.settings import Settings

__all__ = ["RecordHeader", "read_headers"]

RecordHeader = tuple[str, bytes | None]

_AT_ONCE = 10_000
_SILENT_SECONDS = 30.0


def read_headers(
    settings: Settings, topic: str, partition: int, offsets: Sequence[int]
) -> list[Sequence[RecordHeader] | None]:
    """Return the headers of records of a source partition, None for a record without headers.

    Args:
        settings: The evaluator's settings.
        topic: The source topic.
        partition: The partition.
        offsets: The records' offsets, ascending; at least one.

    Raises:
        OperationalError: Kafka does not give the records: they may have been deleted meanwhile.
    """
    found: dict[int, Sequence[RecordHeader] | None] = {}
    wanted = frozenset(offsets)
    options = {
        **with_quiet_log(client_options(settings.kafka)),
        "group.id": settings.clients.evaluator_log,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
        "fetch.wait.max.ms": 20,
    }
    heard_at = time.monotonic()
    with closing(Consumer(options)) as consumer:
        consumer.assign([TopicPartition(topic, partition, offsets[0])])
        reached = offsets[0]
        while reached <= offsets[-1] and time.monotonic() - heard_at < _SILENT_SECONDS:
            messages = consumer.consume(min(_AT_ONCE, offsets[-1] - reached + 1), 0.1)
            heard_at = time.monotonic() if messages else heard_at
            for message in messages:
                offset, error = message.offset(), message.error()
                if error is not None:
                    raise OperationalError("a source topic cannot be read", detail=str(KafkaException(error)))
                assert offset is not None, "a record has an offset"
                reached = offset + 1
                if offset in wanted:
                    found[offset] = message.headers()
    if len(found) < len(wanted):
        missing = min(wanted - found.keys())
        raise OperationalError("headers cannot be read", detail=f"The record {topic}/{partition}/{missing} is missing.")
    return [found[offset] for offset in offsets]
