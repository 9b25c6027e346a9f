"""Where topics end is never told wrong while the leader of a partition is silent: a table would seem to be empty."""

from __future__ import annotations

import signal

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from gateway.kafka import Topics
from grouping.settings.settings import Settings
from spark_jobs.kafka.admin import open_admin
from spark_jobs.kafka.topic_offsets import TopicOffsets
from tests.cluster.brokers.brokers import COUNT, Brokers

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
            known = topics.known_ends(_PLACES)
            assert known == topics.ends(_PLACES)
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
