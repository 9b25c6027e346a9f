"""What the digests of a tick hold, noted before the first of them is written."""

from __future__ import annotations

import msgspec

from grouping.digests.cursor import Offsets
from grouping.model.ids import DestinationId, StreamId

__all__ = ["Cut", "Named"]

Named = tuple[DestinationId, int, int]
"""Destination, tick, and where the digest's time begins."""


class Cut(msgspec.Struct, array_like=True, frozen=True):
    """What some digests hold, on `cq.ticks` before the first of them is written; key `cut/<name>`, until all are.

    A digest holds the matches that were evaluated by the cut, of times before the tick, that no earlier tick held.
    """

    stream_id: StreamId
    covered: Offsets
    """By source partition: matches of lower offsets are in."""
    digests: tuple[Named, ...]
    fired_ms: int
    """The time that the digests give as theirs."""
