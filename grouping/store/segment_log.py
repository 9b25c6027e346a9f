"""The segments of a stream's constant tables, in a hash of Redis.

A value in Redis has at most 512 MB, some 9.5 million rows, and far smaller values already delay all clients of Redis.
So a segment is stored in pieces. For the versions (since, until], the field ``since-until`` has the first piece and the
number of further pieces; the fields ``since-until/1``, ``/2`` and so on have the further pieces, and are written first.
The segment exists once its own field exists; pieces without this field are left over from an interrupted merge.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from grouping.model.errors import OperationalError
from grouping.store.constant_table import Segment, cut

__all__ = ["PIECE_BYTES", "SegmentLog", "SegmentLost", "VersionSpan", "chain", "segment_fields"]

PIECE_BYTES = 8 << 20
"""Largest size of a piece, unless a single row is larger: some 150,000 rows, which Redis sends in a few
milliseconds.
"""


class SegmentLost(OperationalError):
    """A segment is missing or incomplete: it was merged meanwhile, or Redis has lost it."""


class VersionSpan(NamedTuple):
    """The versions (since, until] of a segment."""

    since: int
    until: int

    @classmethod
    def of(cls, field: bytes) -> VersionSpan:
        """Return the span of a field of a segment or of a further piece."""
        since, until = field.partition(b"/")[0].split(b"-")
        return cls(int(since), int(until))

    @property
    def field(self) -> str:
        """The name of the segment's own field."""
        return f"{self.since}-{self.until}"


def segment_fields(span: VersionSpan, changes: Iterable[Segment]) -> Iterator[tuple[str, bytes]]:
    """Yield the fields of a segment lazily, each with its changes; the segment's own field comes last."""
    pieces = cut(changes, PIECE_BYTES)
    last, more = next(pieces), 0
    for piece in pieces:
        more += 1
        yield f"{span.field}/{more}", last.encode()
        last = piece
    yield span.field, last.encode(more)


class SegmentLog:
    """Reads the segments of one stream; the caller maps the driver's errors."""

    def __init__(self, redis: Any, key: str) -> None:
        self._redis = redis
        self._key = key

    def fields(self) -> dict[VersionSpan, list[bytes]]:
        """Return the fields of each segment, from the oldest to the newest, including incomplete segments."""
        found: dict[VersionSpan, list[bytes]] = {}
        for field in self._redis.hkeys(self._key):
            found.setdefault(VersionSpan.of(field), []).append(field)
        return dict(sorted(found.items()))

    def spans(self) -> list[VersionSpan]:
        """Return the existing segments, from the oldest to the newest."""
        return sorted(VersionSpan.of(field) for field in self._redis.hkeys(self._key) if b"/" not in field)

    def pieces(self, span: VersionSpan) -> Iterator[Segment]:
        """Read a segment piece by piece.

        Raises:
            SegmentLost: The segment is gone, or was replaced meanwhile; pieces read so far must be dropped.
        """
        own, more = self._piece(span.field)
        yield own
        for number in range(1, more + 1):
            yield self._piece(f"{span.field}/{number}")[0]

    def _piece(self, field: str) -> tuple[Segment, int]:
        body = self._redis.hget(self._key, field)
        if body is None:
            raise SegmentLost(
                "a part of the constant tables is gone", detail=f'The part is "{field}" of "{self._key}".'
            )
        return Segment.decode(body)


def chain(spans: Sequence[VersionSpan], since: int, until: int) -> list[VersionSpan] | None:
    """Return neighbouring segments that lead from one version to another; None if there are none.

    If `since` is 0, the last segment may end after `until`: the version `until` may have been merged into a later one.

    Example:
        >>> chain([VersionSpan(0, 5), VersionSpan(5, 6), VersionSpan(6, 9)], 5, 6)
        [VersionSpan(since=5, until=6)]
        >>> chain([VersionSpan(0, 5), VersionSpan(6, 9)], 0, 9)
    """
    wanted, reached = [], since
    for span in spans:
        if span.since == reached and reached < until:
            wanted.append(span)
            reached = span.until
    return None if reached < until or (reached > until and since) else wanted
