"""How much of a table's topic is held at once."""

from __future__ import annotations

from collections import deque

import pytest
from confluent_kafka import Message, TopicPartition

from grouping.settings.settings import Settings
from spark_jobs.runtime.kafka import positioned_consumer, table_log
from spark_jobs.runtime.kafka.table_log import TableLog


class _Consumer:
    """The driver's consumer of a partition of records of a kilobyte each, some of which it has fetched at any time."""

    def __init__(self, count: int, fetched: int) -> None:
        values = (bytes(1_000) for _ in range(count))
        self._left = deque(Message("t", 0, at, b"key", value) for at, value in enumerate(values))
        self._fetched = fetched

    def assign(self, places: list[TopicPartition]) -> None:
        """Begin."""

    def consume(self, most: int, _: float) -> list[Message]:
        """Return the fetched messages."""
        return [self._left.popleft() for _ in range(min(most, self._fetched, len(self._left)))]

    def incremental_unassign(self, places: list[TopicPartition]) -> None:
        """Read a partition no more."""

    def unassign(self) -> None:
        """Read nothing more."""


def test_records_are_held_by_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records of any size may lie in a table's topic: a batch ends at a limit of bytes."""
    monkeypatch.setattr(positioned_consumer, "Consumer", lambda _: _Consumer(count=400, fetched=10))
    monkeypatch.setattr(table_log, "open_admin", lambda _: None)
    monkeypatch.setattr(table_log, "AT_ONCE_BYTES", 50_000)
    batches = list(TableLog(Settings()).read("t", {}, {0: 400}))
    assert list(range(400)) == [offset for batch in batches for offset in batch["offset"].to_pylist()]
    assert max(batch.nbytes for batch in batches) < 100_000
