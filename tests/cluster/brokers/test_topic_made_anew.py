"""The gateway's writer and a topic that was deleted and made anew, whose leader is another broker than it knows."""

from __future__ import annotations

import time

from confluent_kafka.admin import AdminClient, NewTopic

from gateway.kafka import OutgoingRecord, TransactionalWriter
from grouping.settings.settings import Settings
from tests.cluster.brokers.brokers import Brokers

_RECORD = OutgoingRecord("anew", b"k", b"v", partition=0)


def test_a_topic_that_was_made_anew_is_written_to_at_once(brokers: Brokers) -> None:
    """The driver takes the new topic's leader epoch, which is lower, for an old answer, and waits for a minute."""
    admin = AdminClient({"bootstrap.servers": brokers.bootstrap})
    _make(admin, [1, 2])
    writer = TransactionalWriter(Settings(kafka={"bootstrap": brokers.bootstrap}))
    writer.write([_RECORD])
    brokers.kill(0)  # the leader: the next one's epoch is higher
    writer.write([_RECORD])
    brokers.start(0)
    brokers.await_whole()
    admin.delete_topics(["anew"], operation_timeout=30)["anew"].result()
    _make(admin, [3, 1])
    writer.note_made({"anew"})
    began = time.monotonic()
    assert {0: 0} == writer.write([_RECORD], watched={0})
    assert time.monotonic() - began < 10


def _make(admin: AdminClient, replicas: list[int]) -> None:
    admin.create_topics([NewTopic("anew", 1, replica_assignment=[replicas])], operation_timeout=30)["anew"].result()
