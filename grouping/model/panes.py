"""Panes: the times between neighbouring bounds of a store of groups, whose matches are counted together.

A bound is an instant from which on one of the store's readers takes matches otherwise than before: a tick, START or
EXPIRE. So none of these lies within a pane, and a pane is in a reader's digest as a whole or not at all.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

__all__ = ["Bound", "pack_bounds", "unpack_bounds"]

Bound = tuple[int, int]
"""A period and a phase, milliseconds: a bound at every phase + k × period. With period 0 the one instant `phase`."""

_PACKED = struct.Struct("<qq")


def pack_bounds(bounds: Iterable[Bound]) -> bytes:
    """Return bounds as bytes, in one order and each once; an instant that a period meets is left out.

    Example:
        >>> unpack_bounds(pack_bounds([(0, 70), (60, 10), (0, 75), (60, 10)]))
        [(0, 75), (60, 10)]
    """
    distinct = set(bounds)
    periods = {period for period, _ in distinct if period}
    needed = (
        (period, phase)
        for period, phase in distinct
        if period or not any((each, phase % each) in distinct for each in periods)
    )
    return b"".join(_PACKED.pack(*bound) for bound in sorted(needed))


def unpack_bounds(packed: bytes) -> list[Bound]:
    """Decode bounds, ascending."""
    return list(_PACKED.iter_unpack(packed))
