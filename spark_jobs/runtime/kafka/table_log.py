"""The topics of tables, as a worker reads them: up to offsets that are given, and asks how far they go."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from numpy.typing import NDArray

from grouping.model.errors import OperationalError
from grouping.process.broker_errors import with_quiet_log
from grouping.settings.kafka_options import client_options
from grouping.settings.settings import Settings
from spark_jobs.runtime.kafka.admin import open_admin
from spark_jobs.runtime.kafka.topic_offsets import PartitionOffsets, TopicOffsets

__all__ = ["AT_ONCE_BYTES", "TableAway", "TableLog"]

_POLL_SECONDS = 1.0
_PATIENCE = 60
"""Most polls in a row without a record although a record must be there."""
_OPEN_POLLS = 2
"""The polls in a row without a message after which an open transaction fails the task.

A short transaction is waited for. A longer wait holds one of few cores, and other streams wait as well.
"""
_RENEW_AFTER = (3, 15, 35)
"""The polls in a row without a record after which another consumer asks, which looks the topic up.

librdkafka takes the leader's epoch of a topic that was made anew, which is lower, for an old answer, and then never
reads the topic again: seen where a broker had been restarted before.
"""
_AT_ONCE = 10_000
"""Records of a batch."""
AT_ONCE_BYTES = 64_000_000
"""Bytes of the records of a batch, about: of the largest ones ten thousand would not fit a worker."""
_END_OF_PARTITION: int = KafkaError._PARTITION_EOF  # noqa: SLF001  # librdkafka's codes of its own all begin so


class TableAway(OperationalError):
    """The topic of a table cannot be read: the streams that join the table wait, others go on."""


class TableLog:
    """Reads topics by position, committed records only. For a single thread, and made in the process that uses it."""

    def __init__(self, settings: Settings) -> None:
        """Connect when first used."""
        self._settings = settings
        self._offsets = TopicOffsets(open_admin(settings))
        self._consumer = self._connected()
        self._shown: set[int] = set()
        """Partitions of the topic that is read of which Kafka shows nothing more at the moment."""

    def _connected(self) -> Consumer:
        return Consumer(
            {
                **with_quiet_log(client_options(self._settings.kafka)),
                "group.id": self._settings.clients.evaluator_log,
                "enable.auto.commit": False,
                # The last offsets before an end may have no record: they were compacted away, or end a transaction.
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 20,
                "max.partition.fetch.bytes": 4_000_000,
                "queued.max.messages.kbytes": 32_768,
            }
        )

    def ends(self, topics: Iterable[str], ids: Mapping[str, str] | None = None) -> dict[str, PartitionOffsets]:
        """Return by topic and partition the offset after the last record, at two questions in all.

        A change acknowledged before the call lies before the end, even if another producer's transaction is open before
        it: then `read` waits for the end of this transaction. Topics that cannot be read, or lack a leader, are left
        out.

        Args:
            topics: By name.
            ids: Kafka's id of some topics; a topic that was made anew under the name is left out.

        Raises:
            OperationalError: No broker answers.
        """
        return self._offsets.ends(self._offsets.places(topics, ids), committed=False)

    def read(self, topic: str, starts: Mapping[int, int], ends: Mapping[int, int]) -> Iterator[pa.RecordBatch]:
        """Yield the records from some offsets up to others, each partition's in its order.

        Args:
            topic: Which one.
            starts: By partition the first offset; the topic's beginning where there is none.
            ends: By partition the offset after the last, as `ends` once told: the broker has all that lies before.

        Yields:
            Columns key, value, partition and offset as Spark's Kafka source gives them.

        Raises:
            TableAway: Kafka failed, lacks a record that must be there, or a transaction is open before an end.
        """
        left = {partition: end for partition, end in ends.items() if starts.get(partition, 0) < end}
        if not left:
            return
        reached = {partition: starts.get(partition, 0) for partition in left}
        bounds = _by_partition(left)
        held: list[Message] = []
        size = silent = empty = 0
        try:
            self._begin(topic, reached)
            while left:
                # Wait for one message, and take the rest at hand: a call for many waits until it has them all.
                messages = self._consumer.consume(1, _POLL_SECONDS)
                messages += self._consumer.consume(_AT_ONCE, 0) if messages else []
                records = self._records(topic, messages, left, reached)
                silent = 0 if records else silent + 1
                empty = 0 if messages else empty + 1
                if empty >= _OPEN_POLLS and left.keys() <= self._shown:
                    raise TableAway(
                        f'a transaction is open in topic "{topic}" of a table',
                        detail=f"Changes up to the offsets {left} can be read when it ends.",
                    )
                if silent == _PATIENCE:
                    raise TableAway(f'topic "{topic}" of a table does not give all its records', detail=f"{left}")
                if silent in _RENEW_AFTER and left:
                    self._consumer.close()
                    self._consumer = self._connected()
                    self._begin(topic, {partition: reached[partition] for partition in left})
                held += records
                size += sum(len(record) + len(record.key() or b"") for record in records)
                if held and (len(held) >= _AT_ONCE or size >= AT_ONCE_BYTES or not left):
                    yield _batch(held, bounds)
                    held, size = [], 0
        except KafkaException as exc:
            raise TableAway(f'topic "{topic}" of a table cannot be read', detail=str(exc)) from exc
        finally:
            self._consumer.unassign()  # it would go on fetching later records

    def _begin(self, topic: str, offsets: Mapping[int, int]) -> None:
        self._shown.clear()
        self._consumer.assign([TopicPartition(topic, partition, offset) for partition, offset in offsets.items()])

    def _records(
        self, topic: str, messages: Sequence[Message], left: PartitionOffsets, reached: dict[int, int]
    ) -> list[Message]:
        """Return the records among some messages, noting where each partition is; one at its end is `left` no more."""
        records = []
        for message in messages:
            if (error := message.error()) is None:
                records.append(message)
                reached[message.partition()] = message.offset() + 1  # type: ignore[index, operator]
                self._shown.discard(message.partition())
            elif error.code() == _END_OF_PARTITION:
                reached[message.partition()] = message.offset()  # type: ignore[index, assignment]
                self._shown.add(message.partition())  # type: ignore[arg-type]
            else:
                raise KafkaException(error)
        for partition, offset in reached.items():
            if partition in left and offset >= left[partition]:
                del left[partition]
                self._consumer.incremental_unassign([TopicPartition(topic, partition)])
        return records

    def close(self) -> None:
        """Leave."""
        self._consumer.close()


def _by_partition(offsets: Mapping[int, int]) -> NDArray[np.int64]:
    """Return offsets in the places of their partitions."""
    found = np.zeros(max(offsets, default=0) + 1, np.int64)
    found[list(offsets)] = list(offsets.values())
    return found


def _batch(messages: Sequence[Message], ends: NDArray[np.int64]) -> pa.RecordBatch:
    """Return the records that lie before the ends."""
    partitions = np.fromiter((message.partition() for message in messages), np.int32, len(messages))
    offsets = np.fromiter((message.offset() for message in messages), np.int64, len(messages))
    batch = pa.record_batch(
        {
            "key": pa.array([message.key() for message in messages], pa.binary()),
            "value": pa.array([message.value() for message in messages], pa.binary()),
            "partition": pa.array(partitions),
            "offset": pa.array(offsets),
        }
    )
    before = offsets < ends[partitions]
    return batch if before.all() else batch.filter(pa.array(before))
