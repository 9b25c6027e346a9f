"""A record of a result topic: its CloudEvents headers and value (docs/results.md), typed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

__all__ = [
    "DIGEST",
    "END",
    "LEAVE",
    "MATCH",
    "SNAPSHOT",
    "DigestPart",
    "EndNote",
    "ResultRecord",
    "Mark",
    "EventSource",
    "digest_part",
    "end_note",
    "match_fields",
    "snapshot_rows",
    "source_of",
]

MATCH, DIGEST, END, LEAVE, SNAPSHOT = "cq.match", "cq.digest", "cq.end", "cq.leave", "cq.snapshot"
"""The values of `ce_type`."""

_decode_fields = msgspec.json.Decoder(dict[str, Any]).decode


class ResultRecord(msgspec.Struct, frozen=True):
    """A record of a result topic, without objects of the Kafka driver."""

    topic: str
    partition: int
    offset: int
    key: bytes
    value: bytes
    headers: Mapping[str, str]
    written_at: datetime | None = None

    @property
    def kind(self) -> str:
        """The CloudEvents type; empty for a record that the gateway did not write."""
        return self.headers.get("ce_type", "")

    @property
    def time(self) -> datetime:
        """The source record's time, or the tick."""
        return datetime.fromisoformat(self.headers["ce_time"])


Mark = tuple[int, int]
"""A match's place within its source partition: the record's offset, and its number among the record's matches."""


class EventSource(msgspec.Struct, frozen=True):
    """The place of a match's event, from the id `<stream>/<partition>/<offset>`.

    If a record may have several matches, the id ends with `/<number>`.
    """

    stream: str
    partition: int
    offset: int
    number: int | None = None

    @classmethod
    def of(cls, stream: str, result_id: str) -> EventSource:
        """Read a match's `ce_id`, which begins with its `ce_source`."""
        return cls(stream, *map(int, result_id.removeprefix(stream + "/").split("/")))

    @property
    def mark(self) -> Mark:
        """The match's place within the source partition."""
        return self.offset, self.number or 0


class DigestPart(msgspec.Struct, frozen=True):
    """A part of a digest."""

    fired_at: datetime
    count: int
    since: datetime = msgspec.field(name="from")
    until: datetime = msgspec.field(name="to")
    part: int = 1
    parts: int = 1
    rows: list[dict[str, Any]] = []


class EndNote(msgspec.Struct, frozen=True):
    """The value of `cq.end` and `cq.leave`."""

    ended_at: datetime
    reason: str
    member: str | None = None
    """In `cq.leave`: the token of the member that left."""


_decode_part = msgspec.json.Decoder(DigestPart).decode


class _SnapshotEnd(msgspec.Struct, frozen=True):
    """The value of `cq.snapshot`."""

    rows: int


_decode_snapshot = msgspec.json.Decoder(_SnapshotEnd).decode
_decode_end = msgspec.json.Decoder(EndNote).decode


def source_of(fields: ResultRecord) -> EventSource:
    """Read the source of a match from its headers."""
    return EventSource.of(fields.headers["ce_source"], fields.headers["ce_id"])


def match_fields(fields: ResultRecord) -> dict[str, Any]:
    """Read a match's value: the SELECT list, or all columns for a virtual destination."""
    return _decode_fields(fields.value)


def digest_part(fields: ResultRecord) -> tuple[int, DigestPart]:
    """Read a part of a digest; return the tick in epoch milliseconds, and the part."""
    _, tick, _ = fields.headers["ce_id"].rsplit("/", 2)
    return int(tick), _decode_part(fields.value)


def end_note(fields: ResultRecord) -> tuple[str, EndNote]:
    """Read `cq.end` or `cq.leave`; return the id of the destination that ended or was left, and the record's value."""
    destination, _, _ = fields.headers["ce_id"].rsplit("/", 2)
    return destination, _decode_end(fields.value)


def snapshot_rows(fields: ResultRecord) -> int:
    """Read `cq.snapshot`, the record after the last row of a snapshot; return the number of these rows."""
    return _decode_snapshot(fields.value).rows
