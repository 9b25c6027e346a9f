"""Ranges of source partitions, read back from a real broker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from gateway.kafka import CommandConsumer, Record
from spark_jobs.engine.rows.headers import packed_headers
from spark_jobs.engine.rows.output import OUTPUT
from spark_jobs.runtime.kafka.admin import open_admin
from spark_jobs.runtime.kafka.positioned_consumer import PartitionUnreadable
from spark_jobs.runtime.kafka.range_reader import RangeReader, RecordUnreadable, SourceRange
from spark_jobs.runtime.kafka.record_writer import RecordWriter
from spark_jobs.runtime.kafka.topic_offsets import TopicOffsets
from tests.ground import Ground
from tests.kafka_client import DEADLINE, wait_until

_TOPICS = 12
_PARTITIONS = 5


@pytest.fixture
def reader(ground: Ground) -> Iterator[RangeReader]:
    with closing(RangeReader(ground.settings)) as reader:
        yield reader


def _producer(ground: Ground, **options: str) -> Producer:
    return Producer(
        {
            "bootstrap.servers": ground.settings.kafka.bootstrap,
            "enable.idempotence": "true",  # without it a retry may swap records
            **{name.replace("_", "."): options[name] for name in options},
        }
    )


def _ranges(ground: Ground, topics: list[str]) -> list[SourceRange]:
    """Return all committed records of some topics."""
    offsets = TopicOffsets(open_admin(ground.settings))
    ends = offsets.ends(offsets.places(topics))
    return [SourceRange(topic, number, 0, end) for topic, own in ends.items() for number, end in own.items() if end]


def _read(reader: RangeReader, ranges: list[SourceRange]) -> dict[SourceRange, list[Any]]:
    found: dict[SourceRange, list[Any]] = {}
    for each, batches in reader.read(ranges):
        assert each not in found
        found[each] = [row for batch in batches for row in batch.to_pylist()]
    return found


@pytest.mark.parametrize("held", [32_000_000, 2_000])
def test_each_range_comes_whole(ground: Ground, held: int) -> None:
    """Many small ranges and a long one: each record once and in order, also where few bytes may be held."""
    topics = [f"{ground.settings.prefix}many{number}" for number in range(_TOPICS)]
    producer, written = _producer(ground), dict[tuple[str, int], list[bytes]]()
    for number, topic in enumerate(topics):
        ground.make_topic(topic, _PARTITIONS)
        for partition in range(_PARTITIONS - 1):  # the last one stays empty
            count = 8_000 if (number, partition) == (0, 0) else 3 * number + partition + 2
            values = [b"%d/%d/%d" % (number, partition, offset) for offset in range(count)]
            for value in values:
                producer.produce(topic, value, partition=partition)
            written[topic, partition] = values
    producer.flush()
    ranges = [each._replace(first=1, end=each.end - 1) for each in _ranges(ground, topics)]
    with closing(RangeReader(ground.settings, held)) as reader:
        found = _read(reader, [each for each in ranges if each.first < each.end])
    for each, rows in found.items():
        assert written[each.place][1:-1] == [row["value"] for row in rows]
        assert list(range(each.first, each.end)) == [row["offset"] for row in rows]
    assert {each.place for each in found} == {place for place, values in written.items() if len(values) > 2}


def test_only_committed_records_count(ground: Ground, reader: RangeReader) -> None:
    """An end behind a transaction is reached; aborted records are left out, and headers and times are as written."""
    topic = f"{ground.settings.prefix}transactions"
    ground.make_topic(topic, 1)
    producer = _producer(ground, transactional_id=topic)
    producer.init_transactions(DEADLINE)
    placed: list[int] = []

    def noted(_: Any, message: Any) -> None:
        placed.append(message.offset())

    for number in range(6):
        producer.begin_transaction()
        headers = [("n", b"%d" % number)]
        producer.produce(topic, b"%d" % number, b"k", headers=headers, timestamp=1_000 + number, on_delivery=noted)
        producer.commit_transaction(DEADLINE) if number % 2 else producer.abort_transaction(DEADLINE)
    assert producer.flush(DEADLINE) == 0
    # A commit returns before its mark is on the log.
    wait_until(lambda: [each.end for each in _ranges(ground, [topic])] == [placed[-1] + 2], "end behind the last mark")
    [rows] = _read(reader, _ranges(ground, [topic])).values()
    assert [b"1", b"3", b"5"] == [row["value"] for row in rows]
    assert [[{"key": "n", "value": b"%d" % number}] for number in (1, 3, 5)] == [row["headers"] for row in rows]
    assert [1_001, 1_003, 1_005] == [round(row["timestamp"].timestamp() * 1000) for row in rows]


def test_the_topic_at_fault_is_named(ground: Ground, reader: RangeReader) -> None:
    """Where a topic cannot be read, or a record's time is none, the failure tells which."""
    topic = f"{ground.settings.prefix}times"
    ground.make_topic(topic, 1, message_timestamp_after_max_ms=str(2**63 - 1))
    producer = _producer(ground)
    producer.produce(topic, b"late", timestamp=9_300_000_000_000_000)
    producer.flush()
    with pytest.raises(RecordUnreadable, match=f"topic {topic} partition 0 offset 0"):
        _read(reader, _ranges(ground, [topic]))
    # The topic was made anew after the ends of the range were asked for.
    with pytest.raises(PartitionUnreadable) as caught:
        _read(reader, [SourceRange(topic, 0, 40, 43)])
    assert topic == caught.value.topic
    absent = f"{ground.settings.prefix}absent"
    with pytest.raises(PartitionUnreadable) as caught:
        _read(reader, [SourceRange(absent, 0, 0, 1)])
    assert absent == caught.value.topic


