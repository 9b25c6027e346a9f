"""What the digests of a tick hold, noted before the first of them is written; and the lives that cursors are of."""

from __future__ import annotations

import msgspec

from gateway.state.records import TimedNote
from grouping.digests.cursor import Offsets

__all__ = ["Cut", "Named", "incarnation_of"]

Named = tuple[str, int, int]
"""Destination, tick, and where the digest's time begins."""


class Cut(msgspec.Struct, array_like=True, frozen=True):
    """What some digests hold, on `cq.ticks` before the first of them is written; key `cut/<name>`, until all are.

    A digest holds the matches that were evaluated by the cut, of times before the tick, that no earlier tick held.
    """

    stream_id: str
    covered: Offsets
    """By source partition: matches of lower offsets are in."""
    digests: tuple[Named, ...]
    fired_ms: int
    """The time that the digests give as theirs."""


def incarnation_of(destination_id: str, note: TimedNote) -> str:
    """Return the name of one incarnation of a destination.

    One that was taken up again has cursors of its own, for the last digest of the one before may still be to come.
    """
    return f"{destination_id}/{note.born_ms}"
