"""The end of a CQ that becomes known before all results of the CQ were read. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.sdk.results import End

__all__ = ["CqEnd"]


class CqEnd:
    """An end that takes effect once the reader has read all records that existed when the end became known.

    This is needed in two cases. In the first case the destination is virtual: its results are in all partitions of its
    topic, but its `cq.end` is in only one partition. In the second case retention has deleted the `cq.end`, and the
    reader knows only from the gateway that the CQ no longer exists.
    """

    def __init__(self, end: End, read_at: tuple[int, int] | None = None) -> None:
        """Begin without knowing the ends of the partitions.

        Args:
            end: The end.
            read_at: Partition and offset of the record with the end; None if no record was read.
        """
        self.end = end
        self._read_at = read_at
        self._bounds: dict[int, int] | None = None

    def found(self, end: End, read_at: tuple[int, int]) -> None:
        """Note that a record with the end was read, so that its time and reason are known exactly. The first counts.

        Args:
            end: The end in the record.
            read_at: Partition and offset of the record.
        """
        if self._read_at is None:
            self.end, self._read_at = end, read_at
            self._bounds = None  # results of other partitions may have come since the bounds were noted

    @property
    def bounded(self) -> bool:
        """Whether the ends of the partitions are known."""
        return self._bounds is not None

    def bound(self, ends: Mapping[int, int]) -> None:
        """Note partition → end; all results of the CQ must be before these ends."""
        self._bounds = dict(ends)

    def complete(self, reached: Mapping[int, int]) -> bool:
        """Tell whether all records before the noted ends were read.

        Args:
            reached: Partition → the end offset of the partition when this partition was last read to its end.
        """
        return self._bounds is not None and all(reached.get(part, -1) >= end for part, end in self._bounds.items())

    def resume(self, positions: Mapping[int, int]) -> dict[int, int]:
        """Return partition → offset for a cursor, so that the record with the end is read again after resuming."""
        if self._read_at is None:
            return dict(positions)
        partition, offset = self._read_at
        return {**positions, partition: min(offset, positions[partition])}
