"""The output of a worker, read back from a real broker."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import CancelledError
from threading import Event

import pyarrow as pa
import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaTimeoutError
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from grouping.model.errors import OperationalError
from spark_jobs.engine.rows.headers import packed_headers
from spark_jobs.engine.rows.output import OUTPUT
from spark_jobs.runtime.kafka import record_writer
from spark_jobs.runtime.kafka.record_writer import RecordWriter
from tests.ground import Ground

Row = tuple[bytes | None, bytes | None, str, int | None, bytes]

_HEADERS = packed_headers((("ce_id", b"quotes/0/1"), ("empty", b"")))


@pytest.fixture
def writer(ground: Ground) -> Iterator[RecordWriter]:
    writer = RecordWriter(ground.settings)
    yield writer
    writer.close()


def _rows(rows: list[Row]) -> pa.RecordBatch:
    arrays = [pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), OUTPUT.types, strict=True)]
    return pa.record_batch(arrays, schema=OUTPUT)


def _read(ground: Ground, places: list[tuple[str, int]], count: int) -> dict[tuple[str, int], list[tuple]]:
    """Return keys, values and headers of that many records, by place."""
    consumer = Consumer({"bootstrap.servers": ground.settings.kafka.bootstrap, "group.id": "none"})
    consumer.assign([TopicPartition(topic, partition, 0) for topic, partition in places])
    found = defaultdict(list)
    while sum(map(len, found.values())) < count:
        for message in consumer.consume(count, timeout=10):
            assert message.error() is None
            place = message.topic(), message.partition()
            found[place].append((message.key(), message.value(), message.headers()))
    consumer.close()
    return found


def test_records_arrive_once_and_in_order(ground: Ground, writer: RecordWriter) -> None:
    """Chunk after chunk over many partitions, small and larger than a batch, with a large record among them."""
    topic = ground.settings.topics.results
    ground.make_topic(topic, 5)
    values = [str(number).encode() for number in range(60_000)]
    values[20_001] = b"v" * 1_000_000
    chunks = [0, 1, 2, 30_000, 50_000, 60_000]
    for start, end in zip(chunks[:-1], chunks[1:], strict=True):
        writer.write(_rows([(b"k", values[n], topic, n % 5, _HEADERS) for n in range(start, end)]))
    writer.flush()
    found = _read(ground, [(topic, partition) for partition in range(5)], len(values))
    for partition in range(5):
        headers = [("ce_id", b"quotes/0/1"), ("empty", b"")]
        assert [(b"k", value, headers) for value in values[partition::5]] == found[topic, partition]


def test_nothing_overtakes_what_is_not_written(
    ground: Ground, writer: RecordWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader ignores records before a position that it has seen: behind a failed batch none is written."""
    topic = ground.settings.topics.results
    ground.make_topic(topic, 2)
    send, failing = AIOKafkaProducer.send_batch, iter((False, True))

    async def send_batch(producer: AIOKafkaProducer, batch: object, topic: str, *, partition: int) -> object:
        if next(failing, False):
            raise KafkaTimeoutError
        return await send(producer, batch, topic, partition=partition)

    monkeypatch.setattr(AIOKafkaProducer, "send_batch", send_batch)
    for number in range(4):
        writer.write(_rows([(b"k", b"%d" % number, topic, number % 2, _HEADERS)]))
    with pytest.raises(OperationalError):
        writer.flush()
    assert {(topic, 0): [(b"k", b"0", [("ce_id", b"quotes/0/1"), ("empty", b"")])]} == _read(ground, [(topic, 0)], 1)
    end = Consumer({"bootstrap.servers": ground.settings.kafka.bootstrap, "group.id": "none"})
    assert [1, 0] == [end.get_watermark_offsets(TopicPartition(topic, number))[1] for number in (0, 1)]
    end.close()


def test_a_partition_that_is_added_is_waited_for(ground: Ground, writer: RecordWriter) -> None:
    """A record for a partition that its topic gets a moment later is written."""
    topic = ground.settings.topics.results
    ground.make_topic(topic, 1)
    writer.write(_rows([(b"k", b"first", topic, 0, _HEADERS)]))
    writer.flush()
    writer.write(_rows([(b"k", b"second", topic, 1, _HEADERS)]))
    admin = AdminClient({"bootstrap.servers": ground.settings.kafka.bootstrap})
    admin.create_partitions([NewPartitions(topic, 2)])[topic].result()
    writer.flush()
    assert [b"second"] == [value for _, value, _ in _read(ground, [(topic, 1)], 1)[topic, 1]]


def test_a_partition_that_does_not_come(ground: Ground, writer: RecordWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer names the partition; and no later record overtakes an unwritten one."""
    monkeypatch.setattr(record_writer, "GROWTH_SECONDS", 0.5)
    topic = ground.settings.topics.results
    ground.make_topic(topic, 1)
    writer.write(_rows([(b"k", b"first", topic, 1, _HEADERS)]))
    writer.write(_rows([(b"k", b"second", topic, 0, _HEADERS)]))
    with pytest.raises(OperationalError, match=rf"{topic} has no partition 1 yet"):
        writer.flush()
    with pytest.raises(OperationalError, match="earlier records were not written"):
        writer.flush()


def test_what_is_on_its_way_ends_with_the_writer(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task that is left behind would be told of only when Python comes upon it, anywhere."""
    writer = RecordWriter(ground.settings)
    started = Event()

    async def send_batch(*_: object, **__: object) -> None:
        started.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(AIOKafkaProducer, "send_batch", send_batch)
    for _ in range(2):
        writer.write(_rows([(b"k", b"v", ground.settings.topics.results, 0, _HEADERS)]))
    assert started.wait(timeout=120)
    writer.close()
    with pytest.raises(CancelledError):
        writer.flush()


def test_without_a_partition_the_key_decides(ground: Ground, writer: RecordWriter) -> None:
    """As any client finds it that places by Kafka's murmur2; a record without a key goes to some partition."""
    topic = ground.settings.topics.deadletters
    ground.make_topic(topic, 4)
    keys = [*(f"subscriber {number}".encode() for number in range(20)), None]
    writer.write(_rows([(key, None if key else b"v", topic, None, packed_headers(())) for key in keys]))
    writer.flush()
    producer = Producer({"bootstrap.servers": ground.settings.kafka.bootstrap, "partitioner": "murmur2_random"})
    for key in keys[:-1]:
        producer.produce(topic, b"librdkafka's", key)
    producer.flush()
    found = _read(ground, [(topic, partition) for partition in range(4)], 41)
    placed = {place: [record[0] for record in records if record[0]] for place, records in found.items()}
    for mixed in placed.values():
        assert mixed[: len(mixed) // 2] == mixed[len(mixed) // 2 :]
    assert 40 == sum(map(len, placed.values()))


def test_many_topics_at_once(ground: Ground, writer: RecordWriter) -> None:
    """Dedicated topics are looked up together: one after the other hundreds of them would take seconds."""
    topics = [ground.settings.topics.own_results(f"d_{number}") for number in range(100)]
    for topic in topics:
        ground.make_topic(topic, 1)
    for turn in (b"1", b"2"):
        writer.write(_rows([(turn, b"v", topic, 0, packed_headers(())) for topic in topics]))
    writer.flush()
    found = _read(ground, [(topic, 0) for topic in topics], 200)
    assert {(topic, 0): [b"1", b"2"] for topic in topics} == {
        place: [key for key, _, _ in records] for place, records in found.items()
    }
