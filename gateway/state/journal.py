"""The journal (a unit's records for Kafka, which Redis keeps until Kafka has them), and Redis's catalog position."""

from __future__ import annotations

import msgspec
import pyarrow as pa

from gateway.kafka import OutgoingRecord
from gateway.state import commit_mark
from gateway.state.commands_read import CommandsRead

__all__ = ["FORMAT", "Journal", "CatalogPosition"]

FORMAT = 4
"""The format of the working copy in Redis. A copy in an older format is filled again from `cq.catalog`."""


class Journal(msgspec.Struct, array_like=True):
    """The records of a unit for Kafka."""

    number: int
    offsets: dict[int, int]
    """Partition of `cq.commands` → offset of the first command not carried out; empty without commands."""
    records: list[OutgoingRecord]
    replies: dict[int, bytes]
    """Index of a record that is the first reply to a command → key of the command's id."""
    ahead: dict[int, list[int]] = {}
    """Partition of `cq.commands` → offsets of later commands that were carried out already."""

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
        """The position on `cq.commands` after the commands of the unit."""
        return CommandsRead(self.offsets, self.ahead)


class CatalogPosition(msgspec.Struct, frozen=True):
    """The position on `cq.catalog` up to which Redis has the records."""

    next: int
    """The offset of the first missing record."""
    at_ms: int = 0
    """When Redis had all earlier records, epoch milliseconds."""
    format: int = FORMAT
    catalog: int = 1
    """The format of the catalog. If Redis lacks no records, recovery reads no mark, and checks this format instead."""

    @classmethod
    def unpack(cls, body: bytes) -> CatalogPosition:
        """Read a position that `pack` wrote."""
        return msgspec.json.decode(body, type=cls)

    @classmethod
    def of(cls, following: int, now_ms: int) -> CatalogPosition:
        """Return the position of a Redis that has all records before an offset, in the formats of this version."""
        return cls(following, now_ms, FORMAT, commit_mark.FORMAT)

    def pack(self) -> bytes:
        """Return the position as Redis has it."""
        return msgspec.json.encode(self)
