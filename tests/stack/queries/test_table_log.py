"""Topics of tables, read back from a real broker."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from confluent_kafka import Producer

from spark_jobs.engine.operators.lookup_join.replica import Replica
from spark_jobs.runtime.kafka.pin_log import MicroBatch, PinLog
from spark_jobs.runtime.kafka.table_log import TableAway, TableLog
from tests.ground import Ground
from tests.kafka_client import DEADLINE, wait_until
from tests.unit.replica.table_records import table

_ROUNDS = 10_000
_AT_ONCE = 20
_AHEAD = 200
"""Events that may wait for a micro-batch."""
_SYMBOLS = 97

PROFILES = table("symbol STRING", "beta DOUBLE", key=["symbol"])


@pytest.fixture
def log(ground: Ground) -> Iterator[TableLog]:
    log = TableLog(ground.settings)
    yield log
    log.close()


def _producer(ground: Ground, **options: str) -> Producer:
    return Producer(
        {
            "bootstrap.servers": ground.settings.kafka.bootstrap,
            **{name.replace("_", "."): options[name] for name in options},
        }
    )


def _read(
    log: TableLog, topic: str, starts: dict[int, int], ends: dict[int, int]
) -> list[tuple[int, int, bytes | None]]:
    rows = [row for batch in log.read(topic, starts, ends) for row in batch.to_pylist()]
    return sorted((row["partition"], row["offset"], row["value"]) for row in rows)


def test_records_between_offsets(ground: Ground, log: TableLog) -> None:
    """Each once, in each partition's order, none beyond the ends; partitions that are not asked for are left out."""
    topic = ground.settings.prefix + "profiles"
    ground.make_topic(topic, 3)
    producer = _producer(ground, enable_idempotence="true")  # without it a retry may swap records
    for number in range(30_000):
        producer.produce(topic, str(number).encode(), b"k", partition=number % 3)
    producer.flush()
    assert {topic: {0: 10_000, 1: 10_000, 2: 10_000}} == log.ends([topic, "absent"])
    found = _read(log, topic, {0: 9_990}, {0: 9_995, 1: 3, 2: 0})
    assert [(0, offset, str(3 * offset).encode()) for offset in range(9_990, 9_995)] + [
        (1, offset, str(3 * offset + 1).encode()) for offset in range(3)
    ] == found
    everything = list(log.read(topic, {}, log.ends([topic])[topic]))
    assert 30_000 == sum(batch.num_rows for batch in everything)
    for partition in range(3):
        offsets = [row["offset"] for batch in everything for row in batch.to_pylist() if row["partition"] == partition]
        assert list(range(10_000)) == offsets


def test_ends_without_records_are_reached(ground: Ground, log: TableLog) -> None:
    """The end of a transaction has an offset and no record, and aborted records are not there."""
    topic = ground.settings.prefix + "profiles"
    ground.make_topic(topic, 1)
    producer = _producer(ground, transactional_id=topic)
    producer.init_transactions()
    for values, commit in (([b"a", b"b"], True), ([b"lost"], False), ([b"c"], True), ([b"lost too"], False)):
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, value, partition=0)
        producer.flush()
        if commit:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    wait_until(lambda: log.ends([topic])[topic] == {0: 9} or time.sleep(0.05), "end exact the transactions")
    kept = [(0, 0, b"a"), (0, 1, b"b"), (0, 5, b"c")]
    assert kept == _read(log, topic, {}, {0: 9})
    assert kept[2:] == _read(log, topic, {0: 4}, {0: 9})
    assert [] == _read(log, topic, {0: 6}, {0: 9})
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    producer.flush()
    assert kept == _read(log, topic, {}, {0: 9})
    other = _producer(ground)
    other.produce(topic, b"behind", partition=0)
    other.flush()
    wait_until(lambda: log.ends([topic])[topic] == {0: 11} or time.sleep(0.05), "end behind an open transaction")
    with pytest.raises(TableAway, match="a transaction is open"):
        _read(log, topic, {}, {0: 11})
    producer.abort_transaction()
    wait_until(lambda: log.ends([topic])[topic] == {0: 12} or time.sleep(0.05), "end of the open transaction")
    assert [*kept, (0, 10, b"behind")] == _read(log, topic, {}, {0: 11})


