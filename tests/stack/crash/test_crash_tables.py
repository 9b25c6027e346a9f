"""Crashes while tables change: a replay sees the same rows as its micro-batch."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable

import pytest
from confluent_kafka import Producer

from tests.stack.crash.test_crash import wipe_redis
from tests.stack.lab import Lab
from tests.stack.lab_table import LabTable
from tests.stack.server import Stack
from tests.stack.tracebacks import WORKER_DEATH

_EVENTS = 60_000
_STEPS = 240
_SYMBOLS = 5
_REMOVED_EVERY = 4


def _publish_at_once(stack: Stack, topic: str) -> None:
    """Publish events that become visible together, so a single micro-batch takes them."""
    producer = Producer({"bootstrap.servers": stack.bootstrap, "transactional.id": topic, "linger.ms": 50})
    producer.init_transactions(30)
    producer.begin_transaction()
    for n in range(_EVENTS):
        producer.produce(topic, b'{"symbol": "S%d", "n": %d}' % (n % 4, n), partition=0)
        producer.poll(0)
    producer.commit_transaction(60)


def test_a_replay_sees_the_rows_that_the_batch_saw(stack: Stack, lab: Lab) -> None:
    """The evaluator is killed amid a batch, the table changes, Redis is lost with its files: the same results again.

    A CQ that costs much of an event keeps the batch going for seconds after its first results.
    """
    source, table = lab.stream("symbol STRING, n INT"), LabTable(lab, "symbol STRING PRIMARY KEY, said STRING")
    table.put(*({"symbol": f"S{n}", "said": "before"} for n in range(4)))
    made = lab.create(
        "joined",
        f"SELECT n, said FROM {source.name} q JOIN {table.name} t ON q.symbol = t.symbol",
        clauses="DO PUBLISH SHARED",
    )
    lab.create("costly", f"SELECT n FROM {source.name} WHERE sha2(repeat(repeat(symbol, 100), 100), 256) = 'x'")
    source.fence()
    _publish_at_once(stack, source.topic)
    lab.results.until(lambda: lab.results.of(made["destination"]), "the first results of the batch")
    evaluator = stack.kill("evaluator")
    wipe_redis(stack)  # before Redis dies: it is started again at once
    redis = stack.kill("redis")
    table.put(*({"symbol": f"S{n}", "said": "after"} for n in range(4)))
    stack.await_restart("redis", redis)
    stack.await_restart("evaluator", evaluator)
    source.publish_values(b'{"symbol": "S0", "n": -1}')
    found = [one.row for one in lab.matches(made, source)]
    assert [{"n": n, "said": "before"} for n in range(_EVENTS)] == found[:-1]
    assert {"n": -1, "said": "after"} == found[-1]
    assert lab.results.repeats, "the batch was carried out again"


@pytest.mark.traceback(WORKER_DEATH)
def test_events_meet_what_was_acknowledged_while_everything_dies(stack: Stack, lab: Lab) -> None:
    """Workers and the evaluator are killed, and the table gets a partition, while rows are set, changed and removed.

    Each event has one result, with its row as of its publication or a later moment.
    """
    source, table = (
        lab.stream("symbol STRING, n INT", partitions=2),
        LabTable(lab, "symbol STRING PRIMARY KEY, said INT"),
    )
    select = f"SELECT n, symbol, said FROM {source.name} LEFT JOIN {table.name} USING (symbol) WHERE n >= 0"
    made = lab.create("joined", select, clauses="DO PUBLISH SHARED")
    killed: list[int] = []
    faults: dict[int, Callable[[], object]] = {
        40: stack.kill_workers,
        80: lambda: lab.client.grow_topic(table.topic, 2),
        120: lambda: killed.append(stack.kill("evaluator")),
    }
    said: dict[str, list[int | None]] = defaultdict(list)
    published: list[tuple[str, int]] = []
    for n in range(_STEPS):
        faults.get(n, lambda: None)()
        partition = int(n > 80 and n % 2)  # a key stays in its partition
        symbol = f"S{partition}{n % _SYMBOLS}"
        row = None if n % _REMOVED_EVERY == 0 else json.dumps({"symbol": symbol, "said": n}).encode()
        table.write((symbol, row), partition=partition)
        said[symbol].append(None if row is None else n)
        published.append((symbol, len(said[symbol]) - 1))
        source.publish_values(json.dumps({"symbol": symbol, "n": n}).encode(), partition=n % 2)
    stack.await_restart("evaluator", *killed)
    source.fence()
    stack.kill_workers()
    for n, symbol in enumerate(said, _STEPS):
        published.append((symbol, len(said[symbol]) - 1))
        source.publish_values(json.dumps({"symbol": symbol, "n": n}).encode(), partition=n % 2)
    found = {one.row["n"]: one.row for one in lab.matches(made, source)}
    assert [*range(len(published))] == sorted(found)
    for n, (symbol, change) in enumerate(published):
        assert symbol == found[n]["symbol"]
        assert found[n]["said"] in said[symbol][change:], f"event {n} met a row of before it"
