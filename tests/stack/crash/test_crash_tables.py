"""Crashes while tables change: a replay sees the same rows as its micro-batch."""

from __future__ import annotations

import json
from collections import defaultdict
from contextlib import closing

import pytest
from confluent_kafka import Producer

from tests.kafka_client import DEADLINE
from tests.stack.crash.test_crash import wipe_redis
from tests.stack.lab import Lab
from tests.stack.lab_table import LabTable
from tests.stack.server import Stack
from tests.stack.tracebacks import WORKER_DEATH

_EVENTS = 60_000
_SYMBOLS = 5
_REMOVED_EVERY = 4


class _ReplayedBatch:
    """A micro-batch over a join, carried out again after the evaluator's death.

    A costly CQ keeps the batch going for seconds after the first results.
    """

    def __init__(self, stack: Stack, lab: Lab) -> None:
        self._stack, self._lab = stack, lab
        self._source = source = lab.stream("symbol STRING, n INT")
        self._table = table = LabTable(lab, "symbol STRING PRIMARY KEY, said STRING")
        self._put("before")
        select = f"SELECT n, said FROM {source.name} q JOIN {table.name} t ON q.symbol = t.symbol"
        self._made = lab.create("joined", select, clauses="DO PUBLISH SHARED")
        lab.create("costly", f"SELECT n FROM {source.name} WHERE sha2(repeat(repeat(symbol, 100), 100), 256) = 'x'")
        source.fence()

    def _put(self, text: str) -> None:
        self._table.put(*({"symbol": f"S{n}", "said": text} for n in range(4)))

    def begin(self) -> None:
        """Publish a micro-batch of events, visible together, and await the first results."""
        topic = self._source.topic
        producer = Producer({"bootstrap.servers": self._stack.bootstrap, "transactional.id": topic, "linger.ms": 50})
        producer.init_transactions(DEADLINE)
        producer.begin_transaction()
        for n in range(_EVENTS):
            producer.produce(topic, b'{"symbol": "S%d", "n": %d}' % (n % 4, n), partition=0)
            producer.poll(0)
        producer.commit_transaction(DEADLINE)
        results = self._lab.results
        results.until(lambda: results.of(self._made["destination"]), "the first results of the batch")

    def change(self) -> None:
        """Change the rows met by the batch."""
        self._put("after")

    def check(self) -> None:
        """Check for a second run, with the rows of the first."""
        self._source.publish_values(b'{"symbol": "S0", "n": -1}')
        found = [one.row for one in self._lab.matches(self._made, self._source)]
        assert [{"n": n, "said": "before"} for n in range(_EVENTS)] == found[:-1]
        assert {"n": -1, "said": "after"} == found[-1]
        assert self._lab.results.repeats, "the batch was carried out again"


class _ChangingRows:
    """A table with rows set, changed and removed; an event follows each change, and meets the row."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._source = source = lab.stream("symbol STRING, n INT", partitions=2)
        self._table = table = LabTable(lab, "symbol STRING PRIMARY KEY, said INT")
        select = f"SELECT n, symbol, said FROM {source.name} LEFT JOIN {table.name} USING (symbol) WHERE n >= 0"
        self._made = lab.create("joined", select, clauses="DO PUBLISH SHARED")
        self._values: dict[str, list[int | None]] = defaultdict(list)
        self._published: list[tuple[str, int]] = []
        """By number of an event: the symbol, and the number of the row's last acknowledged change."""
        self._partitions = 1

    def grow(self) -> None:
        """Give the table's topic a second partition, for the symbols of odd numbers from now on."""
        self._lab.client.grow_topic(self._table.topic, 2)
        self._partitions = 2

    def run(self, steps: int) -> None:
        """Change a row and publish an event, again and again."""
        for n in range(len(self._published), len(self._published) + steps):
            partition = n % self._partitions  # a key stays in its partition
            symbol = f"S{partition}{n % _SYMBOLS}"
            row = None if n % _REMOVED_EVERY == 0 else json.dumps({"symbol": symbol, "said": n}).encode()
            self._table.write((symbol, row), partition=partition)
            self._values[symbol].append(None if row is None else n)
            self._publish(symbol)

    def _publish(self, symbol: str) -> None:
        n = len(self._published)
        self._published.append((symbol, len(self._values[symbol]) - 1))
        self._source.publish_values(json.dumps({"symbol": symbol, "n": n}).encode(), partition=n % 2)

    def fence(self) -> None:
        """Return when all events so far are evaluated."""
        self._source.fence()

    def check(self) -> None:
        """Check that each event has one result, with the row as of the event's publication or a later row."""
        for symbol in self._values:
            self._publish(symbol)
        found = {one.row["n"]: one.row for one in self._lab.matches(self._made, self._source)}
        assert [*range(len(self._published))] == sorted(found)
        for n, (symbol, change) in enumerate(self._published):
            assert symbol == found[n]["symbol"]
            assert found[n]["said"] in self._values[symbol][change:], f"event {n} met a row of before it"


@pytest.mark.traceback(WORKER_DEATH)
@pytest.mark.timeout(900)  # Redis and all roles start anew
def test_events_meet_the_same_rows_while_everything_dies(stack: Stack, lab: Lab) -> None:
    """Workers and the evaluator are killed while tables change, and Redis is lost with its files.

    A replayed batch meets the same rows as before. The table of another stream gets a partition; each event meets the
    row as of the event's publication, or a later row. Both streams share one death of the evaluator.
    """
    with closing(Lab(stack.bootstrap)) as other:
        batch, rows = _ReplayedBatch(stack, other), _ChangingRows(lab)
        rows.run(40)
        stack.kill_workers()
        rows.run(40)
        rows.grow()
        rows.run(30)
        batch.begin()
        rows.run(10)
        evaluator = stack.kill("evaluator")
        wipe_redis(stack)  # before Redis dies: it is started again at once
        redis = stack.kill("redis")
        batch.change()
        rows.run(120)
        stack.await_restart("redis", redis)
        stack.await_restart("evaluator", evaluator)
        batch.check()
        rows.fence()
        stack.kill_workers()
        rows.check()