def test_a_replica_of_a_compacted_topic(ground: Ground, log: TableLog) -> None:
    """Rows left by compaction, and rows changed and removed since."""
    topic = ground.settings.prefix + "profiles"
    ground.make_topic(
        topic,
        1,
        cleanup_policy="compact",
        segment_ms="100",
        min_cleanable_dirty_ratio="0.01",
        delete_retention_ms="100",
    )
    producer = _producer(ground)

    def publish(symbol: str, beta: float | None) -> None:
        value = None if beta is None else json.dumps({"symbol": symbol, "beta": beta}).encode()
        producer.produce(topic, value, symbol.encode(), partition=0)
        producer.flush()

    for beta in range(20):
        publish("INTC", beta)
        publish(f"S{beta}", beta)
    pin = log.ends([topic])[topic]
    replica = Replica(msgspec.structs.replace(PROFILES, topic=topic), log, ground.settings)
    before = replica.at(pin)

    def compacted() -> bool:
        time.sleep(0.2)
        publish("clock", time.time())  # closes the segment before, which compaction then may take
        end = log.ends([topic])[topic]
        return len(_read(log, topic, {}, {0: pin[0]})) < pin[0] and end[0] > pin[0]

    wait_until(compacted, "gap that compaction makes", 300)
    publish("S0", None)
    publish("S1", 100.0)
    fresh = Replica(replica.table, log, ground.settings)
    end = log.ends([topic])[topic]
    symbols = pa.array(["INTC", "S0", "S1", "S19"])
    for view, betas in ((before, [19, 0, 1, 19]), (replica.at(end), [19, 100, 19]), (fresh.at(end), [19, 100, 19])):
        assert betas == view.take("beta", view.find(("symbol",), [symbols])[1]).to_pylist()
    assert replica.at(end).count == fresh.at(end).count == 21


def _write_and_tell(ground: Ground, rows: str, events: str, room: threading.Semaphore) -> None:
    """Change rows, and publish an event for each change once it is acknowledged, as long as there is room."""
    producer = _producer(ground, enable_idempotence="true", linger_ms="0")
    for first in range(0, _ROUNDS, _AT_ONCE):
        for n in range(first, first + _AT_ONCE):
            symbol = n % _SYMBOLS
            row = json.dumps({"symbol": f"S{symbol}", "beta": n}).encode()
            room.acquire()
            producer.produce(rows, row, partition=symbol % 3)
        producer.flush()
        for n in range(first, first + _AT_ONCE):
            producer.produce(events, str(n).encode(), partition=n % 2)
    producer.flush()


def test_an_event_sees_what_was_acknowledged_before_it(ground: Ground, log: TableLog) -> None:
    """Ten thousand writes and events across topics and partitions, in micro-batches as a worker carries them out."""
    rows, events = ground.settings.prefix + "profiles", ground.settings.prefix + "quotes"
    partitions = {rows: 3, events: 2, ground.settings.topics.pins: 1}
    for topic, count in partitions.items():
        ground.make_topic(topic, count)
    wait_until(lambda: log.ends(partitions).keys() == partitions.keys(), "leaders of all partitions")
    profiles = msgspec.structs.replace(PROFILES, topic=rows)
    pins, replica = PinLog(ground.settings, log), Replica(profiles, log, ground.settings)
    room = threading.Semaphore(_AHEAD)
    known: dict[int, int] = {}
    seen, exact, batches = 0, 0, 0
    with ThreadPoolExecutor(1) as publisher:
        publishing = publisher.submit(_write_and_tell, ground, rows, events, room)
        deadline = time.monotonic() + 4 * DEADLINE
        try:
            while seen < _ROUNDS:
                assert time.monotonic() < deadline
                ends = log.ends([events])[events]
                acknowledged = np.array(
                    [int(value or b"") for _, _, value in _read(log, events, known, ends)], np.int64
                )
                known = ends
                if acknowledged.size:
                    pin = pins.pins(MicroBatch("s_1", "q", batches), {profiles.source_id: profiles})
                    view = replica.at(pin[profiles.source_id])
                    probe, row = view.find(("symbol",), [pa.array([f"S{n % _SYMBOLS}" for n in acknowledged])])
                    assert np.array_equal(np.arange(acknowledged.size), probe)
                    betas = view.take("beta", row).to_numpy()
                    assert (betas >= acknowledged).all()
                    replica.forget_before(pin[profiles.source_id])
                    exact += int((betas == acknowledged).sum())
                    seen, batches = seen + acknowledged.size, batches + 1
                    room.release(acknowledged.size)
        finally:
            room.release(_ROUNDS)
        publishing.result()
    assert batches >= _ROUNDS // _AHEAD
    assert exact > 0, "some saw exactly their own write"


def test_a_task_of_an_earlier_batch_changes_no_pins(ground: Ground, log: TableLog) -> None:
    """A suspended task that goes on late writes pins of its own batch, and the next task of the present batch does not.

    The latest batch keeps the pins that its first task has written.
    """
    topic = ground.settings.prefix + "profiles"
    for name in (topic, ground.settings.topics.pins):
        ground.make_topic(name, 1)
    profiles = msgspec.structs.replace(PROFILES, topic=topic)
    producer, tables = _producer(ground), {profiles.source_id: profiles}
    found = []
    for batch in (5, 4, 5):
        pins = PinLog(ground.settings, log)  # as in a worker that has just begun
        found.append(pins.pins(MicroBatch("s_1", "q", batch), tables))
        producer.produce(topic, b"{}", b"k")
        producer.flush()
    assert [each[profiles.source_id] for each in found] == [{0: 0}, {0: 1}, {0: 0}]
