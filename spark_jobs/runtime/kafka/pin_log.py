"""The topic `cq.pins`: the table offsets of each micro-batch. A replay sees the same rows even if Redis is lost.

The log decides which offsets a micro-batch has. A task writes the present ends of the tables' topics, and reads the log
up to its own record. For each table, the micro-batch's first record that names the table is valid. So all tasks of a
batch, and of its replays, agree. Only the latest batch of a stream can be replayed, so the topic is compacted, with the
id of the stream's source as the key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec
import pyarrow as pa
from confluent_kafka import KafkaException, Message, Producer

from grouping.model.errors import OperationalError
from grouping.model.table import Table
from grouping.process.broker_errors import with_quiet_log
from grouping.settings.kafka_options import client_options
from grouping.settings.settings import Settings
from grouping.store.notes import TablePins
from spark_jobs.runtime.kafka.table_log import TableAway, TableLog

__all__ = ["MicroBatch", "PinLog"]

_TIMEOUT_SECONDS = 30.0


class MicroBatch(NamedTuple):
    """The permanent identity of a micro-batch. With a new checkpoint, numbers begin at 0 and the query has a new id."""

    source_id: str
    query_id: str
    """Spark's id of the query, stored in the checkpoint."""
    number: int


class _PinRecord(msgspec.Struct, frozen=True):
    """The value of a record; its key is the id of the stream's source."""

    query_id: str
    batch: int
    tables: TablePins


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_PinRecord).decode


class PinLog:
    """Reads the log, and adds records to it. Only a single thread of the process that made the object may use it."""

    def __init__(self, settings: Settings, log: TableLog) -> None:
        """Prepare to connect at the first use.

        Args:
            settings: The evaluator's settings.
            log: Reads topics.
        """
        self._topic = settings.topics.pins
        self._log = log
        options = with_quiet_log(client_options(settings.kafka))
        self._producer = Producer({**options, "enable.idempotence": True, "linger.ms": 0})
        self._read_to = 0
        self._latest: dict[str, _PinRecord] = {}
        """By `Stream.source_id`: the latest batch with its pins, for each table from the first record that names it."""

    def pins(self, batch: MicroBatch, tables: Mapping[str, Table]) -> TablePins:
        """Return the offsets that a batch sees. A table that has none in the log yet gets its topic's present ends.

        When the method returns, Kafka has the pins.

        Args:
            batch: The batch, which must be the latest one of its source.
            tables: The tables by `Table.source_id`.

        Raises:
            TableAway: A topic cannot be read.
            OperationalError: Kafka failed.
        """
        topics = {self._topic, *(table.topic for table in tables.values())}
        ends = self._log.ends(topics, {table.topic: table.topic_id for table in tables.values()})
        if missing := sorted(topics - ends.keys()):
            raise TableAway(f'topic "{missing[0]}" cannot be read', detail="The topic has a table or pins of tables.")
        self._advance(ends[self._topic][0])
        known = self._known(batch)
        if tables.keys() <= known.keys():
            return known
        mine = {source_id: ends[table.topic] for source_id, table in tables.items()} | known
        self._advance(self._write(batch, mine) + 1)
        known = self._known(batch) or mine  # a task that is late finds a later batch, and its output is refused
        if known != mine:  # compaction keeps only the last record, so the last record must have the valid pins
            self._write(batch, known)
        return known

    def _known(self, batch: MicroBatch) -> TablePins:
        record = self._latest.get(batch.source_id)
        return record.tables if record and (record.query_id, record.batch) == batch[1:] else {}

    def _advance(self, end: int) -> None:
        for records in self._log.read(self._topic, {0: self._read_to}, {0: end}):
            self._take(records)
        self._read_to = max(self._read_to, end)

    def _take(self, records: pa.RecordBatch) -> None:
        for key, value in zip(records["key"].to_pylist(), records["value"].to_pylist(), strict=True):
            source_id = key.decode()
            if value is None:
                self._latest.pop(source_id, None)
                continue
            record = _decode(value)
            known = self._latest.get(source_id)
            if known is not None and known.query_id == record.query_id and known.batch > record.batch:
                continue  # a task of an earlier batch that went on late wrote the record
            before = self._known(MicroBatch(source_id, record.query_id, record.batch))
            self._latest[source_id] = _PinRecord(record.query_id, record.batch, record.tables | before)

    def _write(self, batch: MicroBatch, pins: TablePins) -> int:
        """Write a record, and return its offset when Kafka has it."""
        written: list[int] = []
        failures: list[str] = []

        def delivered(error: object, message: Message) -> None:
            offset = message.offset()
            if error is not None:
                failures.append(str(error))
            elif offset is None:  # the next attempt of the batch finds the record
                failures.append("Kafka was started again, and does not say at which offset it has the record.")
            else:
                written.append(offset)

        try:
            body = _encode(_PinRecord(batch.query_id, batch.number, pins))
            self._producer.produce(self._topic, body, batch.source_id, partition=0, on_delivery=delivered)
            self._producer.flush(_TIMEOUT_SECONDS)
        except KafkaException as exc:
            failures.append(str(exc))
        if not written:
            raise OperationalError("pins of tables were not written", detail="; ".join(failures) or "Kafka is silent.")
        return written[0]
