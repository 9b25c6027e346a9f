"""The states of a table while a micro-batch waits for its rows, as a user sees them (docs/statements.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import psutil
import pytest
from pydantic import SecretStr

from grouping.model.table import Table
from grouping.settings.settings import RedisSettings, Settings
from grouping.store.connection import connect
from grouping.store.keys import RedisKeys
from grouping.store.notes import ReplicaNote
from tests.kafka_client import wait_until
from tests.stack.lab import Lab
from tests.stack.lab_table import LabTable
from tests.stack.server import Stack

_ROWS = 12_000
"""More than a batch waits for without telling."""
_ROW = b'{"symbol": "S%d", "said": %d, "history": [' + b"1.5, " * 100 + b"1.5]}"
"""Takes so long to decode that a worker reads the table for a good part of a second."""


class _Readers:
    """The workers that read a table, by what they tell in Redis."""

    def __init__(self, stack: Stack, table: LabTable) -> None:
        settings = Settings(prefix=stack.prefix, redis=RedisSettings(url=SecretStr(stack.redis_url)))
        self._redis = connect(settings)
        keys = RedisKeys.of(settings)
        stored = [msgspec.json.decode(body, type=Table) for body in self._redis.hvals(keys.tables)]
        self._key = keys.replicas(next(each.source_id for each in stored if each.name == table.name))

    def waiting(self) -> list[psutil.Process]:
        """Return the workers in which a micro-batch waits until they have read the table."""
        told = self._redis.hgetall(self._key)
        pids = [int(worker.rpartition(b"/")[2]) for worker, body in told.items() if ReplicaNote.unpack(body).waiting]
        return [psutil.Process(pid) for pid in pids]

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stop the worker that begins to read the table, and let it go on at the end."""
        wait_until(self.waiting, "worker that reads the table")
        [worker] = self.waiting()
        worker.suspend()
        try:
            assert [worker] == self.waiting(), "it had read the table before it was stopped"
            yield
        finally:
            worker.resume()

    def close(self) -> None:
        """Leave."""
        self._redis.close()


@pytest.fixture
def table(lab: Lab) -> LabTable:
    """A table that a test fills."""
    return LabTable(lab, "symbol STRING PRIMARY KEY, said INT, history ARRAY<DOUBLE>")


@pytest.fixture
def readers(stack: Stack, table: LabTable) -> Iterator[_Readers]:
    """Who reads the table."""
    readers = _Readers(stack, table)
    yield readers
    readers.close()


def test_a_stream_waits_for_its_table(stack: Stack, lab: Lab, table: LabTable, readers: _Readers) -> None:
    """Its state is `loading` at first and `lagging` after many changes; meanwhile another stream goes on."""
    source, other = lab.stream(), lab.stream()
    join = f"SELECT qty, said FROM {source.name} q JOIN {table.name} t ON q.symbol = t.symbol"
    joined = lab.create("joined", join, clauses="DO PUBLISH SHARED")
    alone = lab.where(other, "alone", "qty > 0", columns="qty")
    for said, state in enumerate(("loading", "lagging")):
        table.write(*((None, _ROW % (number, said)) for number in range(_ROWS)))
        source.publish_values(*(json.dumps({"symbol": f"S{qty}", "qty": qty}).encode() for qty in range(3)))
        with readers.stopped():
            wait_until(lambda state=state: table.described()["state"] == state, state)
            assert (said * _ROWS, _ROWS) == (table.described()["rows"], table.described()["lag"])
            other.publish_values(json.dumps({"qty": 1 + said}).encode())
            assert [*range(1, 2 + said)] == [one.row["qty"] for one in lab.matches(alone, other)]
            lab.results.drain()
            assert 3 * said == len(lab.results.of(joined["destination"])), "its stream waits"
            wait_until(lambda state=state: stack.told_of_table(table.name)["state"] == state, f"{state} in the status")
        source.fence()
    wait_until(lambda: table.described()["state"] == "ready", "state of a table that is read")
    assert (_ROWS, 0) == (table.described()["rows"], table.described()["lag"])
    found = [(one.row["qty"], one.row["said"]) for one in lab.matches(joined, source)]
    assert [(qty, said) for said in range(2) for qty in range(3)] == found
