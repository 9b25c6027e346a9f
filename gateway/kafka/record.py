"""A record from the gateway's readers: plain fields, which outlive the driver's object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

__all__ = ["Record", "record_of"]


class Record(msgspec.Struct, frozen=True):
    """A record of a topic."""

    topic: str
    partition: int
    offset: int
    time_ms: int
    """Kafka's timestamp: when the broker appended the record, or, without append time, when the producer made it."""
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]

    @property
    def position(self) -> str:
        """The record's place on its topic."""
        return f"{self.partition}/{self.offset}"


def record_of(message: Any) -> Record:
    """Return the record of a consumed message without an error."""
    return Record(
        message.topic(),
        message.partition(),
        message.offset(),
        message.timestamp()[1],
        message.key(),
        message.value(),
        message.headers() or (),
    )
