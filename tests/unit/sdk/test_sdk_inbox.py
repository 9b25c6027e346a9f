"""The state of partitions in the SDK's consumer, without a broker or with librdkafka's mock broker."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import KafkaError, Producer

from gateway.sdk.errors import ResultsGone
from gateway.sdk.inbox import Inbox

_WHERE = ("results", 0)


class _DeletedRecords:
    """librdkafka's message if the next records to read are deleted."""

    def error(self) -> KafkaError:
        return KafkaError(KafkaError._AUTO_OFFSET_RESET)  # noqa: SLF001  # librdkafka's own code

    def topic(self) -> str:
        return _WHERE[0]

    def partition(self) -> int:
        return _WHERE[1]


def test_what_was_left_is_not_read_from_its_beginning() -> None:
    """A topic may be deleted once its CQs have ended: a report of that comes too late to be of use."""
    inbox = Inbox("127.0.0.1:1", {})
    inbox.assign({_WHERE: 5, ("others", 0): 0})
    inbox.leave([_WHERE])
    assert [] == inbox.sound([_DeletedRecords()], skip_lost=True)  # type: ignore[list-item]
    assert not inbox.lost
    inbox.close()


def test_the_loss_of_records_is_noted() -> None:
    """The end of a CQ may be among the deleted records."""
    inbox = Inbox("127.0.0.1:1", {})
    inbox.assign({_WHERE: 5, ("others", 0): 0})
    assert [] == inbox.sound([_DeletedRecords()], skip_lost=True)  # type: ignore[list-item]
    assert {_WHERE} == inbox.lost
    inbox.close()


def _read(inbox: Inbox) -> list[bytes]:
    """Return the values of the records that come."""
    until, found = time.monotonic() + 20, list[bytes]()
    while len(found) < 3 and time.monotonic() < until:
        found += [value for value, _ in inbox.replies(0.2, b"key")]
    return found


def test_a_topic_that_was_made_anew_is_told() -> None:
    """The new topic ends before the next offset to read: its results belong to others. Replies are read on."""
    broker = Producer({"test.mock.num.brokers": 1, "log_level": "2"})
    for number in range(3):
        broker.produce(_WHERE[0], str(number), b"key", partition=0)
    assert not broker.flush(20)
    [address] = {f"{each.host}:{each.port}" for each in broker.list_topics(timeout=20).brokers.values()}
    inbox = Inbox(address, {})
    inbox.assign({_WHERE: 5_000})
    with pytest.raises(ResultsGone, match="deleted") as failure:
        for _ in range(100):
            inbox.fetch(0.2)
    assert failure.value.detail == "The topic was deleted and made again."
    inbox.close()
    replies = Inbox(address, {})
    replies.assign({_WHERE: 5_000})
    assert [b"0", b"1", b"2"] == _read(replies)
    replies.close()
