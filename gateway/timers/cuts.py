"""The cut: the source offsets that the digests of a tick cover, written before the first of these digests."""

from __future__ import annotations

import msgspec

from grouping.digests.cursor import SourceOffsets
from grouping.model.ids import DestinationId, StreamId

__all__ = ["Cut", "Named"]

Named = tuple[DestinationId, int, int]
"""A digest: destination, tick, and the instant at which the digest begins."""


class Cut(msgspec.Struct, array_like=True, frozen=True):
    """The source offsets that some digests cover; on `cq.ticks` as `cut/<name>` until all of them are written.

    A digest holds the matches of events below the cut and before its tick that no earlier digest held. Results that
    waited for the watermark belong to no offset of the source: they count by where they are on `cq.pending`.
    """

    stream_id: StreamId
    covered: SourceOffsets
    """Source partition → offset: the digests cover events with lower offsets."""
    digests: tuple[Named, ...]
    fired_ms: int
    """The time of the digests' records, epoch milliseconds."""
    gaps: tuple[DestinationId, ...] = ()
    """Destinations with OVER LAST whose matches from before the window are in no digest, since ticks were missed."""
    reached: dict[int, int] = {}
    """Partition of `cq.pending` → offset below which the digests cover computed results; empty in cuts of versions that
    had none."""

    def below(self, partition: int) -> int | None:
        """Return the offset of a partition of `cq.pending` below which computed results are covered; None for all."""
        return self.reached.get(partition, 0) if self.reached else None
