"""Answers to the questions about the matches of a digest (`grouping.digests.gather.DigestQuestion`)."""

from __future__ import annotations

import msgspec

from grouping.digests.cursor import DigestedPositions
from grouping.digests.rows import DigestRows

__all__ = ["AggregatedMatches", "DigestAnswer", "DigestMatches", "DigestRefused", "DigestUnavailable", "LaterMatches"]


class LaterMatches(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about the matches that are left for later ticks; for queries with GROUP BY, about partial aggregates."""

    left_ms: int | None = None
    """The earliest time of the matches that are left, in epoch milliseconds; with GROUP BY, the beginning of the
    earliest pane. The time is 0 if a computed result is left, and None if no match is left.
    """
    held: tuple[int, ...] = ()
    """The offsets of the records with matches that are left, ascending."""
    oldest: tuple[int, int] | None = None
    """The lowest epoch and version of the constant tables among the matches that are left."""
    repeats: int = 0
    """The number of repeated matches, which replayed micro-batches have written."""
    reached: int | None = None
    """The offset of the log up to which aggregates were gathered; None for matches. If the answer to an equal
    earlier question is used again, the value is the offset of the earlier answer.
    """
    positions: DigestedPositions = ()
    """For computed results (`PendingMatches.computed`), the highest positions in this digest and all earlier digests;
    empty for matches of events.
    """

    @property
    def written(self) -> bool:
        """Whether the tick must lead to a record, now or at a later try: a digest, or a dead letter in its place."""
        return True


class DigestMatches(LaterMatches, frozen=True, kw_only=True):
    """The matches of a digest."""

    rows: DigestRows
    """The matches of this tick, each once, in source order per partition; with GROUP BY the rows of aggregates."""

    @property
    def written(self) -> bool:
        """Whether there are rows."""
        return bool(self.rows)


class AggregatedMatches(DigestMatches, frozen=True, kw_only=True):
    """The aggregates of a digest."""

    counted: int
    """The number of matches in the aggregates."""
    late: int = 0
    """How many of these matches have a record time before the beginning of the digest."""
    left_out: str = ""
    """Why some rows are left out (they are too large for a record), as a full sentence; "" if no row is left out."""

    @property
    def written(self) -> bool:
        """Whether there are rows, or a dead letter about missing rows."""
        return bool(self.rows or self.left_out)


class DigestUnavailable(LaterMatches, frozen=True, kw_only=True):
    """The digest cannot be made now: there is no room for its rows, or aggregation failed. A later try follows."""

    reason: str


class DigestRefused(LaterMatches, frozen=True, kw_only=True):
    """The digest can never be made, so the destination gets a dead letter in its place."""

    reason: str
    code: str = "result-too-large"
    """The code of the dead letter in place of the digest."""


DigestAnswer = DigestMatches | DigestUnavailable | DigestRefused
