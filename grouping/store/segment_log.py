"""The segments of a stream's constant tables, in a hash of Redis.

A value in Redis can have at most 512 MB (some 9.5 million rows), and far smaller values already delay all clients of
Redis. So a segment is stored in pieces. For a segment of the versions (since, until], the field ``since-until`` holds
the first piece and the number of further pieces. The fields ``since-until/1``, ``since-until/2`` and so on hold the
further pieces. The field ``since-until`` is written last, so the segment is complete as soon as this field exists.
Pieces without this field are left over from an interrupted merge.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from grouping.model.errors import OperationalError
from grouping.store.constant_table import Segment, cut

__all__ = ["PIECE_BYTES", "SegmentLog", "SegmentLost", "VersionSpan", "chain", "segment_fields"]

PIECE_BYTES = 8 << 20
"""The largest size of a piece in bytes, unless a single row is larger. A piece of this size has some 150,000 rows, and
Redis sends it in a few milliseconds.
"""


class SegmentLost(OperationalError):
    """A segment is missing or incomplete: a merge has replaced it meanwhile, or Redis has lost it."""


class VersionSpan(NamedTuple):
    """The versions (since, until] of a segment."""

    since: int
    until: int

    @classmethod
    def of(cls, field: bytes) -> VersionSpan:
        """Return the span of a segment from the name of one of its fields."""
        since, until = field.partition(b"/")[0].split(b"-")
        return cls(int(since), int(until))

    @property
    def field(self) -> str:
        """The name of the segment's own field."""
        return f"{self.since}-{self.until}"


def segment_fields(span: VersionSpan, changes: Iterable[Segment]) -> Iterator[tuple[str, bytes]]:
    """Yield the fields of a segment and their values. The segment's own field is last; a piece is made when needed."""
    pieces = cut(changes, PIECE_BYTES)
    last, more = next(pieces), 0
    for piece in pieces:
        more += 1
        yield f"{span.field}/{more}", last.encode()
        last = piece
    yield span.field, last.encode(more)


class SegmentLog:
    """Reads the segments of one stream. The caller must use `mapped` for errors of the driver."""

    def __init__(self, redis: Any, key: str) -> None:
        self._redis = redis
        self._key = key

    def fields(self) -> dict[VersionSpan, list[bytes]]:
        """Return the fields of each segment, from the oldest to the newest. Incomplete segments are included."""
        found: dict[VersionSpan, list[bytes]] = {}
        for field in self._redis.hkeys(self._key):
            found.setdefault(VersionSpan.of(field), []).append(field)
        return dict(sorted(found.items()))

    def spans(self) -> list[VersionSpan]:
        """Return the spans of the complete segments, from the oldest to the newest."""
        return sorted(VersionSpan.of(field) for field in self._redis.hkeys(self._key) if b"/" not in field)

    def pieces(self, span: VersionSpan) -> Iterator[Segment]:
        """Read a segment piece by piece.

        Raises:
            SegmentLost: The segment is gone, or was replaced meanwhile. The caller must drop the pieces read so far.
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
    """Return the successive segments that lead from version `since` to version `until`; None if there are none.

    If `since` is 0, the last segment may end after `until`, because a merged segment spans several versions.

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
