"""A worker's writer, which sends output rows to Kafka in order while the task makes more rows.

At the end of the task, the writer waits until Kafka has all rows. aiokafka's producer does the difficult work: it knows
the leaders, keeps the connections, sends batches again without limit and without duplicates (idempotence), and keeps
the order of batches in a partition. The writer gives the producer finished batches (`record_batches`). librdkafka and
Spark's sink accept only single records, which takes 4 to 5 µs for each.
"""

from __future__ import annotations

import asyncio
import pickle
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Future
from typing import Any, TypeVar

import pyarrow as pa
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, MessageSizeTooLargeError, RecordListTooLargeError
from aiokafka.helpers import create_ssl_context

from grouping.model.errors import OperationalError
from grouping.model.wording import counted
from grouping.settings.kafka_options import client_options
from grouping.settings.settings import Settings
from schemas.partition import partition_of
from spark_jobs.runtime.kafka.client_credentials import ClientCredentials
from spark_jobs.runtime.kafka.record_batches import RecordBatch, record_batches

__all__ = [
    "GROWTH_SECONDS",
    "FinishedBatch",
    "RecordWriter",
    "RecordsTooLarge",
    "acknowledged",
    "answer",
    "producer_options",
    "record_writer",
]

T = TypeVar("T")

_WAITING_BYTES = 32 << 20
"""The largest number of bytes of rows that wait for Kafka."""
_ANSWER_SECONDS = 60.0
"""The longest time of a request with its retries. A producer that takes longer has lost the request. Then the task
fails, and the next try of the task has another producer."""
GROWTH_SECONDS = 10.0
"""If the topic of a record does not have the record's partition yet, the record waits at most this time."""
_LOOK_SECONDS = 0.1
_FORGET_SECONDS = 60.0
"""The shortest time between two calls of `flush` that make the producer forget topics without recent records.

The producer asks for the leaders of all known topics from time to time. If a deleted topic were among them, a broker
might create it again.
"""

_OPTIONS = {
    "client.id": "client_id",
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.mechanisms": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "sasl.kerberos.service.name": "sasl_kerberos_service_name",
}
_SSL_FILES = {
    "ssl.ca.location": "cafile",
    "ssl.certificate.location": "certfile",
    "ssl.key.location": "keyfile",
    "ssl.key.password": "password",
}
"""librdkafka's names of options that aiokafka knows too."""


