"""The cut: the source offsets that the digests of a tick cover, written before the first of these digests."""

from __future__ import annotations

import msgspec

from grouping.digests.cursor import SourceOffsets
from grouping.model.ids import DestinationId, StreamId

__all__ = ["Cut", "Named"]

Named = tuple[DestinationId, int, int]
"""Names a digest: its destination, its tick, and the instant at which it begins."""


class Cut(msgspec.Struct, array_like=True, frozen=True):
    """The source offsets that some digests cover.

    The record `cut/<name>` on `cq.ticks` has the cut until all these digests are written.

    A digest holds the matches of events with offsets below the cut and times before the tick, unless an earlier digest
    held them. Computed results (results that waited for the watermark) have no offset of the source: for them, the
    offset on `cq.pending` decides.
    """

    stream_id: StreamId
    covered: SourceOffsets
    """Source partition → offset: the digests cover events with lower offsets."""
    digests: tuple[Named, ...]
    fired_ms: int
    """The time of the digests' records, epoch milliseconds."""
    gaps: tuple[DestinationId, ...] = ()
    """Destinations with OVER LAST that have missed ticks. Matches of that time that are older than the window of the
    next tick are in no digest."""
    reached: dict[int, int] = {}
    """Partition of `cq.pending` → offset below which the digests cover computed results; empty in the cuts of earlier
    versions of the gateway, which had no computed results."""

    def below(self, partition: int) -> int | None:
        """Return the offset of a partition of `cq.pending` below which computed results are covered.

        None means that all computed results are covered.
        """
        return self.reached.get(partition, 0) if self.reached else None
