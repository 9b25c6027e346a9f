"""The events of the benchmarks with queries of every shape: quotes of any number of symbols on ten venues."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import msgspec
import numpy as np
import pyarrow as pa

from grouping.model.catalog import Stream, StreamColumn
from tests.benchmarks.material.quotes import PARTITIONS, send

__all__ = [
    "PARTITIONS",
    "TOP_PRICE",
    "TOP_VOLUME",
    "VENUES",
    "as_source",
    "publish",
    "source_batches",
    "stream",
    "symbol",
]

TOP_PRICE = 100.0
TOP_VOLUME = 10_000
VENUES = ("XAMS", "XBRU", "XETR", "XHEL", "XLIS", "XLON", "XMAD", "XNAS", "XNYS", "XPAR")

_COLUMNS = {"symbol": "STRING", "price": "DOUBLE", "volume": "BIGINT", "venue": "STRING"}
_ENCODER = msgspec.json.Encoder()


def stream(stream_id: str, topic: str) -> Stream:
    """Return a stream of quotes as the gateway would have registered it, read from the topic's beginning."""
    columns = tuple(StreamColumn(*column) for column in _COLUMNS.items())
    offsets = {str(partition): 0 for partition in range(PARTITIONS)}
    return Stream(stream_id, "quotes", columns, topic, "json", offsets, "2026-01-01T00:00:00Z")


def symbol(number: int) -> str:
    """Return the name of a symbol."""
    return f"S{number:06d}"


def publish(bootstrap: str, topic: str, count: int, symbols: int) -> None:
    """Write a number of quotes of a number of symbols, about 75 bytes each, always the same."""
    send(bootstrap, topic, _records(count, symbols))


def source_batches(count: int, symbols: int, size: int = 20_000) -> list[pa.RecordBatch]:
    """Return quotes in batches as Spark's Kafka source gives them to a worker."""
    whole = as_source([value for _, value in _records(count, symbols)])
    return [whole.slice(start, size) for start in range(0, count, size)]


def as_source(values: Sequence[bytes]) -> pa.RecordBatch:
    """Return values as Spark's Kafka source gives them to a worker, of one partition and without keys."""
    count = len(values)
    return pa.record_batch(
        {
            "key": pa.nulls(count, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "topic": pa.repeat(pa.scalar("quotes"), count),
            "partition": pa.repeat(pa.scalar(0, pa.int32()), count),
            "offset": pa.array(range(count), pa.int64()),
            "timestamp": pa.repeat(pa.scalar(datetime.now(UTC), pa.timestamp("us", "UTC")), count),
        }
    )


def _records(count: int, symbols: int) -> Iterator[tuple[str, bytes]]:
    random = np.random.default_rng(1)
    numbers = random.integers(0, symbols, count).tolist()
    prices = np.round(random.uniform(0, TOP_PRICE, count), 6).tolist()
    volumes = random.integers(0, TOP_VOLUME, count).tolist()
    venues = random.integers(0, len(VENUES), count).tolist()
    for number, price, volume, venue in zip(numbers, prices, volumes, venues, strict=True):
        name = symbol(number)
        yield name, _ENCODER.encode({"symbol": name, "price": price, "volume": volume, "venue": VENUES[venue]})
