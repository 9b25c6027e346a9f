"""Digests of a table's rows. For a tick, the rows at a cut are evaluated as if they had just come in.

The rows go through the same stages as matches that wait for a tick. The records of these stages are written to a
temporary file, not to `cq.pending`. The same code as for all other digests then gathers the digests from this file.
"""

from __future__ import annotations

import tempfile
import weakref
from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from grouping.digests.answers import AggregatedMatches, DigestAnswer, DigestMatches, DigestRefused
from grouping.digests.cursor import Cursor, VisibilityInterval, moved
from grouping.digests.digest import Digest
from grouping.digests.gather import DigestQuestion, gather
from grouping.digests.match_places import MatchPlaces
from grouping.digests.orders import DigestFault, DigestOrder, DigestOutcome, MadeDigest, Order, TableCut
from grouping.digests.pending_log import PendingLog
from grouping.digests.pending_matches import PendingMatches
from grouping.digests.rows import RowsUnavailable
from grouping.model.group import ConstantRow, parse_constants
from grouping.model.ids import GroupId, SelectId, StreamId
from grouping.model.query import DigestClause
from grouping.model.sql_type import SqlType
from grouping.plan.group import GroupPlan, SelectList
from grouping.store.constant_table import Segment
from grouping.store.work_units import unit_of
from spark_jobs.engine.isolation.not_evaluated import NotEvaluatedLetters
from spark_jobs.engine.isolation.step import AnyStep, Records, Units
from spark_jobs.engine.operators.aggregate.aggregate_digests import AggregateRequest, AnswerCache, each_aggregate_digest

__all__ = ["AggregatesStep", "CutQueries", "RowMatches", "RunStep", "WriteDigest", "left_out", "row_digests"]

_ALL_TIMES = 1 << 62
"""A tick later than the time of any row, so that every row is in the digest, even if its time is in the future."""
_TOO_LARGE = "result-too-large"
_VISIBLE: tuple[VisibilityInterval, ...] = ((0, 0, [(None, None)]),)
"""The visibility of the rows: every row is visible, at every version of the constant tables."""
WriteDigest = Callable[[MadeDigest], Records]
RunStep = Callable[[AnyStep], Records]


class CutQueries:
    """The queries over the rows of a table at a cut, as a source of constant tables (`constant_cache.TableReader`)."""

    def __init__(self, cut: TableCut) -> None:
        self._segment = Segment.decode(cut.segment)[0]
        self._plans = {plan.group_id: plan for plan in msgspec.json.decode(cut.plans, type=list[GroupPlan])}
        self._selects = {each.select_id: each for each in msgspec.json.decode(cut.selects, type=list[SelectList])}

    def changes(self, stream_id: StreamId, epoch: int, since: int, until: int) -> Iterator[Segment] | None:
        """Return the segment with all entries."""
        return iter([self._segment])

    def plans(self, stream_id: StreamId, ids: Sequence[GroupId]) -> dict[GroupId, GroupPlan]:
        """Return the plans of groups."""
        return self._plans

    def selects(self, stream_id: StreamId, ids: Sequence[SelectId]) -> dict[SelectId, SelectList]:
        """Return SELECT lists."""
        return self._selects


class RowMatches:
    """The matches among a table's rows, as records of `cq.pending`, in a temporary file."""

    def __init__(self) -> None:
        """Begin without a record.

        Raises:
            OSError: The disk has no room, or there is no folder for the file.
        """
        self._file = tempfile.TemporaryFile(prefix="cq-rows-")
        weakref.finalize(self, self._file.close)
        self._ends = [0]
        self._places: dict[bytes, array[int]] = {}
        self.log = PendingLog(self._span)
        """The records, in a log of one partition."""
        self.rows = 0
        """The number of the table's rows; the code that adds the records sets it."""
        self.reasons: dict[str, str] = {}
        """Work units that were not evaluated for some of the rows, with the reason; their digests are left out."""

    def add(self, body: bytes) -> None:
        """Append a record.

        Raises:
            OSError: The disk has no room.
        """
        for store in PendingMatches.decode(body).spans:
            self._places.setdefault(store, array("q")).append(len(self._ends) - 1)
        self._file.write(body)
        self._file.flush()
        self._ends.append(self._ends[-1] + len(body))

    def _span(self, _partition: int, first: int, last: int) -> Iterator[tuple[int, bytes]]:
        for number in range(first, min(last + 1, len(self._ends) - 1)):
            begin, end = self._ends[number : number + 2]
            self._file.seek(begin)
            yield number, self._file.read(end - begin)

    def question(self, store: bytes) -> DigestQuestion:
        """Return the question for all matches of a store."""
        places = self._places.get(store)
        stored = None if places is None else MatchPlaces(0, places)
        return DigestQuestion(store, stored, Cursor(), _VISIBLE, _ALL_TIMES, None)


