"""The journal: the records of a unit of work for Kafka, in Redis until Kafka has them; and how far Redis itself is."""

from __future__ import annotations

import msgspec
import pyarrow as pa

from gateway.kafka import OutgoingRecord
from gateway.state import commit_mark
from gateway.state.commands_read import CommandsRead

__all__ = ["FORMAT", "Journal", "CatalogPosition"]

FORMAT = 4
"""The format of the working copy in Redis: a copy of another format is made anew from `cq.catalog`."""


class Journal(msgspec.Struct, array_like=True):
    """The records of a unit for Kafka."""

    number: int
    offsets: dict[int, int]
    """By partition of cq.commands, the offset of the first command that was not carried out; none in a unit without."""
    records: list[OutgoingRecord]
    replies: dict[int, bytes]
    """Number of a record that is a reply to be remembered, to the key of its command id."""
    ahead: dict[int, list[int]] = {}
    """By partition of cq.commands, the offsets of later commands that were carried out."""

    @classmethod
    def unpack(cls, body: bytes) -> Journal:
        """Read a journal that `pack` wrote."""
        size = int.from_bytes(body[:4], "big")
        return msgspec.msgpack.decode(pa.decompress(body[4:], size, codec="lz4", asbytes=True), type=cls)

    def pack(self) -> bytes:
        """Return the journal as Redis has it."""
        body = msgspec.msgpack.encode(self)
        return len(body).to_bytes(4, "big") + bytes(pa.compress(body, codec="lz4", asbytes=True))

    @property
    def commands_read(self) -> CommandsRead:
        """The position on cq.commands once the journal is on Kafka."""
        return CommandsRead(self.offsets, self.ahead)


class CatalogPosition(msgspec.Struct, frozen=True):
    """Redis' note of how far it has `cq.catalog`."""

    next: int
    """The offset of the first missing record."""
    at_ms: int = 0
    """When the copy had all earlier records."""
    format: int = FORMAT
    catalog: int = 1
    """The format of the catalog: if Redis is complete, recovery reads no mark with the format."""

    @classmethod
    def unpack(cls, body: bytes) -> CatalogPosition:
        """Read a note."""
        return msgspec.json.decode(body, type=cls)

    @classmethod
    def of(cls, following: int, now_ms: int) -> CatalogPosition:
        """Return the note of a Redis that has all before an offset now, in the formats of this version."""
        return cls(following, now_ms, FORMAT, commit_mark.FORMAT)

    def pack(self) -> bytes:
        """Return the note as Redis has it."""
        return msgspec.json.encode(self)
