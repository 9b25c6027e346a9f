"""Pins of tables on a real broker: tasks of a micro-batch, and its replay, agree on their pins."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest
from msgspec.structs import replace

from grouping.store.notes import TablePins
from spark_jobs.runtime.kafka.pin_log import MicroBatch, PinLog
from spark_jobs.runtime.kafka.table_log import TableAway, TableLog
from tests.ground import Ground
from tests.kafka_client import RawClient
from tests.unit.replica.table_records import table

_BATCH = MicroBatch("s_1", "q", 7)


class _Topics:
    """The topics of pins and of two tables."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        declared = table("symbol STRING", key=["symbol"])
        prefix = ground.settings.prefix
        self.tables = {name: replace(declared, table_id=name, topic=prefix + name) for name in ("t_1", "t_2")}
        for topic in (ground.settings.topics.pins, *(each.topic for each in self.tables.values())):
            ground.make_topic(topic, 1, cleanup_policy="compact")
        self._client = RawClient(ground.settings.kafka.bootstrap, ground.settings.prefix)
        self._logs: list[TableLog] = []

    def change(self, name: str) -> None:
        """Publish a change of a table."""
        self._client.publish_all(self.tables[name].topic, [(b"{}", "k", 0, 0)])

    def worker(self) -> PinLog:
        """Return the pins as a worker that has just begun knows them."""
        self._logs.append(TableLog(self._ground.settings))
        return PinLog(self._ground.settings, self._logs[-1])

    def close(self) -> None:
        self._client.close()
        for log in self._logs:
            log.close()


@pytest.fixture
def topics(ground: Ground) -> Iterator[_Topics]:
    topics = _Topics(ground)
    yield topics
    topics.close()


def test_a_replay_sees_what_the_batch_saw(topics: _Topics) -> None:
    """Other workers find the pin on Kafka, whatever changed since; the next batch, or a new checkpoint, sees more."""
    first, one = topics.worker(), {"t_1": topics.tables["t_1"]}
    topics.change("t_1")
    assert {"t_1": {0: 1}} == first.pins(_BATCH, one)
    topics.change("t_1")
    assert {"t_1": {0: 1}} == first.pins(_BATCH, one) == topics.worker().pins(_BATCH, one)
    assert {"t_1": {0: 2}} == topics.worker().pins(_BATCH._replace(query_id="q2"), one)
    assert {"t_1": {0: 2}} == first.pins(_BATCH._replace(number=8), one)


def test_a_table_that_is_joined_when_a_batch_is_replayed(topics: _Topics) -> None:
    """Its offset is added to the batch's offsets, which stay."""
    first = topics.worker()
    assert {"t_1": {0: 0}} == first.pins(_BATCH, {"t_1": topics.tables["t_1"]})
    topics.change("t_1")
    topics.change("t_2")
    both = {"t_1": {0: 0}, "t_2": {0: 1}}
    assert both == topics.worker().pins(_BATCH, topics.tables)
    topics.change("t_2")
    assert both == first.pins(_BATCH, topics.tables)


def test_tasks_that_ask_at_once_agree(topics: _Topics) -> None:
    """Whatever each of them saw of a changing table, all of them use the same pin, batch after batch."""
    workers = [topics.worker() for _ in range(3)]
    found: list[list[TablePins]] = [[] for _ in workers]

    def ask(number: int) -> None:
        while len(found[number]) < 20:
            with suppress(TableAway):  # a slow broker may miss a topic for a moment; Spark would begin the task again
                batch = _BATCH._replace(source_id=f"s_{len(found[number])}")
                found[number].append(workers[number].pins(batch, topics.tables))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(len(workers))]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        topics.change("t_1")
    assert found[0] == found[1] == found[2]
    assert len({str(each) for each in found[0]}) > 1, "the table changed meanwhile"


def test_a_topic_that_was_made_anew_is_another_one(topics: _Topics) -> None:
    """Until the gateway has noticed, the topic cannot be read: its offsets would be taken for the old topic's."""
    elsewhere = replace(topics.tables["t_1"], topic_id="another")
    with pytest.raises(TableAway):
        topics.worker().pins(_BATCH, {"t_1": elsewhere})
