"""The end of a CQ that becomes known before all results of the CQ are read; no I/O."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.sdk.results import End

__all__ = ["CqEnd"]


class CqEnd:
    """An end that takes effect once the reader has read all records that existed when the end became known.

    A virtual destination has results in all partitions of its topic, but its `cq.end` in one partition. If the gateway
    reports a CQ as gone, retention may have deleted its `cq.end`.
    """

    def __init__(self, end: End, read_at: tuple[int, int] | None = None) -> None:
        """Begin without bounds.

        Args:
            end: The end to report.
            read_at: Partition and offset of the end's record, so that a cursor can resume before it.
        """
        self.end = end
        self._read_at = read_at
        self._bounds: dict[int, int] | None = None

    @property
    def bounded(self) -> bool:
        """Whether the ends of the partitions are known."""
        return self._bounds is not None

    def bound(self, ends: Mapping[int, int]) -> None:
        """Take in where the partitions ended when all of the CQ's results were there."""
        self._bounds = dict(ends)

    def complete(self, reached: Mapping[int, int]) -> bool:
        """Tell whether all is read; `reached` has by partition the offset at which there were no more records."""
        return self._bounds is not None and all(reached.get(part, -1) >= end for part, end in self._bounds.items())

    def resume(self, positions: Mapping[int, int]) -> dict[int, int]:
        """Return where a cursor resumes, so the end is read once more."""
        if self._read_at is None:
            return dict(positions)
        partition, offset = self._read_at
        return {**positions, partition: min(offset, positions[partition])}
