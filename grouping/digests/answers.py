"""Answers to the questions about the matches of a digest (`grouping.digests.gather.DigestQuestion`)."""

from __future__ import annotations

import msgspec

from grouping.digests.cursor import DigestedPositions
from grouping.digests.rows import DigestRows

__all__ = ["AggregatedMatches", "DigestAnswer", "DigestMatches", "DigestRefused", "DigestUnavailable", "LaterMatches"]


class LaterMatches(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of the matches left for later ticks; for queries with GROUP BY, figures of partial aggregates."""

    left_ms: int | None = None
    """The earliest time of the matches that are left; with GROUP BY the earliest pane."""
    held: tuple[int, ...] = ()
    """The records with matches that are left, ascending."""
    oldest: tuple[int, int] | None = None
    """The lowest epoch and version of the constant tables among the matches that are left."""
    repeats: int = 0
    """The number of repeated matches, which replayed micro-batches have written."""
    reached: int | None = None
    """The offset of the log up to which aggregates were gathered, perhaps for an earlier question; None for matches."""
    positions: DigestedPositions = ()
    """The highest positions of computed results in this digest and in earlier ones; empty for matches of events."""

    @property
    def written(self) -> bool:
        """Whether there is a digest to write, or to try again."""
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
    """How many of these matches have a record time before the digest begins."""
    left_out: str = ""
    """A full sentence on why some rows are left out: they are too large for a record. Empty if no row is."""

    @property
    def written(self) -> bool:
        """Whether there are rows, or a dead letter about missing rows."""
        return bool(self.rows or self.left_out)


class DigestUnavailable(LaterMatches, frozen=True, kw_only=True):
    """There is no room for the rows, or their aggregation failed; the digest is tried again."""

    reason: str


class DigestRefused(LaterMatches, frozen=True, kw_only=True):
    """The digest can never be made."""

    reason: str
    code: str = "result-too-large"
    """The code of the dead letter in place of the digest."""


DigestAnswer = DigestMatches | DigestUnavailable | DigestRefused
