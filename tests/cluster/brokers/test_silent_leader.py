"""While the leader of a partition is silent its end is never told wrong, and readers go on with the next leader."""

from __future__ import annotations

import signal

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from gateway.kafka import Topics
from gateway.sdk.inbox import Inbox
from grouping.settings.settings import Settings
from spark_jobs.kafka.admin import open_admin
from spark_jobs.kafka.topic_offsets import TopicOffsets
from tests.cluster.brokers.brokers import COUNT, Brokers
from tests.kafka_client import wait_until

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
    assert producer.flush(60) == 0
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
            return offsets.ends(_PLACES)["ended"]

    assert ends() == dict.fromkeys(range(COUNT), 10)
    leader = brokers.running[admin.list_topics("ended").topics["ended"].partitions[0].leader - 1]
    leader.send_signal(signal.SIGSTOP)
    try:
        assert ends() == dict.fromkeys(range(COUNT), 10)
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
    leader = brokers.running[admin.list_topics("read").topics["read"].partitions[0].leader - 1]
    leader.send_signal(signal.SIGSTOP)
    try:
        write(b"2")
        wait_until(lambda: is_read(b"2"), "the next leader's record", timeout=20)
    finally:
        leader.send_signal(signal.SIGCONT)
        brokers.await_whole()
        inbox.close()
