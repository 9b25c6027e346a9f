"""Counts of matches that workers send to the gateway, by the numbers that destinations have within their stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

__all__ = ["MatchTally"]

_AT_ONCE = 1 << 16
"""The largest number of destinations in an encoded value. A value takes up to half a megabyte if all destinations have
the same time, otherwise up to a megabyte.
"""


class MatchTally(NamedTuple):
    """The counts of matches of some destinations; each destination occurs once."""

    numbers: NDArray[np.int32]
    counts: NDArray[np.int64]
    last_ms: NDArray[np.int64]
    """The time of the last match of each destination, in epoch milliseconds."""

    @classmethod
    def of(cls, numbers: NDArray[np.integer], last_ms: int) -> MatchTally:
        """Count matches, given by the numbers of their destinations. All get the same time of the last match."""
        distinct, counts = np.unique(numbers, return_counts=True)
        return cls(distinct.astype(np.int32), counts, np.full(distinct.size, last_ms))

    @classmethod
    def total(cls, tallies: Iterable[MatchTally]) -> MatchTally:
        """Return the sum of at least one tally."""
        numbers, counts, last_ms = map(np.concatenate, zip(*tallies, strict=True))
        distinct, place = np.unique(numbers, return_inverse=True)
        summed, latest = np.zeros(distinct.size, np.int64), np.zeros(distinct.size, np.int64)
        np.add.at(summed, place, counts)
        np.maximum.at(latest, place, last_ms)
        return cls(distinct, summed, latest)

    def encode(self) -> Iterator[bytes]:
        """Yield encoded values of a bounded size. A value whose times are all equal stores the time once."""
        for first in range(0, self.numbers.size, _AT_ONCE):
            numbers, counts, last_ms = (column[first : first + _AT_ONCE] for column in self)
            few = counts.astype(np.int32) if counts.max() < 1 << 31 else counts
            times = int(last_ms[0]) if (last_ms == last_ms[0]).all() else last_ms.tobytes()
            yield msgspec.msgpack.encode((times, numbers.tobytes(), few.tobytes()))

    @classmethod
    def decode(cls, body: bytes) -> MatchTally:
        """Decode a value."""
        last_ms, packed, packed_counts = msgspec.msgpack.decode(body, type=tuple[int | bytes, bytes, bytes])
        numbers = np.frombuffer(packed, np.int32)
        counts = np.frombuffer(packed_counts, np.int32 if len(packed_counts) == len(packed) else np.int64)
        times = np.full(numbers.size, last_ms) if isinstance(last_ms, int) else np.frombuffer(last_ms, np.int64)
        return cls(numbers, counts.astype(np.int64), times)
