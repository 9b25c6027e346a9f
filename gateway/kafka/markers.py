"""Markers of transactions: control records that end a transaction in each partition that it wrote to.

Committed records can be read once the marker is there. Kafka's coordinator answers the commit first and writes the
markers afterwards. The coordinator skips partitions without a leader at that moment, as if they were deleted (seen with
Kafka 4.3, where KRaft's `getPartitionLeaderEndpoint` finds no broker for them). If a transaction ends while brokers die
or start, the coordinator then considers it complete, yet it stays open in these partitions: a *hanging* transaction, in
Kafka's words (KIP-664). Its records, though committed, hold up all readers of the partition. If the next transaction in
the partition is aborted, these records are lost.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from confluent_kafka import OFFSET_END, Consumer, KafkaException, TopicPartition

from gateway.kafka.driver import QUESTION_SECONDS, KafkaUnavailable, reader_config
from gateway.kafka.offsets import Partition
from gateway.kafka.topics import Topics
from grouping.settings.settings import Settings

__all__ = ["Markers"]

_SECONDS = 10.0
"""Longest wait for a marker: the coordinator writes it within milliseconds, unless a leader has to be found."""
_PAUSE_SECONDS = 0.001


class Markers:
    """Tells whether partitions have the markers of the transactions written to them."""

    def __init__(self, settings: Settings) -> None:
        self._topics = Topics(settings)
        self._reader = Consumer(reader_config(settings, settings.clients.gateway_log, isolation_level="read_committed"))

    def await_behind(self, offsets: Mapping[Partition, int]) -> None:
        """Wait until committed records can be read.

        Args:
            offsets: Partition → offset of the last committed record.

        Raises:
            KafkaUnavailable: A marker does not come; recovery finds out whether it comes later.
        """
        deadline = time.monotonic() + _SECONDS
        left = dict(offsets)
        while True:
            ends = self._shown(tuple(left))
            left = {place: offset for place, offset in left.items() if ends[place] <= offset}
            if not left:
                return
            if time.monotonic() > deadline:
                raise KafkaUnavailable("kafka does not show what was committed", detail=_listed(left))
            time.sleep(_PAUSE_SECONDS)

    def _shown(self, places: Sequence[Partition]) -> Mapping[Partition, int]:
        """Return the offsets up to which records can be read.

        Each commit asks this, and the admin client takes six times as much CPU for it, so a consumer asks. The consumer
        asks a single broker once; if it does not answer, the admin client asks with more patience.
        """
        wanted = [TopicPartition(topic, number, OFFSET_END) for topic, number in places]
        with suppress(KafkaException):
            offsets = self._reader.offsets_for_times(wanted, QUESTION_SECONDS)
            if all(each.error is None and each.offset >= 0 for each in offsets):
                return {(each.topic, each.partition): each.offset for each in offsets}
        return self._topics.offsets.ends(places, committed=True)

    def missing(self, topics: Iterable[str]) -> list[Partition]:
        """Return the partitions with an open transaction; partitions that do not answer are left out."""
        forms = self._topics.forms(topics)
        places = [(name, number) for name, form in forms.items() for number in range(form.partitions)]
        ends = self._topics.offsets.known_ends(places, committed=False)
        shown = self._topics.offsets.known_ends(places)
        return [place for place, end in ends.items() if shown.get(place, end) < end]

    def await_all(self, topics: Iterable[str]) -> None:
        """Wait until no transaction is open in any partition.

        Raises:
            KafkaUnavailable: A transaction stays open.
        """
        names = tuple(topics)
        deadline = time.monotonic() + _SECONDS
        while missing := self.missing(names):
            if time.monotonic() > deadline:
                raise KafkaUnavailable(
                    "a transaction hangs in topics of the gateway",
                    detail=f"Another program's transaction hangs in {_listed(missing)}.",
                    hint="kafka-transactions.sh finds hanging transactions and aborts them.",
                )
            time.sleep(_PAUSE_SECONDS)


def _listed(places: Iterable[Partition]) -> str:
    return ", ".join(f"{topic}/{number}" for topic, number in sorted(places))