def row_digests(order: Order, matches: RowMatches, write: WriteDigest, run: RunStep) -> Records:
    """Yield the records of the digests of an order over a table's rows. A digest that cannot be made is left out.

    Args:
        order: The order; must have no digests of pending matches.
        matches: The matches among the rows.
        write: Yields the records of a digest.
        run: Runs a step under the guard of work units.
    """
    assert order.table is not None, "an order over a table"
    queries, stream_id = CutQueries(order.table), order.stream_id
    plans, selects = queries.plans(stream_id, ()), queries.selects(stream_id, ())
    single: list[DigestOrder] = []
    aggregated: dict[tuple[GroupId, SelectId], list[DigestOrder]] = {}
    for each in order.digests:
        assert each.of_rows is not None, "a digest of rows"
        group_id, select_id, _ = each.of_rows
        reason = matches.reasons.get(group_id) or matches.reasons.get(unit_of(group_id, select_id))
        if reason is not None:
            yield from write(_made(order, each, None, _not_made(_not_evaluated(reason))))
        elif selects[select_id].aggregation is None:
            single.append(each)
        else:
            aggregated.setdefault((group_id, select_id), []).append(each)
    questions = (matches.question(each.store) for each in single)
    for each, answer in zip(single, gather(matches.log, questions), strict=True):
        yield from write(_answered(order, each, answer))
    for (group_id, select_id), digests in aggregated.items():
        yield from run(AggregatesStep(order, digests, matches, plans[group_id], selects[select_id], write))


class AggregatesStep:
    """Makes the digests of a query with aggregates, one in each piece (`isolation.step.SharedStep`).

    For each digest, HAVING and the SELECT list may take the full CPU time of a work unit.
    """

    kind = "aggregates"

    def __init__(
        self,
        order: Order,
        digests: Sequence[DigestOrder],
        matches: RowMatches,
        plan: GroupPlan,
        select: SelectList,
        write: WriteDigest,
    ) -> None:
        requests = []
        for each in digests:
            assert each.of_rows is not None, "a digest of rows"
            reader = _RowReader(parse_constants(each.of_rows[2]), each.clause)
            requests.append(AggregateRequest(reader, matches.question(each.store), plan, select))
        self._order = order
        self._left = dict(enumerate(digests))
        """The digests that were not made yet, by their place among the requests."""
        self._answers = each_aggregate_digest(matches.log, requests, AnswerCache())
        self._write = write
        self._unit = unit_of(plan.group_id, select.select_id)

    @property
    def account(self) -> str:
        """The account of the next digest."""
        return f"{self._unit}/{len(self._left)}"

    @property
    def ended(self) -> bool:
        """Whether all digests are made."""
        return not self._left

    def shared_by(self) -> Units:
        """List the query's unit."""
        return [self._unit]

    def piece(self) -> MadeDigest:
        """Make the next digest."""
        place, answer = next(self._answers)
        made = _answered(self._order, self._left[place], answer)
        del self._left[place]
        return made

    def passed(self, piece: MadeDigest) -> Records:
        """Yield the records of a digest."""
        yield from self._write(piece)

    def rest(self, letters: NotEvaluatedLetters, unit: str, reason: str) -> Records:
        """Yield the dead letters of the digests that were not made."""
        for each in self._left.values():
            yield from self._write(_made(self._order, each, None, _not_made(_not_evaluated(reason))))


def _answered(order: Order, each: DigestOrder, answer: DigestAnswer) -> MadeDigest:
    digest, fault = None, None
    if isinstance(answer, DigestRefused):
        fault = DigestFault(_TOO_LARGE, f"The digest is left out. {answer.reason}")
    elif not isinstance(answer, DigestMatches):
        fault = _not_made(answer.reason)
    else:
        try:
            digest = _digest(each, answer)
        except RowsUnavailable as error:
            fault = _not_made(error.detail or error.message)
        if isinstance(answer, AggregatedMatches) and answer.left_out:
            fault = DigestFault(_TOO_LARGE, f"The digest is shortened. {answer.left_out}")
    return _made(order, each, digest, fault)


def left_out(order: Order, reason: str) -> Iterator[MadeDigest]:
    """Yield all digests of an order as left out; `reason` must be a full sentence."""
    for each in order.digests:
        yield _made(order, each, None, _not_made(reason))


def _not_evaluated(reason: str) -> str:
    return f"Its query was not evaluated: {reason}."


def _not_made(reason: str) -> DigestFault:
    return DigestFault("not-evaluated", f"The digest is left out. {reason}")


def _made(order: Order, each: DigestOrder, digest: Digest | None, fault: DigestFault | None) -> MadeDigest:
    tick_ms = each.tick_ms if digest is not None or fault is not None else None
    cursor = moved(each.cursor, tick_ms, order.covered, each.reached, ())
    kept = None if cursor == each.cursor else cursor
    outcome = DigestOutcome(each.destination_id, each.born_ms, each.tick_ms, each.reached, kept, 0, None, None)
    return MadeDigest(each, digest, outcome, fault)


def _digest(each: DigestOrder, answer: DigestMatches) -> Digest | None:
    if not answer.rows and not each.clause.even_if_empty:
        return None
    digest = Digest.of(each.clause, SqlType.of(each.column_type), answer.rows, 0)
    return digest._replace(matches=answer.counted) if isinstance(answer, AggregatedMatches) else digest


class _NoWindow(NamedTuple):
    """The trigger of a digest of rows."""

    over_ms: int = 0


class _RowReader(NamedTuple):
    """The destination of a digest of aggregates over rows."""

    row: ConstantRow
    clause: DigestClause
    trigger: _NoWindow = _NoWindow()
