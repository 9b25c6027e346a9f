"""The feed: hands each record of one flow to its readers, and has the cursor of all readers. No I/O."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

from gateway.sdk.records.cursor import CursorWriter, ReadingPlace, decode_cursor, place_of
from gateway.sdk.records.reader import QueryReader
from gateway.sdk.records.record import MATCH, ResultRecord
from gateway.sdk.results import ContinuousQuery, Digest, End, Match

__all__ = ["Feed", "places"]


def places(queries: Sequence[ContinuousQuery], cursor: str | None) -> list[ReadingPlace]:
    """Return the positions where readers begin: the cursor's, and for other CQs the beginning of their results.

    Args:
        queries: The CQs in their present state; empty for the CQs of the cursor alone.
        cursor: A cursor, or None to begin all.

    Raises:
        BadCursor: The text is no cursor.
    """
    if cursor is None:
        return [place_of(query) for query in queries]
    held = {place.query.cq: place for place in decode_cursor(cursor)}
    if not queries:
        return list(held.values())
    found = []
    for query in queries:
        place = held.get(query.cq)
        # The CQ was replaced or created anew: it has another destination, which is read from its beginning.
        if place is None or place.query.destination.id != query.destination.id:
            found.append(place_of(query))
        else:
            found.append(_resumed(place, query))
    return found


def _resumed(place: ReadingPlace, query: ContinuousQuery) -> ReadingPlace:
    """Return where a reader resumes in the destination of its cursor.

    A CQ that was dropped and created anew may have the same destination. The end of its forerunner does not end it, and
    in a topic that was made anew its results lie before the cursor's offsets: such a CQ is read from its beginning. The
    marks of results that were handed over stay.
    """
    begins = query.destination.begins()
    beyond = any(offset > begins.get(partition, 0) for partition, offset in place.next.items())
    if not query.same_stay(place.query) and (beyond or place.end is not None):
        place.next, place.end = begins, None
    place.query = query
    return place


class Feed:
    """Takes records in and gives single results out, so that a cursor is exact between any two results."""

    def __init__(self, readers: Sequence[QueryReader]) -> None:
        self._readers = list(readers)
        self._by_key: dict[tuple[str, bytes], list[QueryReader]] = {}
        for reader in self._readers:
            destination = reader.query.destination
            for key in {destination.key, destination.id}:
                self._by_key.setdefault((destination.topic, key.encode()), []).append(reader)
        self._filtered = {key: some for key, some in self._by_key.items() if any(each.filtered for each in some)}
        self._read: dict[tuple[str, int], int] = {}
        """Topic and partition → offset before which every record was fed to its readers."""
        self._records: deque[ResultRecord] = deque()
        self._results = self._flow()
        self._cursors = CursorWriter()
        self.ends: dict[str, End] = {reader.name: reader.end for reader in self._readers if reader.end is not None}
        """The CQs that have ended: name → end."""

    @property
    def readers(self) -> Sequence[QueryReader]:
        """The reader of each CQ."""
        return self._readers

    @property
    def ended(self) -> bool:
        """Whether all CQs have ended."""
        return all(reader.ended for reader in self._readers)

    @property
    def snapshots(self) -> dict[str, int]:
        """By name, the numbers of rows of the snapshots that were read to their ends."""
        return {reader.name: reader.snapshot for reader in self._readers if reader.snapshot is not None}

    def positions(self) -> dict[tuple[str, int], int]:
        """Where to read from: topic and partition → the earliest offset that a reader still wants."""
        starts: dict[tuple[str, int], int] = {}
        for reader in self._readers:
            if not reader.ended:
                for where, offset in reader.begins().items():
                    starts[where] = min(offset, starts.get(where, offset))
        return starts

    def add(self, records: Iterable[ResultRecord]) -> None:
        """Take in records, in order within their partitions.

        Raises:
            FilterUnavailable: A virtual destination's filter cannot be applied.
        """
        fresh = list(records)
        for where, readers in self._filtered.items():
            if matches := [one for one in fresh if (one.topic, one.key) == where and one.kind == MATCH]:
                values = [one.value for one in matches]
                for reader in readers:
                    reader.sift(matches, values)
        self._records.extend(fresh)

    def take(self) -> Match | Digest | None:
        """Return the next result, or None when more records are needed."""
        return next(self._results)

    def settle(self, reached: Mapping[tuple[str, int], int]) -> None:
        """End the closing readers that have handed over all their results, unless results are left to take."""
        if self._records:
            return  # a fetch of a cancelled task may have brought them
        for reader in self._readers:
            if reader.closing is not None and (end := reader.settle(reached)) is not None:
                self.ends[end.cq] = end

    def cursor(self) -> str:
        """Return the cursor after the last result that was taken."""
        return self._cursors.write([reader.place(self._read) for reader in self._readers])

    def _flow(self) -> Iterator[Match | Digest | None]:
        while True:
            while self._records:
                record = self._records[0]
                for reader in self._by_key.get((record.topic, record.key), ()):
                    result = reader.feed(record)
                    if isinstance(result, End):
                        self.ends[result.cq] = result
                    elif result is not None:
                        yield result
                # The record counts as read only now: a cursor taken between two readers of a record must find it again.
                self._read[record.topic, record.partition] = record.offset + 1
                self._records.popleft()
            yield None
