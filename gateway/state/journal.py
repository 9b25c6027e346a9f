"""What of a unit of work goes to Kafka, as Redis keeps it until it is there; and how far Redis itself is."""

from __future__ import annotations

import msgspec
import pyarrow as pa

from gateway.kafka import OutgoingRecord
from gateway.state import commit_mark

__all__ = ["FORMAT", "Journal", "Position", "unpack_offsets"]

FORMAT = 4
"""Of the working copy in Redis: one of another format is made anew from `cq.catalog`."""


class Journal(msgspec.Struct, array_like=True):
    """What of one unit goes to Kafka."""

    number: int
    offsets: dict[int, int]
    """By partition of cq.commands, the offset after the last command that was carried out; none in a unit without."""
    records: list[OutgoingRecord]
    replies: dict[int, bytes]
    """Number of a record that is a reply to be remembered, to the key of its command id."""

    @classmethod
    def unpack(cls, body: bytes) -> Journal:
        """Read what `pack` made."""
        size = int.from_bytes(body[:4], "big")
        return msgspec.msgpack.decode(pa.decompress(body[4:], size, codec="lz4", asbytes=True), type=cls)

    def pack(self) -> bytes:
        """Return the journal as Redis has it."""
        body = msgspec.msgpack.encode(self)
        return len(body).to_bytes(4, "big") + bytes(pa.compress(body, codec="lz4", asbytes=True))

    def pack_offsets(self) -> bytes:
        """Return the value of `RedisKeys.commands_read` once this is on Kafka."""
        return msgspec.json.encode(self.offsets)


def unpack_offsets(body: bytes | None) -> dict[int, int]:
    """Return by partition of cq.commands the offset after the last command that was carried out, as Redis notes it.

    Example:
        >>> unpack_offsets(Journal(3, {0: 17}, [], {}).pack_offsets()), unpack_offsets(None)
        ({0: 17}, {})
    """
    return _decode_offsets(body or b"{}")


_decode_offsets = msgspec.json.Decoder(dict[int, int]).decode


class Position(msgspec.Struct, frozen=True):
    """What Redis notes of how far it has `cq.catalog`."""

    next: int
    """The offset of the first record that it lacks."""
    at_ms: int = 0
    """When it had all that there was before."""
    format: int = FORMAT
    catalog: int = 1
    """The format of the catalog that it has: Redis may have all of it, so that no mark is read."""

    @classmethod
    def unpack(cls, body: bytes) -> Position:
        """Read a note."""
        return msgspec.json.decode(body, type=cls)

    @classmethod
    def of(cls, following: int, now_ms: int) -> Position:
        """Return the note of a Redis that has all before an offset now, in the formats of this version."""
        return cls(following, now_ms, FORMAT, commit_mark.FORMAT)

    def pack(self) -> bytes:
        """Return the note as Redis has it."""
        return msgspec.json.encode(self)
