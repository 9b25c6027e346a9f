"""The states of a table while a micro-batch waits for its rows, as a user sees them (docs/statements.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress

import msgspec
import psutil
import pytest
from confluent_kafka import Producer
from pydantic import SecretStr
from redis import Redis

from grouping.model.table import Table
from grouping.settings.settings import RedisSettings, Settings
from grouping.store.connection import connect
from grouping.store.keys import RedisKeys
from grouping.store.notes import ReplicaNote
from tests.kafka_client import DEADLINE, wait_until
from tests.stack.lab import Lab
from tests.stack.lab_table import LabTable
from tests.stack.server import Stack

_SIZES = (12_000, 24_000, 48_000, 96_000)
"""Rows of a table: more than a batch waits for without telling, and more yet when all were read too fast to be seen."""
_ROW = b'{"symbol": "S%d", "said": 1, "history": [' + b"1.5, " * 100 + b"1.5]}"
"""Takes long enough to decode that a worker reads the table for a good part of a second."""
_BEFORE = {"loading": 0, "lagging": 3}
"""Rows of a table before the rows for which a micro-batch waits."""


class _Reading:
    """A table, a stream joined with it, and the worker that reads the table."""

    def __init__(self, redis: Redis, lab: Lab, before: int) -> None:
        self.table = LabTable(lab, "symbol STRING PRIMARY KEY, said INT, history ARRAY<DOUBLE>")
        self.source = lab.stream()
        join = f"SELECT qty, said FROM {self.source.name} q JOIN {self.table.name} t ON q.symbol = t.symbol"
        self.joined = lab.create("joined", join, clauses="DO PUBLISH SHARED")
        self._redis, keys = redis, RedisKeys.of(Settings(prefix=Stack.prefix))
        stored = [msgspec.json.decode(body, type=Table) for body in redis.hvals(keys.tables)]
        self._key = keys.replicas(next(each.source_id for each in stored if each.name == self.table.name))
        if before:
            self.go_on(before)
            self.source.fence()

    def go_on(self, rows: int) -> None:
        """Publish rows, and events that meet the first of them."""
        self.table.write(*((None, _ROW % number) for number in range(rows)))
        self.source.publish_values(*(json.dumps({"symbol": f"S{qty}", "qty": qty}).encode() for qty in range(3)))

    def stop(self) -> psutil.Process | None:
        """Stop the worker that begins to read the table; None if it had read all before."""
        wait_until(lambda: self._workers() or self._read_all(), "worker that reads the table")
        for worker in self._workers():
            worker.suspend()
            if worker in self._workers():
                return worker
            worker.resume()
        return None

    def _workers(self) -> list[psutil.Process]:
        """Return the workers in which a micro-batch waits until they have read the table."""
        found = self._redis.hgetall(self._key)
        pids = [int(worker.rpartition(b"/")[2]) for worker, body in found.items() if ReplicaNote.unpack(body).waiting]
        return [psutil.Process(pid) for pid in pids]

    def _read_all(self) -> bool:
        described = self.table.described()
        return described["state"] == "ready" and described["rows"] > _BEFORE["lagging"]


@pytest.fixture
def redis(stack: Stack) -> Iterator[Redis]:
    """The stack's."""
    with connect(Settings(redis=RedisSettings(url=SecretStr(stack.redis_url)))) as redis:
        yield redis


@pytest.mark.parametrize("state", ["loading", "lagging"])
def test_a_stream_waits_for_its_table(stack: Stack, redis: Redis, lab: Lab, state: str) -> None:
    """The state is told by DESCRIBE TABLE and `cq status`; meanwhile another stream goes on, and nothing is lost."""
    other, before = lab.stream(), _BEFORE[state]
    alone = lab.where(other, "alone", "qty > 0", columns="qty")
    for rows in _SIZES:
        reading = _Reading(redis, lab, before)
        reading.go_on(rows)
        if (worker := reading.stop()) is not None:
            break
        lab.drop("joined")
    assert worker is not None, "each table was read before its reader could be stopped"
    table, source = reading.table, reading.source
    try:
        described = ("state", "rows", "lag")
        wait_until(lambda: [table.described()[each] for each in described] == [state, before, rows], state)
        lab.results.drain()
        assert before == len(lab.results.of(reading.joined["destination"])), "its stream waits"
        # In the lane, the stream that waits leaves within seconds, and another worker may read the table for the
        # stream: a table that was loading lags then.
        wait_until(lambda: stack.table_report(table.name).get("state") in _BEFORE, "the wait in the status")
        other.publish_values(b'{"qty": 1}')
        assert [1] == [one.row["qty"] for one in lab.matches(alone, other)]
    finally:
        with suppress(psutil.NoSuchProcess):  # the lane ends a worker whose stream waits for too long
            worker.resume()
    source.fence()
    wait_until(lambda: table.described()["state"] == "ready", "state of a table that is read")
    assert (rows, 0) == (table.described()["rows"], table.described()["lag"])
    found = [one.row["qty"] for one in lab.matches(reading.joined, source)]
    assert sorted([*range(before), *range(3)]) == sorted(found)


@pytest.mark.traceback("TableAway: a transaction is open")
def test_a_change_behind_an_open_transaction_is_waited_for(stack: Stack, lab: Lab) -> None:
    """The event that was published after the change meets it once the transaction ends; the table lags until then."""
    table, source = LabTable(lab, "symbol STRING PRIMARY KEY, said INT"), lab.stream()
    join = f"SELECT said FROM {source.name} q JOIN {table.name} t ON q.symbol = t.symbol"
    joined = lab.create("joined", join, clauses="DO PUBLISH SHARED")
    table.put({"symbol": "INTC", "said": 1})
    source.publish_values(b'{"symbol": "INTC"}')
    assert [1] == [one.row["said"] for one in lab.matches(joined, source)]
    # A slow machine needs longer than the minute after which Kafka would abort the transaction by itself.
    options = {"transactional.id": table.name, "transaction.timeout.ms": 600_000}
    producer = Producer({"bootstrap.servers": stack.bootstrap, **options})
    producer.init_transactions(DEADLINE)
    producer.begin_transaction()
    producer.produce(table.topic, b'{"symbol": "AMD", "said": 2}', partition=0)
    producer.flush()
    try:
        table.put({"symbol": "INTC", "said": 3})
        source.publish_values(b'{"symbol": "INTC"}')
        wait_until(lambda: table.described()["state"] == "lagging", "a table that lags")
        assert table.described()["lag"] > 0
        wait_until(
            lambda: "a transaction is open" in (stack.stream_report(source.name).get("reason") or ""),
            "why the stream waits",
        )
    finally:
        producer.abort_transaction()
    assert [1, 3] == [one.row["said"] for one in lab.matches(joined, source)]
