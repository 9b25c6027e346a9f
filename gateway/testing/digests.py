"""Makes the digests of a timer-based query over given rows."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import accumulate
from typing import Any

import msgspec

from gateway.evaluation.one_entry import VERSION
from gateway.evaluation.records import PlacedRecord
from gateway.evaluation.task import AT_ONCE, evaluated
from gateway.model.membership import Membership
from gateway.model.records import Cq, Destination, TimedNote, millis
from gateway.testing.query import ACCEPTED_AT, CheckedQuery, checked
from gateway.testing.records import Row, placed
from gateway.testing.stream import Stream
from gateway.testing.table import Table
from gateway.timers.schedule import digest_from, following_tick
from grouping.digests.answers import AggregatedMatches, DigestMatches
from grouping.digests.cursor import Cursor, moved
from grouping.digests.digest import Digest, DigestTimes, column_type, parts_of
from grouping.digests.gather import DigestQuestion, gather
from grouping.digests.match_places import MatchPlaces
from grouping.digests.pending_log import PendingLog
from grouping.digests.rows import RowsUnavailable
from grouping.model.errors import InputError
from grouping.model.group import canonical_constants
from grouping.model.ids import DestinationId
from grouping.model.query import DigestClause
from grouping.statements.cq_text import CqText
from spark_jobs.engine.operators.aggregate.aggregate_digests import AggregateRequest, aggregate_digests

__all__ = ["digests"]

_STORE = "p_" + "0" * 24
_STORE_KEY = bytes(12)
_decode = msgspec.json.decode


def digests(
    query: str,
    stream: Stream,
    rows: Iterable[Row],
    *,
    tables: Sequence[Table] = (),
    views: Mapping[str, str] | None = None,
    accepted_at: datetime = ACCEPTED_AT,
    until: datetime | None = None,
) -> list[dict[str, Any]]:
    """Return the digests of a query with EVERY over rows, in the order of their ticks.

    A match is in the digest of the first tick after its time. Rows without a time get times just after `accepted_at`,
    so their matches are in the first digest. With FOR or ON SILENCE, a result is in the digest of the first tick after
    the row that moved the watermark past the result's time. The last tick is the first tick after all rows, or the
    query's EXPIRE if that is earlier.

    Args:
        query: A SELECT with EVERY, or a whole CREATE CQ.
        stream: The stream after FROM.
        rows: The rows, in the forms that `evaluate` accepts.
        tables: The tables that the query joins, with their rows.
        views: Name → SELECT of a view; a view may read the views before it.
        accepted_at: When the query was accepted. The intervals of EVERY begin at this time, or at START.
        until: Digests are also made for ticks up to this time, even after the last row, for example with EVEN IF EMPTY.

    Returns:
        The digests, each with all its parts: `fired_at`, `from`, `to`, `count` and `rows`.

    Raises:
        InputError: The gateway would refuse the query. The code is ``bad-interval`` for a query without EVERY.
        ValueError: A row cannot be a record of the stream.

    Example:
        >>> quotes = Stream("quotes (symbol STRING, price DOUBLE)")
        >>> rows = [{"symbol": "INTC", "price": 99}, {"symbol": "AMD", "price": 90}, {"symbol": "INTC", "price": 98}]
        >>> latest = "SELECT * FROM quotes WHERE price < 100 EVERY '10 minutes' DO PUBLISH DIGEST LATEST BY symbol"
        >>> [digest] = digests(latest, quotes, rows)
        >>> digest["from"], digest["to"], digest["count"]
        ('2026-01-01T00:00:00.000Z', '2026-01-01T00:10:00.000Z', 3)
        >>> digest["rows"]
        [{'symbol': 'AMD', 'price': 90.0}, {'symbol': 'INTC', 'price': 98.0}]
    """
    checked_query = checked(query, stream, accepted_at, tables, views)
    if not checked_query.trigger.timed:
        raise InputError(
            "the query has no EVERY",
            code="bad-interval",
            detail="Without EVERY there are no digests: each match is a result.",
        )
    records = placed(rows, stream, accepted_at)
    pending, arisen = list[bytes](), list[int]()
    waits = checked_query.query.plan.timed is not None
    times = accumulate((millis(record.time) for record in records), max)
    for task in evaluated(checked_query, records, _STORE, "pending", 1 if waits else AT_ONCE):
        pending += task.pending
        if waits:
            arisen += [next(times)] * len(task.pending)
    latest_ms = max([checked_query.accepted_ms, *(millis(record.time) for record in records)])
    until_ms = latest_ms if until is None else millis(until)
    return list(_LoneDestination(checked_query, records, pending, arisen).digests(latest_ms, until_ms))


class _LoneDestination:
    """A destination with a single query, whose matches are in a log with one partition."""

    def __init__(
        self, query: CheckedQuery, records: Sequence[PlacedRecord], pending: Sequence[bytes], arisen: Sequence[int]
    ) -> None:
        """Take the query and its pending matches.

        Args:
            query: The query.
            records: The records of the stream.
            pending: The records with matches, which the evaluator would write to `cq.pending`.
            arisen: For results that waited for the watermark: the time at which each record of `pending` was written,
                in epoch milliseconds, ascending. Otherwise empty.
        """
        self._plan, self._select = query.query.plan, query.query.select
        self._clause = query.statement.publish.digest or DigestClause()
        self._membership = _membership(query, self._clause)
        self._covered = {str(record.partition): record.offset + 1 for record in records}
        self._pending, self._arisen = pending, arisen
        self._log = PendingLog(self._read)
        self._places = MatchPlaces(0, array("q", range(len(pending))))
        self._cursor = Cursor()

    def _read(self, _partition: int, first: int, last: int) -> Iterator[tuple[int, bytes]]:
        return iter([(offset, self._pending[offset]) for offset in range(first, min(last + 1, len(self._pending)))])

    def digests(self, latest_ms: int, until_ms: int) -> Iterator[dict[str, Any]]:
        """Yield the digests of all ticks up to the first after `latest_ms`, and of further ticks up to `until_ms`."""
        membership = self._membership
        at_ms = membership.timed.born_ms
        tick_ms = following_tick(membership, None, self._matches(None).left_ms, at_ms)
        while tick_ms is not None and (at_ms <= latest_ms or tick_ms <= until_ms):
            matches = self._matches(tick_ms)
            if matches.rows or self._clause.even_if_empty:
                yield self._digest(tick_ms, matches)
            elif isinstance(matches, AggregatedMatches) and matches.counted:
                self._cursor = self._moved(tick_ms, matches)
            at_ms, tick_ms = tick_ms, following_tick(membership, tick_ms, matches.left_ms, tick_ms)
        if tick_ms is not None or (last_ms := membership.last_ms) is None:
            return
        if (matches := self._matches(last_ms, last=True)).rows:
            yield self._digest(last_ms, matches)

    def _matches(self, tick_ms: int | None, *, last: bool = False) -> DigestMatches:
        """Return the matches of a tick's digest; the answer also tells which matches wait for later ticks.

        Args:
            tick_ms: The tick, epoch milliseconds; None before the first tick.
            last: Whether this is the last digest, which has all matches.
        """
        visibility = ((*VERSION, self._membership.seen),)
        below = None if last or tick_ms is None else bisect_left(self._arisen, tick_ms)
        question = DigestQuestion(_STORE_KEY, self._places, self._cursor, visibility, tick_ms, self._covered, below)
        if self._plan.kept is None:
            [answer] = gather(self._log, [question])
        else:
            request = AggregateRequest(self._membership.destination, question, self._plan, self._select)
            [answer] = aggregate_digests(self._log, [request])
        if not isinstance(answer, DigestMatches):
            raise RowsUnavailable(answer.reason)
        return answer

    def _moved(self, tick_ms: int, matches: DigestMatches) -> Cursor:
        over_ms = self._membership.destination.trigger.over_ms
        reached, positions = len(self._pending), matches.positions
        return moved(self._cursor, tick_ms, self._covered, reached, matches.held, over_ms=over_ms, positions=positions)

    def _digest(self, tick_ms: int, matches: DigestMatches) -> dict[str, Any]:
        from_ms = digest_from(self._membership, tick_ms, None, self._cursor.tick_ms)
        self._cursor = self._moved(tick_ms, matches)
        digest = Digest.of(self._clause, column_type(self._clause, self._select), matches.rows, from_ms)
        if isinstance(matches, AggregatedMatches):
            digest = digest._replace(matches=matches.counted)
        parts = [
            _decode(part) for part in parts_of(digest.rows, digest.matches, DigestTimes(tick_ms, from_ms, tick_ms))
        ]
        shown = {name: parts[0][name] for name in ("fired_at", "from", "to", "count")}
        return shown | {"rows": [row for part in parts for row in part["rows"]]}


def _membership(query: CheckedQuery, clause: DigestClause) -> Membership:
    plan, publish = query.query.plan, query.statement.publish
    destination = Destination(
        DestinationId("d_" + "0" * 24),
        plan.stream_id,
        plan.group_id,
        query.query.select.select_id,
        canonical_constants(query.query.row),
        publish.mode or "shared",
        0,
        query.trigger,
        (clause.kind, clause.columns, clause.rows, clause.even_if_empty),
        slots=None if plan.kept is None else plan.kept.slots,
    )
    from_ms = query.accepted_ms if query.start_ms is None else query.start_ms
    note = TimedNote(born_ms=query.accepted_ms, from_ms=from_ms)
    membership = Membership(destination, 0, {}, timed=note)
    cq = Cq("", CqText.cut(""), destination.destination_id, query.accepted_ms, 0, query.start_ms, query.expire_ms)
    membership.count(cq, 1)
    return membership
