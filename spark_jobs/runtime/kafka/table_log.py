"""The topics of tables, as a worker reads them: their end offsets, and their records up to given offsets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaException, Message
from numpy.typing import NDArray

from grouping.model.errors import OperationalError
from grouping.settings.settings import Settings
from spark_jobs.runtime.kafka.admin import open_admin
from spark_jobs.runtime.kafka.positioned_consumer import PositionedConsumer
from spark_jobs.runtime.kafka.topic_offsets import PartitionOffsets, TopicOffsets

__all__ = ["AT_ONCE_BYTES", "TableAway", "TableLog"]

_POLL_SECONDS = 1.0
_PATIENCE = 60
"""The reader gives up after this many polls in a row that bring no record. Kafka must have a record, since the reader
has not reached the end."""
_OPEN_POLLS = 2
"""A task that waits for an open transaction fails after this many polls in a row that bring neither a record nor the
end of a partition.

This time suffices for the end of a short transaction. A longer wait would occupy a core, and so delay other streams.
"""
_AT_ONCE = 10_000
"""A batch is complete when it has at least this many records."""
AT_ONCE_BYTES = 64_000_000
"""A batch is also complete when it has at least this many bytes: ten thousand large records would not fit into memory.
"""


class TableAway(OperationalError):
    """The topic of a table cannot be read. The streams that join the table wait; other streams go on."""


class TableLog:
    """Reads the committed records of topics from given offsets on.

    Only a single thread of the process that made the object may use it.
    """

    def __init__(self, settings: Settings) -> None:
        """Prepare to connect at the first use."""
        self._offsets = TopicOffsets(open_admin(settings))
        self._consumer = PositionedConsumer(settings, settings.clients.evaluator_log)

    def ends(self, topics: Iterable[str], ids: Mapping[str, str] | None = None) -> dict[str, PartitionOffsets]:
        """Return by topic and partition the offset after the last record, by only two requests.

        The returned end is after each change that was acknowledged before the call. This also holds if another producer
        has an earlier transaction that is still open; `read` then waits for the end of this transaction. Topics that
        cannot be read, or have no leader, are left out.

        Args:
            topics: The names of the topics.
            ids: Kafka's ids, by topic name; a topic that was created again with another id is left out.

        Raises:
            OperationalError: No broker answers.
        """
        return self._offsets.ends(self._offsets.places(topics, ids), committed=False)

    def read(self, topic: str, starts: Mapping[int, int], ends: Mapping[int, int]) -> Iterator[pa.RecordBatch]:
        """Yield the records between two offsets of each partition, in order within each partition.

        Args:
            topic: The topic.
            starts: By partition, the first offset; 0 for a partition that is missing here.
            ends: By partition, the offset after the last record. An earlier call of the method `ends` must have
                returned at least these offsets, so that the broker has all records before them.

        Yields:
            The columns key, value, partition and offset of Spark's Kafka source.

        Raises:
            TableAway: Kafka failed, or lacks a record that must be there; or a transaction before an end is still open.
        """
        left = {(topic, partition): end for partition, end in ends.items() if starts.get(partition, 0) < end}
        if not left:
            return
        bounds = _by_partition({partition: end for (_, partition), end in left.items()})
        consumer, held, size = self._consumer, list[Message](), 0
        try:
            consumer.begin({place: starts.get(place[1], 0) for place in left})
            while left:
                records = consumer.take(_POLL_SECONDS)
                done = [place for place, end in left.items() if consumer.reached[place] >= end]
                consumer.leave(done)
                for place in done:
                    del left[place]
                if consumer.empty >= _OPEN_POLLS and left.keys() <= consumer.shown:
                    raise TableAway(
                        f'a transaction is open in topic "{topic}" of a table',
                        detail=f"Changes up to the offsets {left} can be read when it ends.",
                    )
                if consumer.silent == _PATIENCE:
                    raise TableAway(f'topic "{topic}" of a table does not give all its records', detail=f"{left}")
                held += records
                size += sum(len(record) + len(record.key() or b"") for record in records)
                if held and (len(held) >= _AT_ONCE or size >= AT_ONCE_BYTES or not left):
                    yield _batch(held, bounds)
                    held, size = [], 0
        except KafkaException as exc:
            raise TableAway(f'topic "{topic}" of a table cannot be read', detail=str(exc)) from exc
        finally:
            consumer.end()

    def close(self) -> None:
        """Disconnect."""
        self._consumer.close()


def _by_partition(offsets: Mapping[int, int]) -> NDArray[np.int64]:
    """Return an array of offsets whose indexes are the partitions."""
    found = np.zeros(max(offsets, default=0) + 1, np.int64)
    found[list(offsets)] = list(offsets.values())
    return found


def _batch(messages: Sequence[Message], ends: NDArray[np.int64]) -> pa.RecordBatch:
    """Return the records before the ends of their partitions."""
    partitions = np.fromiter(map(Message.partition, messages), np.int32, len(messages))
    offsets = np.fromiter(map(Message.offset, messages), np.int64, len(messages))
    batch = pa.record_batch(
        {
            "key": pa.array([*map(Message.key, messages)], pa.binary()),
            "value": pa.array([*map(Message.value, messages)], pa.binary()),
            "partition": pa.array(partitions),
            "offset": pa.array(offsets),
        }
    )
    before = offsets < ends[partitions]
    return batch if before.all() else batch.filter(pa.array(before))
