"""Crashes while tables change: what a micro-batch saw, its replay sees."""

from __future__ import annotations

from confluent_kafka import Producer

from tests.stack.crash.test_crash import wipe_redis
from tests.stack.lab import Lab
from tests.stack.lab_table import LabTable
from tests.stack.server import Stack

_EVENTS = 60_000


def _publish_at_once(stack: Stack, topic: str) -> None:
    """Publish events that become visible together, so that one micro-batch takes them."""
    producer = Producer({"bootstrap.servers": stack.bootstrap, "transactional.id": topic, "linger.ms": 50})
    producer.init_transactions(30)
    producer.begin_transaction()
    for n in range(_EVENTS):
        producer.produce(topic, b'{"symbol": "S%d", "n": %d}' % (n % 4, n), partition=0)
        producer.poll(0)
    producer.commit_transaction(60)


def test_a_replay_sees_the_rows_that_the_batch_saw(stack: Stack, lab: Lab) -> None:
    """The evaluator is killed amid a batch, the table changes, Redis is lost with its files: the same results again."""
    source, table = lab.stream("symbol STRING, n INT"), LabTable(lab, "symbol STRING PRIMARY KEY, said STRING")
    table.put(*({"symbol": f"S{n}", "said": "before"} for n in range(4)))
    made = lab.create(
        "joined",
        f"SELECT n, said FROM {source.name} q JOIN {table.name} t ON q.symbol = t.symbol",
        clauses="DO PUBLISH SHARED",
    )
    source.fence()
    _publish_at_once(stack, source.topic)
    lab.results.until(lambda: lab.results.of(made["destination"]), "the first results of the batch")
    evaluator, redis = stack.kill("evaluator"), stack.kill("redis")
    wipe_redis(stack)
    table.put(*({"symbol": f"S{n}", "said": "after"} for n in range(4)))
    stack.await_restart("redis", redis)
    stack.await_restart("evaluator", evaluator)
    source.publish_values(b'{"symbol": "S0", "n": -1}')
    found = [one.row for one in lab.matches(made, source)]
    assert [{"n": n, "said": "before"} for n in range(_EVENTS)] == found[:-1]
    assert {"n": -1, "said": "after"} == found[-1]
    assert lab.results.repeats, "the batch was carried out again"
