"""A worker's samples of a stream: the latest events, cut to size, and not too often."""

from __future__ import annotations

import msgspec

from grouping.access.stream_statistics import PartitionStatistics, StreamStatistics
from grouping.store.notes import TableVersion
from spark_jobs.engine.decode.decode import decode
from spark_jobs.engine.rows.events import Events
from spark_jobs.runtime.worker.statistics import StreamSampler
from tests.unit.matching.event_batches import SETTINGS, batch, stream
from tests.unit.matching.matching import entry, snapshot

QUOTES = stream("symbol STRING", "price DOUBLE")
VERSION = TableVersion(1, 7)
TABLES = snapshot((), [entry("some", (), ())])


class Clock:
    """Seconds that pass when they are told to."""

    now = 1_000.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


def events(symbol: str, count: int, partition: int = 3) -> Events:
    """Return events of one symbol, every second without a price."""
    values = [
        msgspec.json.encode({"symbol": symbol, "price": None if number % 2 else number}) for number in range(count)
    ]
    return decode(batch(values, partitions=[partition] * count), QUOTES, SETTINGS)[0]


def test_samples_are_of_the_latest_events_and_bounded() -> None:
    """However many events come and however long their strings are, a sample holds a few hundred short values."""
    clock = Clock()
    sampler = StreamSampler(QUOTES, clock)
    for symbol in ("A", "B" * 10_000, "C"):
        clock.now += 10
        sampled = sampler.take(events(symbol, 5_000), VERSION, TABLES)
    assert sampled is not None
    partition, statistics = sampled
    assert (3, 7, 1_030_000) == (partition, statistics.version, statistics.at_ms)
    assert 0 < TABLES.nbytes == statistics.table_bytes
    symbols = statistics.columns["symbol"]
    assert {"B" * 64, "C"} == set(symbols.values) and 512 == symbols.size
    assert len(msgspec.msgpack.encode(statistics)) < 30_000
    known = StreamStatistics([msgspec.msgpack.decode(msgspec.msgpack.encode(statistics), type=PartitionStatistics)])
    price = known.column("price")
    assert price is not None and 0.3 < price.nulls / price.size < 0.7


def test_a_partition_is_told_of_every_two_seconds() -> None:
    """Batches that follow closely tell nothing new; two partitions are told of apart."""
    clock = Clock()
    sampler = StreamSampler(QUOTES, clock)
    assert sampler.take(events("A", 10), VERSION, TABLES) is not None
    clock.now += 1
    assert sampler.take(events("A", 10), VERSION, TABLES) is None
    assert sampler.take(events("A", 10, partition=4), VERSION, TABLES) is not None
    clock.now += 1
    assert sampler.take(events("A", 10), VERSION, TABLES) is not None
