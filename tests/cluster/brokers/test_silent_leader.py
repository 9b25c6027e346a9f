"""While the leader of a partition is silent, no client gets a wrong end, and all clients go on with the next leader."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from gateway.kafka import Topics
from gateway.sdk import connect
from gateway.sdk.inbox import Inbox
from grouping.model.errors import OperationalError
from grouping.settings.settings import Settings
from spark_jobs.runtime.kafka.admin import open_admin
from spark_jobs.runtime.kafka.topic_offsets import TopicOffsets
from tests.cluster.brokers.brokers import COUNT, Brokers
from tests.kafka_client import DEADLINE, wait_until
from tests.stack.server import Stack
from tests.stack.steady_load import SteadyLoad

_SOON = 45.0
"""Seconds in which a reader goes on: the driver by itself waits a minute for the broker that is silent."""
_PLACES = [("ended", partition) for partition in range(COUNT)]


@pytest.fixture(scope="module")
def admin(brokers: Brokers) -> AdminClient:
    """A client of a cluster with a topic of ten records in each partition; each broker leads one."""
    admin = AdminClient({"bootstrap.servers": brokers.bootstrap})
    for made in admin.create_topics([NewTopic("ended", COUNT, COUNT)]).values():
        made.result()
    producer = Producer({"bootstrap.servers": brokers.bootstrap, "acks": "all"})
    for _, partition in _PLACES * 10:
        producer.produce("ended", b"1", partition=partition)
    assert producer.flush(DEADLINE) == 0
    return admin


@pytest.mark.parametrize("role", ["gateway", "evaluator"])
def test_ends_are_those_of_a_new_leader(brokers: Brokers, admin: AdminClient, role: str) -> None:
    """The client has asked the leader before; the leader then stops, and another one answers.

    The driver tells of a leader that does not answer in time an offset below zero, and no error.
    """
    settings = Settings(kafka={"bootstrap": brokers.bootstrap})
    if role == "gateway":
        topics = Topics(settings)

        def ends() -> dict[int, int]:
            known = topics.offsets.known_ends(_PLACES)
            assert known == topics.offsets.ends(_PLACES)
            return {partition: end for (_, partition), end in known.items()}
    else:
        offsets = TopicOffsets(open_admin(settings))

        def ends() -> dict[int, int]:
            return offsets.ends(_PLACES).get("ended", {})

    right = dict.fromkeys(range(COUNT), 10)

    def answered() -> bool:
        """Tell whether all ends are known; no end may be wrong while a slow machine has no new leader yet."""
        with suppress(OperationalError):
            found = ends()
            assert found.items() <= right.items()
            return found == right
        return False

    assert ends() == right
    with _silent_leader(brokers, admin, "ended"):
        wait_until(answered, "the ends of the new leader", _SOON)


@contextmanager
def _silent_leader(brokers: Brokers, admin: AdminClient, topic: str) -> Iterator[None]:
    """Have the leader of a topic's first partition asleep for the length of the block."""
    leader = brokers.running[admin.list_topics(topic).topics[topic].partitions[0].leader - 1]
    leader.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        leader.send_signal(signal.SIGCONT)
        brokers.await_whole()


def test_readers_go_on_with_the_next_leader(brokers: Brokers, admin: AdminClient) -> None:
    """They do not wait for the broker that is silent as long as the driver would by itself."""
    admin.create_topics([NewTopic("read", 1, COUNT)])["read"].result()
    inbox, read = Inbox(brokers.bootstrap, {}), list[bytes]()

    def is_read(value: bytes) -> bool:
        read.extend(fields.value for fields in inbox.fetch(0.1))
        return read[-1:] == [value]

    def write(value: bytes) -> None:
        producer = Producer({"bootstrap.servers": brokers.bootstrap, "acks": "all", "socket.timeout.ms": 5_000})
        producer.produce("read", value)
        wait_until(lambda: producer.flush(0.1) == 0, "a record that is written")

    inbox.enter({("read", 0): 0})
    write(b"1")
    wait_until(lambda: is_read(b"1"), "the first record")
    with closing(inbox), _silent_leader(brokers, admin, "read"):
        write(b"2")
        wait_until(lambda: is_read(b"2"), "the next leader's record", timeout=_SOON)


@pytest.mark.timeout(900)
def test_commands_and_events_go_on(brokers: Brokers, admin: AdminClient, tmp_path: Path) -> None:
    """A gateway and an evaluator do not wait for the broker either, however long it is silent."""
    variables = {"CQ_KAFKA_BOOTSTRAP": brokers.bootstrap, "CQ_KAFKA_REPLICATION": "3", "CQ_KAFKA_MIN_ISR": "2"}
    stack = Stack(tmp_path / "data", **variables)
    try:
        stack.up()
        with connect(brokers.bootstrap, "carol") as client, connect(brokers.bootstrap, "carol") as reader:
            load = SteadyLoad(client, brokers.bootstrap, "silenced")
            load.go_on()
            with _silent_leader(brokers, admin, "silenced"):
                load.carry_out_commands()
                reader.execute("CREATE CQ own AS SELECT n FROM silenced DO PUBLISH DEDICATED", timeout=300)
                load.seconds_to_match(reader)
            reader.execute("DROP CQ own")
            load.check()
    finally:
        stack.down()
