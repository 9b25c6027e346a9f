"""The events of the benchmarks: quotes of some symbols, and the queries over them with about one match an event."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from itertools import repeat

import numpy as np
import pyarrow as pa
from confluent_kafka import Producer
from numpy.typing import NDArray

from grouping.model.catalog import Stream, StreamColumn

__all__ = [
    "COLUMNS",
    "PARTITIONS",
    "SELECTION",
    "TOPIC",
    "keys_in_turns",
    "publish",
    "queries",
    "quote_rows",
    "records",
    "send",
    "stream",
    "symbol",
    "times_until_now",
]

TOPIC = "quotes"
SYMBOLS = 1_000
TOP_PRICE = 100.0
PARTITIONS = 2

COLUMNS = {"symbol": "STRING", "price": "DOUBLE", "volume": "BIGINT"}

SELECTION = "SELECT symbol, price, volume FROM quotes WHERE symbol = 'S00000' AND price < 1.5"
"""The query that the benchmarks multiply with different constants."""


def stream(stream_id: str = "s_bench", name: str = "quotes") -> Stream:
    """Return the stream as the gateway would have registered it, read from the topic's beginning."""
    columns = (StreamColumn("symbol", "STRING"), StreamColumn("price", "DOUBLE"), StreamColumn("volume", "BIGINT"))
    offsets = {str(partition): 0 for partition in range(PARTITIONS)}
    return Stream(stream_id, name, columns, TOPIC, "json", offsets, "2026-01-01T00:00:00Z")


def symbol(number: int) -> str:
    """Return the name of a symbol."""
    return f"S{number:05d}"


def queries(prefix: str, count: int) -> Iterator[tuple[str, str]]:
    """Yield named queries of one shape, no two alike; together they match an event about once."""
    depth = max(count / SYMBOLS, 1)
    for number in range(count):
        limit = 2 * TOP_PRICE / depth * (number // SYMBOLS + 0.5) / depth
        where = f"symbol = '{symbol(number % SYMBOLS)}' AND price < {limit:.5f}"
        yield f"{prefix}{number}", f"SELECT symbol, price FROM quotes WHERE {where}"


def publish(bootstrap: str, count: int, topic: str = TOPIC) -> None:
    """Write that many quotes."""
    send(bootstrap, topic, records(count))


def records(count: int) -> Iterator[tuple[str, str]]:
    """Yield that many keys and quotes, about 75 bytes each, the same quotes each time."""
    random = np.random.default_rng(1)
    numbers = random.integers(0, SYMBOLS, count).tolist()
    prices = np.round(random.uniform(0, TOP_PRICE, count), 4).tolist()
    for row, (number, price) in enumerate(zip(numbers, prices, strict=True)):
        name = symbol(number)
        yield name, f'{{"symbol": "{name}", "price": {price}, "volume": {row}, "venue": "XNAS"}}'


def send(
    bootstrap: str, topic: str, records: Iterable[tuple[str, str | bytes]], times: Iterable[int] = repeat(0)
) -> None:
    """Write keys and values, to the partitions in turn.

    Args:
        bootstrap: The broker.
        topic: The topic.
        records: Keys and values.
        times: The records' times in epoch milliseconds; 0 for the time of writing.
    """
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "compression.type": "lz4",
                         "queue.buffering.max.messages": 500_000})  # fmt: skip
    for row, ((key, body), time_ms) in enumerate(zip(records, times, strict=False)):
        while True:
            try:
                producer.produce(topic, body, key, partition=row % PARTITIONS, timestamp=time_ms)
                break
            except BufferError:
                producer.poll(0.1)
        if row % 1000 == 0:
            producer.poll(0)
    producer.flush()


def times_until_now(count: int, span_ms: int) -> NDArray[np.float64]:
    """Return the times of that many events, epoch milliseconds, evenly spread over a span that ends now."""
    return time.time() * 1000 - span_ms + np.arange(count) * (span_ms / count)


def keys_in_turns(random: np.random.Generator, keys: int, count: int) -> NDArray[np.int64]:
    """Return random numbers of keys for that many events; a key keeps its partition, since `send` writes in turns."""
    return random.integers(0, keys // PARTITIONS, count) * PARTITIONS + np.arange(count) % PARTITIONS


def quote_rows(count: int, seed: int = 2) -> dict[str, pa.Array]:
    """Return the constants of `SELECTION` for a number of queries: together they match an event about once.

    Each symbol has equally many queries; their limits are so low as to match one query on average.
    """
    random = np.random.default_rng(seed)
    names = pa.array([symbol(number) for number in range(SYMBOLS)])
    mean = TOP_PRICE * min(1.0, SYMBOLS / count)
    limits = np.full(count, TOP_PRICE) if count <= SYMBOLS else random.uniform(0, 2 * mean, count)
    return {"c0": names.take(pa.array(np.arange(count) % SYMBOLS)), "c1": pa.array(limits)}
