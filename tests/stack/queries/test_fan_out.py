"""Groups with many matches per event: virtual destinations, and an index that follows the stream."""

from __future__ import annotations

import random
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator

import pytest

from gateway.sdk import Client, Match, Reply, connect
from tests.kafka_client import wait_until
from tests.kafka_tail import Tail
from tests.stack.server import Stack

SOON = 300.0
"""Seconds in which the index follows the stream."""


@pytest.fixture
def client(stack: Stack) -> Iterator[Client]:
    """A subscriber of its own, with CQs that are dropped at the end."""
    with connect(stack.bootstrap, f"fan-{uuid.uuid4().hex[:8]}", prefix=stack.prefix, timeout=180) as client:
        yield client
        client.create_many(f'DROP CQ "{item["cq"]}"' for item in client.listing("CQS"))
        for name in [item["stream"] for item in client.listing("STREAMS", like="fan%")]:
            client.drop_stream(name)


def stream(client: Client, **columns: str) -> str:
    """Create a stream with two partitions."""
    name = f"fan{uuid.uuid4().hex[:8]}"
    client.create_stream(name, columns, partitions=2)
    return name


def follow(client: Client, queries: list[Reply], expected: dict[str, list[float]], column: str) -> None:
    """Check that each of these CQs gets exactly its expected values."""
    found = defaultdict(list)
    with client.subscribe(*(query.query for query in queries)) as results:
        for _ in range(sum(map(len, expected.values()))):
            match = results.next(timeout=180)
            assert isinstance(match, Match), "a match is missing"
            found[match.cq].append(match.row[column])
        assert results.next(timeout=1) is None
    assert {name: sorted(rows) for name, rows in expected.items() if rows} == {
        name: sorted(rows) for name, rows in found.items()
    }


def test_a_virtual_group_writes_an_event_once(stack: Stack, client: Client) -> None:
    """With 3,000 thresholds each reader gets its own events, the extremes included; the topic holds each event once."""
    random.seed(11)
    name = stream(client, price="DOUBLE", at="TIMESTAMP")
    thresholds = [random.random() * 100 for _ in range(3_000)]
    outcomes = client.create_many(
        f'CREATE CQ c{n} AS SELECT price AS p, "at" FROM {name} WHERE price > {threshold!r} DO PUBLISH VIRTUAL'
        for n, threshold in enumerate(thresholds)
    )
    replies = [outcome for outcome in outcomes if isinstance(outcome, Reply)]
    prices = [random.random() * 110 - 5 for _ in range(400)]
    client.publish(name, [{"price": price, "at": "2026-11-21T10:00:00Z"} for price in prices])
    extremes = [thresholds.index(min(thresholds)), thresholds.index(max(thresholds))]
    chosen = [*random.sample(range(3_000), 48), *extremes]
    expected = {f"c{n}": [price for price in prices if price > thresholds[n]] for n in chosen}
    follow(client, [replies[n] for n in chosen], expected, "p")

    destination = replies[0].query.destination
    assert ("virtual", None, [0, 0]) == (destination.mode, destination.partition, destination.offset)
    tail = Tail(stack.bootstrap)
    for partition in (0, 1):
        tail.add(destination.topic, partition, 0)
    wanted = sum(price > min(thresholds) for price in prices)
    records: list[object] = []
    wait_until(lambda: len(records.extend(tail.poll(0.2)) or records) >= wanted, "all events")
    tail.close()
    assert wanted == len(records)
    assert None is client.describe("c0").matches, "nobody but its reader knows"


@pytest.mark.timeout(900)
def test_the_index_follows_the_selective_column(client: Client) -> None:
    """When the other column becomes selective, EXPLAIN shows its index soon; nothing is missed or doubled."""
    random.seed(12)
    name = stream(client, a="DOUBLE", b="DOUBLE")
    rows = [(90 + random.random() * 10, 90 + random.random() * 10) for _ in range(1_000)]
    outcomes = client.create_many(
        f"CREATE CQ c{n} AS SELECT a FROM {name} WHERE a > {a!r} AND b > {b!r} DO PUBLISH SHARED"
        for n, (a, b) in enumerate(rows)
    )
    events: list[tuple[float, float]] = []

    def flow(top_a: float, top_b: float, until: str) -> float:
        """Publish until an index is in use; return its candidates per event."""
        began = time.monotonic()
        while True:
            some = [(random.random() * top_a, random.random() * top_b) for _ in range(150)]
            events.extend(some)
            client.publish(name, [{"a": a, "b": b} for a, b in some])
            plan = client.explain("CQ c0")["plan"]
            seen = plan["observed"]
            if plan["keys"] == [until] and seen and seen["candidates_per_event"] < 20:
                return float(seen["candidates_per_event"])
            assert time.monotonic() < began + SOON, plan
            time.sleep(0.2)

    flow(90.5, 100, "a > :c0")
    flow(100, 90.5, "b > :c1")
    expected = {f"c{n}": [a for a, b in events if a > low_a and b > low_b] for n, (low_a, low_b) in enumerate(rows)}
    follow(client, [outcome for outcome in outcomes if isinstance(outcome, Reply)], expected, "a")


def test_a_paused_virtual_cq_sees_nothing_meanwhile(client: Client) -> None:
    """Events published between PAUSE and RESUME are skipped by a reader that lives on, though others have them."""
    name = stream(client, price="DOUBLE")
    text = f"SELECT price FROM {name} WHERE price >"
    paused, other = (client.create(f"c{n}", f"{text} {n}", publish="VIRTUAL") for n in range(2))
    with client.subscribe(paused) as results, client.subscribe(other) as others:

        def publish(price: float) -> None:
            client.publish(name, [{"price": price}])
            match = others.next(timeout=180)
            assert isinstance(match, Match) and price == match.row["price"]

        publish(10.0)
        client.pause("c0")
        publish(11.0)
        client.resume("c0")
        publish(12.0)
        assert [10.0, 12.0] == [match.row["price"] for match in (results.next(timeout=180), results.next(timeout=180))]  # type: ignore[union-attr]
