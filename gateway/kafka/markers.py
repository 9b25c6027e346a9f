"""Markers of transactions. A marker is a control record that ends a transaction in a partition.

Committed records can be read once the marker is in their partition. Kafka's coordinator first answers the commit, and
writes the markers afterwards. The coordinator skips partitions that have no leader at that moment, as if they were
deleted (seen with Kafka 4.3, where KRaft's `getPartitionLeaderEndpoint` finds no broker for them). So if a transaction
ends while brokers die or start, the coordinator may consider it complete, although it is still open in some partitions.
Kafka calls this a *hanging* transaction (KIP-664). Its records are committed, but they hold up all readers of the
partition. If the next transaction in the partition is aborted, these records are lost.
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
"""The longest wait for a marker. The coordinator writes it within milliseconds, unless the partition has no leader."""
_PAUSE_SECONDS = 0.001


class Markers:
    """Finds partitions without the marker of their last transaction, and waits for markers."""

    def __init__(self, settings: Settings) -> None:
        self._topics = Topics(settings)
        self._reader = Consumer(reader_config(settings, settings.clients.gateway_log, isolation_level="read_committed"))

    def await_markers(self, offsets: Mapping[Partition, int]) -> None:
        """Wait until committed records can be read.

        Args:
            offsets: Partition → offset of the last committed record.

        Raises:
            KafkaUnavailable: A marker did not come in time. The next recovery finds out whether it came later.
        """
        deadline = time.monotonic() + _SECONDS
        left = dict(offsets)
        while True:
            ends = self._shown(tuple(left))
            left = {place: offset for place, offset in left.items() if ends[place] <= offset}
            if not left:
                return
            if time.monotonic() > deadline:
                raise KafkaUnavailable("committed records cannot be read from kafka yet", detail=_listed(left))
            time.sleep(_PAUSE_SECONDS)

    def _shown(self, places: Sequence[Partition]) -> Mapping[Partition, int]:
        """Return partition → offset up to which records can be read.

        The method uses a consumer, since each commit needs this answer, and the admin client takes six times as much
        CPU time. The consumer asks only once. If it gets no answer, the admin client asks and waits longer.
        """
        wanted = [TopicPartition(topic, number, OFFSET_END) for topic, number in places]
        with suppress(KafkaException):
            offsets = self._reader.offsets_for_times(wanted, QUESTION_SECONDS)
            if all(each.error is None and each.offset >= 0 for each in offsets):
                return {(each.topic, each.partition): each.offset for each in offsets}
        return self._topics.offsets.ends(places, committed=True)

    def missing(self, topics: Iterable[str]) -> list[Partition]:
        """Return the partitions with an open transaction. Partitions that do not answer are left out."""
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