def test_a_range_goes_on_from_the_records_that_are_there(ground: Ground, reader: RangeReader) -> None:
    """A range whose beginning was deleted has the records behind, and one that was deleted as a whole has none."""
    topic = f"{ground.settings.prefix}deleted"
    ground.make_topic(topic, 1)
    producer = _producer(ground)
    for number in range(10):
        producer.produce(topic, str(number).encode(), partition=0)
    assert producer.flush(DEADLINE) == 0
    admin = AdminClient({"bootstrap.servers": ground.settings.kafka.bootstrap})
    [deleted] = admin.delete_records([TopicPartition(topic, 0, 6)]).values()
    deleted.result(DEADLINE)
    for first, end, wanted in ((2, 10, range(6, 10)), (0, 8, range(6, 8)), (2, 5, range(0))):
        [found] = _read(reader, [SourceRange(topic, 0, first, end)]).values()  # a range comes, also without records
        assert [row["offset"] for row in found] == [*wanted]


def test_a_header_whose_name_is_not_utf8_hides_the_headers_of_its_record(ground: Ground, reader: RangeReader) -> None:
    """The driver raises SystemError for such a name; the record is read without headers, as by the gateway."""
    topic = f"{ground.settings.prefix}names"
    ground.make_topic(topic, 1)
    packed = [packed_headers([("trXnd", b"1"), ("a", b"2")]).replace(b"X", b"\xe9"), packed_headers([("a", b"3")])]
    columns = [[b"k"] * 2, [b"one", b"two"], [topic] * 2, [0] * 2, packed]
    rows = pa.record_batch(
        [pa.array(own, kind) for own, kind in zip(columns, OUTPUT.types, strict=True)], schema=OUTPUT
    )
    with closing(RecordWriter(ground.settings)) as writer:
        writer.write(rows)
        writer.flush()
    [read] = _read(reader, _ranges(ground, [topic])).values()
    assert [(row["value"], row["headers"]) for row in read] == [
        (b"one", None),
        (b"two", [{"key": "a", "value": b"3"}]),
    ]
    with closing(CommandConsumer(ground.settings, topic, 1)) as consumer:
        consumer.rewind({0: 0})
        found: list[Record] = []
        while len(found) < 2:
            found += consumer.read(10, DEADLINE)
    assert [tuple(each.headers) for each in found] == [(), (("a", b"3"),)]