class RecordWriter:
    """Writes output rows to the topics and partitions that they name.

    Only a single thread may use the writer; a second thread, which the writer starts, talks to Kafka.
    """

    def __init__(self, settings: Settings) -> None:
        """Connect.

        Raises:
            OperationalError: Kafka does not answer.
        """
        self._codec = settings.results.compression
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="record-writer", daemon=True)
        self._thread.start()
        self._in_order = asyncio.Lock()
        self._broken = False
        self._sending: deque[tuple[int, Future[None]]] = deque()
        self._waiting = 0
        self._topics: set[str] = set()
        self._used: set[str] = set()
        """The topics that got records since topics were last forgotten."""
        self._forget_at = time.monotonic() + _FORGET_SECONDS
        self._producer = self._wait(self._begin(_started(settings)))

    def write(self, rows: pa.RecordBatch, check: Callable[[], None] = lambda: None) -> None:
        """Begin to send rows; wait first while too many earlier rows are still on their way.

        Args:
            rows: The records, as rows of `spark_jobs.engine.rows.output.OUTPUT`.
            check: Is called right before the rows are sent; must raise an error if they must not be sent.

        Raises:
            OperationalError: Kafka refused some rows. This writer must not be used any more.
        """
        batches = list(record_batches(self._placed(rows), self._codec))
        while self._sending and self._waiting + rows.nbytes > _WAITING_BYTES:
            self._wait_for_first()
        check()
        self._waiting += rows.nbytes
        self._sending.append((rows.nbytes, self._begin(self._send(batches))))

    def flush(self) -> None:
        """Wait until Kafka has all rows that were written.

        Raises:
            OperationalError: Kafka refused some rows. This writer must not be used any more.
        """
        while self._sending:
            self._wait_for_first()
        if self._used and time.monotonic() > self._forget_at:
            self._forget_at = time.monotonic() + _FORGET_SECONDS
            self._topics, self._used = self._used, set()
            self._loop.call_soon_threadsafe(self._producer.client.set_topics, tuple(self._topics))

    def close(self) -> None:
        """Disconnect. After a failure, rows that are still on their way are given up."""
        self._wait(self._begin(self._stop()))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _wait_for_first(self) -> None:
        size, sent = self._sending.popleft()
        self._wait(sent)
        self._waiting -= size

    def _begin(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine in the thread that talks to Kafka."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    @staticmethod
    def _wait(future: Future[T]) -> T:
        return answer(future, _ANSWER_SECONDS)

    def _placed(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows with a partition for each; a row without a partition gets one by the hash of its key."""
        partition = rows["partition"]
        if not partition.null_count:
            return rows
        columns = (rows[name].to_pylist() for name in ("topic", "key", "partition"))
        chosen = [
            partition_of(key or b"", self._partitions(topic)) if known is None else known
            for topic, key, known in zip(*columns, strict=True)
        ]
        return rows.set_column(rows.schema.get_field_index("partition"), "partition", pa.array(chosen, pa.int32()))

    def _partitions(self, topic: str) -> int:
        return len(self._wait(self._begin(self._producer.partitions_for(topic))))

    async def _stop(self) -> None:
        await self._producer.stop()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _send(self, batches: Iterable[RecordBatch]) -> None:
        async with self._in_order:
            if self._broken:
                raise KafkaError("earlier records were not written")
            self._broken = True  # until all batches are on their way: after a failure, no later batch may be sent
            self._look_up({batch.topic for batch in batches})
            sent = [(batch, await self._begun(batch)) for batch in batches]
            self._broken = False
        await asyncio.gather(*(acknowledged(*each) for each in sent))

    async def _begun(self, batch: RecordBatch) -> asyncio.Future[Any]:
        """Begin to send a batch; if its topic lacks the partition, wait for the partition.

        Some time after a source topic has got more partitions, the gateway adds partitions to the topics of virtual
        destinations, which have a topic for each group.
        """
        finished, deadline = FinishedBatch(batch), time.monotonic() + GROWTH_SECONDS
        while True:
            try:
                sent: asyncio.Future[Any] = await self._producer.send_batch(
                    finished, batch.topic, partition=batch.partition
                )
            except AssertionError as error:
                if time.monotonic() > deadline:
                    raise KafkaError(f"{batch.topic} has no partition {batch.partition} yet") from error
                await asyncio.sleep(_LOOK_SECONDS)
                await self._producer.client.force_metadata_update()
            else:
                return sent

    def _look_up(self, topics: set[str]) -> None:
        """Make the producer look up the leaders of all new topics together, not one by one."""
        for topic in topics - self._topics:
            self._producer.client.add_topic(topic)
        self._topics |= topics
        self._used |= topics


def answer(future: Future[T], seconds: float) -> T:
    """Wait for Kafka's answer to a request, and return it.

    Raises:
        OperationalError: Kafka refused a request, or did not answer within `seconds`.
    """
    try:
        return future.result(seconds)
    except KafkaError as error:
        raise OperationalError(f"results cannot be written to Kafka: {error}") from error
    except TimeoutError as error:
        raise OperationalError(f"results cannot be written to Kafka: no answer for {seconds:g} s") from error


async def acknowledged(batch: RecordBatch, sent: asyncio.Future[Any]) -> None:
    """Wait until Kafka has a batch.

    Raises:
        KafkaError: Kafka refused the batch.
        RecordsTooLarge: The batch exceeds the topic's limit on the size of batches.
    """
    try:
        await sent
    except (MessageSizeTooLargeError, RecordListTooLargeError) as error:
        raise RecordsTooLarge(
            f'topic "{batch.topic}" refuses records for their size',
            detail=f"The batch of {counted(batch.count, 'record')} has {len(batch.records)} bytes.",
            hint="Set max.message.bytes of the topic, and message.max.bytes of the broker, to 2 MiB at least.",
        ) from error


class RecordsTooLarge(OperationalError):
    """Kafka refuses records because of their size, and would refuse them again."""


class FinishedBatch:
    """A finished batch with the interface of aiokafka's `BatchBuilder`.

    `BatchBuilder` is private to aiokafka. So `pyproject.toml` limits aiokafka's version, and a test compares the two
    classes.
    """

    def __init__(self, batch: RecordBatch) -> None:
        self._batch = batch
        self._state = (-1, -1, -1)

    def record_count(self) -> int:
        """Return the number of records in the batch."""
        return self._batch.count

    def size(self) -> int:
        """Return the size of the records in bytes."""
        return len(self._batch.records)

    def close(self) -> None:
        """Do nothing: the batch is finished already."""

    def closed(self) -> bool:
        """Return True: no record can be added."""
        return True

    def append(self, **_: object) -> None:
        """Return None, as a full batch does: no record can be added."""

    def _set_producer_state(self, producer_id: int, producer_epoch: int, first_sequence: int) -> None:
        self._state = (producer_id, producer_epoch, first_sequence)

    def _build(self) -> bytes:
        return self._batch.encode(*self._state, time.time_ns() // 1_000_000)


def producer_options(settings: Settings) -> dict[str, Any]:
    """Return the options of aiokafka's producer: librdkafka's options, if aiokafka has them, and our own options."""
    options = client_options(settings.kafka)
    known: dict[str, Any] = {_OPTIONS[name]: value for name, value in options.items() if name in _OPTIONS}
    # This option also limits how long a batch waits for earlier batches; while a broker restarts, this is a long time.
    known["request_timeout_ms"] = 2 * int(options["socket.timeout.ms"])
    protocol = known["security_protocol"] = known.get("security_protocol", "plaintext").upper()
    if protocol.endswith("SSL"):
        files = {_SSL_FILES[name]: value for name, value in options.items() if name in _SSL_FILES}
        known["ssl_context"] = create_ssl_context(**files)
    if known.get("sasl_mechanism") == "OAUTHBEARER":
        known["sasl_oauth_token_provider"] = ClientCredentials(options)
    return known | {"bootstrap_servers": settings.kafka.bootstrap, "acks": "all", "enable_idempotence": True}


async def _started(settings: Settings) -> AIOKafkaProducer:
    producer = AIOKafkaProducer(**producer_options(settings))
    await producer.start()
    return producer


_writers: dict[bytes, RecordWriter] = {}


def record_writer(settings: bytes) -> RecordWriter:
    """Return the worker's writer. The writer lasts as long as the process, which ends if a task fails.

    Args:
        settings: The `Settings`, pickled.
    """
    if settings not in _writers:
        _writers[settings] = RecordWriter(pickle.loads(settings))
    return _writers[settings]
