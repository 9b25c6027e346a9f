"""The first records of a stream: how many of them are dead letters, and the most frequent reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from grouping.model.ids import StreamId
from grouping.model.wording import counted
from grouping.settings.settings import Settings
from grouping.store.connection import connect, mapped
from grouping.store.fence import transaction
from grouping.store.keys import RedisKeys
from grouping.store.ownership import EvaluatorFences

__all__ = ["FIRST_RECORDS", "FirstRecords", "FirstRecordsStore"]

FIRST_RECORDS = 100
"""Counting stops after this many records of a stream."""

_RECORDS, _LETTERS, _REASON = b"records", b"letters", b"reason:"
_MOST_REASONS = 5
"""The largest number of reasons that one task writes. A task writes its most frequent reasons."""
_LONGEST_REASON = 300


class FirstRecords(NamedTuple):
    """Counts over the first `FIRST_RECORDS` records of a stream, or a few more, since tasks count in parallel."""

    records: int = 0
    letters: int = 0
    """How many of these records are dead letters."""
    reason: str = ""
    """The most frequent detail of the dead letters."""

    @classmethod
    def unpack(cls, fields: Mapping[bytes, bytes]) -> FirstRecords:
        """Return the counts from a hash of Redis."""
        reasons = {field.removeprefix(_REASON): int(n) for field, n in fields.items() if field.startswith(_REASON)}
        reason = max(sorted(reasons), key=reasons.__getitem__, default=b"")
        return cls(int(fields.get(_RECORDS, 0)), int(fields.get(_LETTERS, 0)), reason.decode("utf-8", "replace"))

    @property
    def warning(self) -> str | None:
        """The warning if at least half of the records are dead letters; None otherwise.

        Example:
            >>> FirstRecords(100, 60, "The value is JSON but no object.").warning
            '60 of the first 100 records are dead letters, mostly for this reason: The value is JSON but no object.'
        """
        if not self.letters or 2 * self.letters < self.records:
            return None
        first = counted(self.records, "record")
        letters = "is a dead letter" if self.letters == 1 else "are dead letters"
        return f"{self.letters} of the first {first} {letters}, mostly for this reason: {self.reason}"


class FirstRecordsStore:
    """The first records of streams in Redis, for the workers of an evaluator."""

    def __init__(self, settings: Settings, fences: EvaluatorFences | None) -> None:
        """Connect when first used.

        Args:
            settings: Where Redis is.
            fences: The evaluator's fences, with which every write may raise `LeaseLost`.
        """
        self._redis = connect(settings)
        self._keys = RedisKeys.of(settings)
        self._fences = fences

    def count(self, stream_id: StreamId) -> int:
        """Return how many records of a stream are counted."""
        with mapped():
            return int(self._redis.hget(self._keys.first_records(stream_id), _RECORDS) or 0)

    def add(self, stream_id: StreamId, records: int, details: Sequence[str]) -> int:
        """Count records, with the details of the dead letters among them; return how many are counted so far."""
        reasons: dict[str, int] = {}
        for detail in details:
            reason = detail[:_LONGEST_REASON]
            reasons[reason] = reasons.get(reason, 0) + 1
        key = self._keys.first_records(stream_id)
        with mapped():
            pipeline = transaction(self._redis, None if self._fences is None else self._fences.lease)
            pipeline.hincrby(key, _RECORDS, records)
            if details:
                pipeline.hincrby(key, _LETTERS, len(details))
            for reason in sorted(reasons, key=reasons.__getitem__, reverse=True)[:_MOST_REASONS]:
                pipeline.hincrby(key, _REASON + reason.encode("utf-8", "replace"), reasons[reason])
            return int(pipeline.execute()[0])
