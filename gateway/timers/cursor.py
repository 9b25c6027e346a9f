"""How far a destination has been served: after each digest on `cq.ticks`, key `cursor/<destination>`."""

from __future__ import annotations

import msgspec

from gateway.records import Sight, Window
from gateway.timers.frontier import Offsets

__all__ = ["Cursor", "Cut", "windows_at"]


class Cursor(msgspec.Struct, array_like=True, frozen=True):
    """A match was in an earlier digest exactly when its offset is below `covered` and its time below `tick_ms`."""

    tick_ms: int = 0
    """The last digest's tick."""
    covered: Offsets = {}
    """By source partition: what that digest's cut covered."""
    next: int = 0
    """In the partition of `cq.pending` that holds the matches: all records before it are done with, but the `held`."""
    held: tuple[int, ...] = ()
    """Earlier records with matches that are still to come, since their times are later than the tick."""


class Cut(msgspec.Struct, array_like=True, frozen=True):
    """What some digests hold, on `cq.ticks` before the first of them is written; key `cut/<number>`, until all are.

    A digest holds the matches that were evaluated by the cut, of times before the tick, that no earlier tick held.
    """

    stream_id: str
    covered: Offsets
    """By source partition: matches of lower offsets are in."""
    digests: tuple[tuple[str, int, int], ...]
    """Destination, tick, and where the digest's time begins."""
    fired_ms: int
    """The time that the digests give as theirs."""


def windows_at(history: tuple[Sight, ...], epoch: int, version: int) -> list[Window]:
    """Return the record times that a destination saw at a version of the tables.

    Example:
        >>> windows_at(((1, 4, [(None, None)]), (1, 9, [])), 1, 8)
        [(None, None)]
    """
    for since_epoch, since_version, windows in reversed(history):
        if (since_epoch, since_version) <= (epoch, version):
            return windows
    return []
