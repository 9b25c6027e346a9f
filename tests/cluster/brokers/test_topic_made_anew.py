"""A topic of results that was deleted and made anew, with another leader than its writer and reader know.

The leader epoch of the new topic is lower, so Kafka's driver treats its metadata as outdated: the writer would wait for
a minute, and the reader for ever.
"""

from __future__ import annotations

import time

from confluent_kafka.admin import AdminClient, NewTopic

from gateway.kafka import OutgoingRecord, TransactionalWriter
from gateway.sdk.inbox import Inbox
from grouping.settings.settings import Settings
from tests.cluster.brokers.brokers import Brokers
from tests.kafka_client import wait_until

_PLACE = ("anew", 0)
_SECONDS = 45
"""Less than the minute for which the writer would wait."""


def test_a_topic_that_was_made_anew_behind_another_broker(brokers: Brokers) -> None:
    """The topic is written to at once, and read some seconds later."""
    admin = AdminClient({"bootstrap.servers": brokers.bootstrap})
    _make(admin, [1, 2])
    writer, inbox = TransactionalWriter(Settings(kafka={"bootstrap": brokers.bootstrap})), Inbox(brokers.bootstrap, {})
    read: list[bytes] = []

    def is_read(value: bytes) -> bool:
        read.extend(fields.value for fields in inbox.fetch(0.1))
        return read[-1:] == [value]

    inbox.enter({_PLACE: 0})
    _write(writer, b"1")
    wait_until(lambda: is_read(b"1"), "the first record")
    brokers.kill(0)  # the leader: the next one's epoch is higher
    _write(writer, b"2")
    wait_until(lambda: is_read(b"2"), "the next leader's record")
    inbox.leave([_PLACE])
    brokers.start(0)
    brokers.await_whole()
    admin.delete_topics(["anew"], operation_timeout=30)["anew"].result()
    _make(admin, [3, 1])
    writer.note_made({"anew"})
    began = time.monotonic()
    _write(writer, b"3")
    inbox.enter({_PLACE: 0})
    wait_until(lambda: is_read(b"3"), "the new topic's record", timeout=_SECONDS)
    assert time.monotonic() - began < _SECONDS
    inbox.close()


def _make(admin: AdminClient, replicas: list[int]) -> None:
    admin.create_topics([NewTopic("anew", 1, replica_assignment=[replicas])], operation_timeout=30)["anew"].result()


def _write(writer: TransactionalWriter, value: bytes) -> None:
    writer.write([OutgoingRecord("anew", b"k", value, partition=0)])
