"""The mark of a commit, which is the commit's last record on `cq.catalog`.

All marks have the same key, so compaction keeps the latest. A starting gateway learns from the mark whether the journal
in Redis was written to Kafka, whether Redis has the content of an ended epoch, and where to continue reading commands.
Redis and the offsets in Kafka are not enough for this: Redis may have fallen back to an earlier state, and Kafka
deletes the offsets a week after the last commit.
"""

from __future__ import annotations

import msgspec

from gateway.state.commands_read import CommandsRead
from grouping.model.errors import OperationalError

__all__ = ["FORMAT", "CatalogUnreadable", "CommitMark", "check_format"]

FORMAT = 5
"""The format of the catalog records that this version writes, and the latest format that it can read.

Format 2 added the access of sources, format 3 places of columns, format 4 streams with `explode`, format 5 schemas by
id and CQs with edges. A version that knows only an earlier format would not enforce access, would read wrong values, or
would report each match of a CQ with edges.
"""


class CatalogUnreadable(OperationalError):
    """The catalog has records of a later format; a retry is useless."""


class CommitMark(msgspec.Struct, frozen=True):
    """The mark of one commit."""

    epoch: int
    """The epoch of the constant tables."""
    number: int
    """The number of the journal; each journal has a higher number than the last one."""
    offsets: dict[int, int]
    """Partition of `cq.commands` → offset of the first command that was not carried out."""
    format: int = FORMAT
    ahead: dict[int, list[int]] = {}
    """Partition of `cq.commands` → offsets of later commands that were carried out already."""

    @property
    def commands_read(self) -> CommandsRead:
        """The position on `cq.commands`."""
        return CommandsRead(self.offsets, self.ahead)

    @classmethod
    def decode(cls, body: bytes) -> CommitMark:
        """Read a mark.

        Raises:
            CatalogUnreadable: A later or unknown version of the product wrote the mark.
        """
        try:
            mark = _decode(body)
        except msgspec.MsgspecError as error:
            raise CatalogUnreadable(
                "the catalog has a mark that this version cannot read", detail=str(error)
            ) from error
        check_format(mark.format)
        return mark

    def encode(self) -> bytes:
        """Return the record's value."""
        return msgspec.json.encode(self)


def check_format(stored: int) -> None:
    """Check that this version can read a catalog of the given format.

    Raises:
        CatalogUnreadable: A later version of the product wrote the catalog.
    """
    if stored > FORMAT:
        raise CatalogUnreadable(
            f"the catalog has format {stored}, and this version reads {FORMAT}",
            hint="Start the version that wrote the catalog, or a later version.",
        )


_decode = msgspec.json.Decoder(CommitMark).decode
