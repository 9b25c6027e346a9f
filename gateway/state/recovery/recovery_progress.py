"""The progress of a recovery through the topics that fill Redis. With ten million CQs, a recovery takes minutes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from gateway.kafka import Record

__all__ = ["RecoveryProgress"]

_EVERY = 1_000
"""The number of records between two updates of the progress."""


class RecoveryProgress:
    """The part of a topic that the recovery has read. Other threads may call `fields` at any time."""

    def __init__(self) -> None:
        self._fields: dict[str, object] = {}

    def fields(self) -> dict[str, object]:
        """Return the progress for a role's status; empty while no topic is read.

        ``read`` and ``records`` are numbers of offsets, so offsets without a record count too.
        """
        return self._fields

    def watched(
        self, topic: str, begins: Mapping[int, int], ends: Mapping[int, int], records: Iterable[Record]
    ) -> Iterator[Record]:
        """Yield the records of a topic, and note the progress.

        Args:
            topic: The name of the topic.
            begins: Partition → offset of the first record.
            ends: Partition → offset after the last record.
            records: The records between these offsets; the records of each partition are in order.

        Example:
            >>> progress = RecoveryProgress()
            >>> records = [Record("t", 0, offset, 0, None, None, ()) for offset in (5, 7)]
            >>> [progress.fields() for _ in progress.watched("t", {0: 5}, {0: 9}, records)][0], progress.fields()
            ({'recovery': {'topic': 't', 'read': 0, 'records': 4}}, {})
        """
        before, reached = sum(begins.values()), dict(begins)
        count = sum(ends.values()) - before
        try:
            for number, record in enumerate(records):
                if number % _EVERY == 0:
                    read = sum(reached.values()) - before
                    self._fields = {"recovery": {"topic": topic, "read": read, "records": count}}
                reached[record.partition] = record.offset + 1
                yield record
        finally:
            self._fields = {}
