"""Makes dead letters of the records at which a query ends because Spark's Kafka source cannot convert them."""

from __future__ import annotations

from grouping.model.catalog import Stream
from grouping.settings.settings import Settings
from spark_jobs.runtime.kafka.broker import Broker
from spark_jobs.runtime.kafka.unreadable import find_unreadable
from spark_jobs.runtime.streams.checkpoint import Checkpoint

__all__ = ["is_unreadable", "pass_over"]


def is_unreadable(failure: str) -> bool:
    """Tell whether a query ended because its source met a record that it cannot convert.

    Example:
        >>> is_unreadable("Record at topic quotes partition 0 offset 7 has timestamp value 9223372036854775807 that "
        ...               "overflows when converting to Spark's microsecond-precision TimestampType.")
        True
    """
    return "overflows when converting to Spark's microsecond-precision TimestampType" in failure


def pass_over(stream: Stream, checkpoint: Checkpoint, settings: Settings, broker: Broker) -> bool:
    """Change the micro-batch under way so that it has no unreadable records; return whether there were any.

    In each partition, unreadable records at the beginning of the micro-batch are skipped, and dead letters are written
    for them (at least once). The micro-batch then ends before the next unreadable record, and the next micro-batch
    begins with that record. The readable events keep their ids, their order, and the version that the micro-batch pins.

    Args:
        stream: The stream; its query must not run.
        checkpoint: The checkpoint of the stream's query.
        settings: The evaluator's settings.
        broker: Kafka, to which the dead letters are written.

    Raises:
        OperationalError: Kafka or the checkpoint does not answer.
    """
    under_way = checkpoint.under_way(stream.topic)
    if under_way is None:
        return False
    starts, ends = ({int(number): at for number, at in offsets.items()} for offsets in under_way)
    found = find_unreadable(settings, stream.topic, starts, ends)
    for record in found.records:
        broker.report_unreadable(record)
    if not found.records and found.ends == ends:
        return False
    checkpoint.move(stream.topic, *({str(number): at for number, at in each.items()} for each in found[1:]))
    return True
