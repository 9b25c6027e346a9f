"""Panes: the times between neighbouring bounds of a store; matches within a pane are aggregated together.

A bound is an instant at which a reader of the store begins or stops to take matches, or begins a new digest: START,
EXPIRE or a tick. No bound lies within a pane, so a pane is in a reader's digest as a whole or not at all.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

__all__ = ["PaneBound", "pack_bounds", "unpack_bounds"]

PaneBound = tuple[int, int]
"""A period and a phase, in milliseconds: the bounds are the instants phase + k × period. With period 0, the only bound
is the instant `phase`."""

_PACKED = struct.Struct("<qq")


def pack_bounds(bounds: Iterable[PaneBound] | NDArray[np.int64]) -> bytes:
    """Return bounds as bytes, sorted and without repetitions.

    A single instant that is also a bound of a period is left out.

    Args:
        bounds: The bounds, as pairs, or as the rows of a matrix: a store may have a hundred thousand readers.

    Example:
        >>> unpack_bounds(pack_bounds([(0, 70), (60, 10), (0, 75), (60, 10)]))
        [(0, 75), (60, 10)]
    """
    pairs = bounds if isinstance(bounds, np.ndarray) else np.array([*bounds], np.int64)
    periods, phases = pairs.reshape(-1, 2).T
    order = np.lexsort((phases, periods))
    periods, phases = periods[order], phases[order]
    needed = np.ones(periods.size, np.bool_)
    needed[1:] = (periods[1:] != periods[:-1]) | (phases[1:] != phases[:-1])
    instants = phases[periods == 0]
    if instants.size:  # instants come first
        for period in np.unique(periods[instants.size :]).tolist():
            needed[: instants.size] &= ~np.isin(instants % period, phases[periods == period])
    return np.stack((periods[needed], phases[needed]), axis=1).astype("<i8").tobytes()


def unpack_bounds(packed: bytes) -> list[PaneBound]:
    """Decode bounds, in ascending order."""
    return list(_PACKED.iter_unpack(packed))
