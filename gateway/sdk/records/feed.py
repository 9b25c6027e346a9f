"""The feed: hands each record of a subscription to its readers, and makes the cursor of all readers. No I/O."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

from gateway.sdk.records.cursor import CursorWriter, ReadingPlace, decode_cursor, place_of
from gateway.sdk.records.reader import QueryReader
from gateway.sdk.records.record import MATCH, ResultRecord
from gateway.sdk.results import ContinuousQuery, Digest, End, Match

__all__ = ["Feed", "places"]


def places(queries: Sequence[ContinuousQuery], cursor: str | None) -> list[ReadingPlace]:
    """Return the places where readers begin.

    A CQ in the cursor is read from its place in the cursor, any other CQ from the beginning of its results.

    Args:
        queries: The CQs in their present state. If there are none, the CQs of the cursor are read.
        cursor: A cursor; None to read all CQs from the beginning of their results.

    Raises:
        BadCursor: The text is not a cursor.
    """
    if cursor is None:
        return [place_of(query) for query in queries]
    held = {place.query.cq: place for place in decode_cursor(cursor)}
    if not queries:
        return list(held.values())
    found = []
    for query in queries:
        place = held.get(query.cq)
        # A CQ that was replaced or created again may have another destination, which is read from its beginning.
        if place is None or place.query.destination.id != query.destination.id:
            found.append(place_of(query))
        else:
            found.append(_resumed(place, query))
    return found


def _resumed(place: ReadingPlace, query: ContinuousQuery) -> ReadingPlace:
    """Return the place where a reader resumes, if the CQ still has the destination that the cursor names.

    A CQ that was dropped and created again may have the same destination as before. If the cursor has the end of the
    old CQ, this end must not end the new CQ. If the topic was created again too, the new CQ's results may be before the
    cursor's offsets. Therefore such a CQ is read from its beginning. The marks of matches that were handed over stay.
    Otherwise the old CQ's results are read first, up to its departure.
    """
    begins = query.destination.begins()
    beyond = any(offset > begins.get(partition, 0) for partition, offset in place.next.items())
    if not query.same_stay(place.query):
        if beyond or place.end is not None:
            place.next, place.end, place.forerunner = begins, None, None
        else:
            place.forerunner = place.forerunner or place.query.destination.member
    place.query = query
    return place


class Feed:
    """Takes in records, and gives out one result at a time, so that a cursor is exact between any two results."""

    def __init__(self, readers: Sequence[QueryReader]) -> None:
        self._readers = list(readers)
        self._by_key: dict[tuple[str, bytes], list[QueryReader]] = {}
        for reader in self._readers:
            destination = reader.query.destination
            for key in {destination.key, destination.id}:
                self._by_key.setdefault((destination.topic, key.encode()), []).append(reader)
        self._filtered = {key: some for key, some in self._by_key.items() if any(each.filtered for each in some)}
        self._read: dict[tuple[str, int], int] = {}
        """Topic and partition → offset; all records before this offset were fed to their readers."""
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
        """Complete snapshots: name of the CQ → number of rows in its snapshot."""
        return {reader.name: reader.snapshot for reader in self._readers if reader.snapshot is not None}

    def followers(self, record: ResultRecord) -> Sequence[QueryReader]:
        """Return the readers of a record's destination."""
        return self._by_key.get((record.topic, record.key), ())

    def positions(self) -> dict[tuple[str, int], int]:
        """Return topic and partition → the lowest offset at which a reader begins. Ended readers are left out."""
        starts: dict[tuple[str, int], int] = {}
        for reader in self._readers:
            if not reader.ended:
                for where, offset in reader.begins().items():
                    starts[where] = min(offset, starts.get(where, offset))
        return starts

    def add(self, records: Iterable[ResultRecord]) -> None:
        """Take in records. The records of a partition must come in order.

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
        """Return the next result; None if more records are needed."""
        return next(self._results)

    def settle(self, reached: Mapping[tuple[str, int], int]) -> None:
        """End the closing readers that have handed over all their results, unless records are still to be fed."""
        if self._records:
            return  # these records may come from a fetch of a cancelled task, so nobody has taken their results
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
                for reader in self.followers(record):
                    result = reader.feed(record)
                    if isinstance(result, End):
                        self.ends[result.cq] = result
                    elif result is not None:
                        yield result
                # Only now is the record noted as read. If a cursor is taken after the result of the record's first
                # reader, the record must be read again after resuming, for its other readers.
                self._read[record.topic, record.partition] = record.offset + 1
                self._records.popleft()
            yield None
