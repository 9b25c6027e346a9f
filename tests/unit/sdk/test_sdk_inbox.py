"""What the SDK's consumer is told of partitions, without a broker."""

from __future__ import annotations

from confluent_kafka import KafkaError

from gateway.sdk.inbox import Inbox

_WHERE = ("results", 0)


class _DeletedRecords:
    """What librdkafka reports where the records to be read next are gone."""

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
    inbox.close()
