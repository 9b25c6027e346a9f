"""The cut: the source offsets that the digests of a tick cover, written before the first digest is."""

from __future__ import annotations

import msgspec

from grouping.digests.cursor import SourceOffsets
from grouping.model.ids import DestinationId, StreamId

__all__ = ["Cut", "Named"]

Named = tuple[DestinationId, int, int]
"""Destination, tick, and the instant at which the digest's time begins."""


class Cut(msgspec.Struct, array_like=True, frozen=True):
    """The source offsets that some digests cover; on `cq.ticks` under `cut/<name>` until all of them are written.

    A digest holds the matches below the cut, of times before its tick, that no earlier digest held.
    """

    stream_id: StreamId
    covered: SourceOffsets
    """By source partition: the digests cover events of lower offsets."""
    digests: tuple[Named, ...]
    fired_ms: int
    """The time in the digests' records."""
    gaps: tuple[DestinationId, ...] = ()
    """Destinations with OVER LAST that missed ticks before the window of their digest."""
