"""A record that the gateway's readers return: plain fields, without an object of the driver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from schemas.record_headers import headers_of

__all__ = ["Record", "record_of"]


class Record(msgspec.Struct, frozen=True):
    """A record of a topic."""

    topic: str
    partition: int
    offset: int
    time_ms: int
    """Kafka's timestamp, epoch milliseconds. Depending on the topic, this is the time at which the broker appended the
    record, or the time that the producer gave it."""
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]

    @property
    def position(self) -> str:
        """The record's place on its topic, as ``<partition>/<offset>``."""
        return f"{self.partition}/{self.offset}"


def record_of(message: Any) -> Record:
    """Return the record of a consumed message; the message must have no error."""
    return Record(
        message.topic(),
        message.partition(),
        message.offset(),
        message.timestamp()[1],
        message.key(),
        message.value(),
        headers_of(message) or (),
    )
