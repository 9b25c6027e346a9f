"""Digests of aggregate queries, one query after the other. Destinations with equal questions share their aggregates.

The gateway and workers call these functions. The functions import the rest of the room only when they need it, so that
a gateway without aggregate queries does not load libraries that take a second and 110 MB.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, Protocol

import msgspec

from grouping.digests.aggregate_gather import AggregateQuestion, gather_aggregates
from grouping.digests.answers import AggregatedMatches, DigestAnswer, DigestRefused, DigestUnavailable, LaterMatches
from grouping.digests.cursor import SourceOffsets
from grouping.digests.digest_aggregates import AggregateDestination, TooManyAggregates, TooManyTogether
from grouping.digests.gather import DigestQuestion
from grouping.digests.pending_log import PendingLog
from grouping.digests.rows import DigestRows
from grouping.model.group import ConstantRow
from grouping.model.query import DigestClause
from grouping.plan.group import GroupPlan, SelectList

__all__ = [
    "AggregateReader",
    "AggregateRequest",
    "AnswerCache",
    "DigestCharge",
    "QueryLeftOut",
    "aggregate_digests",
    "by_query",
    "each_aggregate_digest",
]

log = logging.getLogger(__name__)

DigestCharge = Callable[[int], AbstractContextManager[None]]
"""Begins a block in which HAVING and the SELECT list are evaluated for a destination, given its number of aggregates.

Entering the block may raise `QueryLeftOut`."""

_MOST_KNOWN = 20_000
"""The largest number of answers in the cache."""
_MOST_BYTES = 64 << 20
"""The largest number of bytes of aggregates in the cache. A single query may exceed the limit until the next query."""


class QueryLeftOut(Exception):
    """HAVING and the SELECT list of the query are not evaluated any more."""

    def __init__(self, reason: str) -> None:
        """Keep the reason, a full sentence."""
        super().__init__(reason)
        self.reason = reason


class WindowTrigger(Protocol):
    """The trigger of a destination."""

    @property
    def over_ms(self) -> int:
        """The length of OVER LAST in milliseconds; 0 for a trigger without OVER LAST."""


class AggregateReader(Protocol):
    """The destination of a digest."""

    @property
    def row(self) -> ConstantRow:
        """The constants; the constants of WHERE come first."""

    @property
    def clause(self) -> DigestClause:
        """The digest clause."""

    @property
    def trigger(self) -> WindowTrigger:
        """The trigger."""


class AggregateRequest(NamedTuple):
    """A destination's question about aggregates: it selects the matches that the destination's digest counts."""

    destination: AggregateReader
    question: DigestQuestion
    plan: GroupPlan
    select: SelectList
    from_ms: int = 0
    """The time at which the digest begins."""
    reached: int = 0
    """The offset up to which the destination's partition of the log has been read."""
    ended_ms: int = 0
    """The time at which the destination ended, for its last digest; otherwise 0."""


class _CachedAnswer(NamedTuple):
    """The cached answer to a question."""

    later: LaterMatches
    aggregates: Any
    """The merged aggregates (`AggregateMerge.aggregates`)."""
    late: int
    """The number of aggregated matches whose times are before the beginning of the digest."""
    reached: int
    """The offset up to which the log was read for the answer."""


_Answers = dict[bytes, _CachedAnswer | None]
"""Content of a question → its answer; None if the answer has more aggregates than a digest may hold."""
_REFUSAL = "The digest has too many aggregates, or too large ones."


class AnswerCache:
    """The aggregates that were gathered last, all for one cut.

    Destinations with equal questions share them, even if a large tick handles its destinations in several chunks.
    """

    def __init__(self) -> None:
        self._covered: SourceOffsets = {}
        self._found: _Answers = {}
        self._bytes = 0

    def of(self, covered: SourceOffsets | None) -> _Answers:
        """Return the cached answers for a cut, by the content of their questions; without a cut, an empty cache.

        An answer stays valid while the log grows, because later records are beyond the cut and wait for later ticks.
        Each answer notes the offset up to which the log was read.
        """
        full = len(self._found) > _MOST_KNOWN or self._bytes > _MOST_BYTES
        if covered is None or covered != self._covered or full:
            self._covered, self._found, self._bytes = covered or {}, {}, 0
        return self._found

    def add(self, size: int) -> None:
        """Note the bytes of aggregates that were gathered."""
        self._bytes += size


def aggregate_digests(
    pending: PendingLog, requests: Sequence[AggregateRequest], known: AnswerCache | None = None
) -> list[DigestAnswer]:
    """Return the digests of destinations, in their order; the arguments are as in `each_aggregate_digest`."""
    found = dict(each_aggregate_digest(pending, requests, known or AnswerCache()))
    return [found[place] for place in range(len(requests))]


def each_aggregate_digest(
    pending: PendingLog,
    requests: Sequence[AggregateRequest],
    known: AnswerCache,
    charge: DigestCharge = lambda _: nullcontext(),
) -> Iterator[tuple[int, DigestAnswer]]:
    """Yield the digests of destinations, each with the index of its question, query by query.

    Apart from the cache, memory holds the aggregates of only one query at a time.

    Args:
        pending: The log with the aggregates.
        requests: The questions, all with the same cut and time.
        known: The cache.
        charge: Charges the CPU time of the next digest to an account. After `QueryLeftOut` the digests of the query are
            refused.

    Raises:
        CpuExceeded: A query took too long; only in a process with a CPU budget.
    """
    for places in by_query(requests):
        yield from _of_query(pending, [(place, requests[place]) for place in places], known, charge)


_RequestPlaces = Sequence[tuple[int, AggregateRequest]]


def _of_query(
    pending: PendingLog, some: _RequestPlaces, known: AnswerCache, charge: DigestCharge
) -> Iterator[tuple[int, DigestAnswer]]:
    """Yield the digests of a query's destinations.

    If all destinations together have too many aggregates, each half of them is handled separately.
    """
    from spark_jobs.engine.rows.cpu_budget import CpuExceeded
    from spark_jobs.engine.rows.faults import FAULTS

    requests, done = [request for _, request in some], 0
    try:
        for (place, _), answer in zip(some, _made(requests, _answers(pending, requests, known), charge), strict=True):
            yield place, answer
            done += 1
        return
    except TooManyTogether:
        pass
    except CpuExceeded:
        raise
    except FAULTS as fault:
        # An unexpected exception in one query must not hold up other digests; the query's digests are tried again.
        log.exception("aggregates not put together", extra={"group": requests[0].plan.group_id})
        failure = f"Its aggregates failed with {type(fault).__name__}."
        for place, _ in some[done:]:
            yield place, DigestUnavailable(reason=failure)
        return
    half = len(some) // 2
    yield from _of_query(pending, some[:half], known, charge)
    yield from _of_query(pending, some[half:], known, charge)


_encode = msgspec.msgpack.Encoder().encode


def _content(each: AggregateRequest) -> bytes:
    """Return everything in a question that decides its answer, as bytes."""
    question = each.question
    over_ms = each.destination.trigger.over_ms
    query = each.plan.group_id, each.select.select_id
    times = (question.before_ms, over_ms, each.from_ms, each.ended_ms)
    return _encode((*query, question.store, question.cursor, question.visibility, *times))


def by_query(requests: Sequence[AggregateRequest]) -> Iterable[list[int]]:
    """Return the places of the requests of each query."""
    places: dict[tuple[str, str], list[int]] = {}
    for place, each in enumerate(requests):
        places.setdefault((each.plan.group_id, each.select.select_id), []).append(place)
    return places.values()


def _answers(
    pending: PendingLog, requests: Sequence[AggregateRequest], known: AnswerCache
) -> list[_CachedAnswer | None]:
    """Return the gathered aggregates for destinations of one query."""
    contents = [_content(each) for each in requests]
    gathered = known.of(requests[0].question.covered)
    new = {content: each for content, each in zip(contents, requests, strict=True) if content not in gathered}
    if new:
        known.add(_gather(pending, requests[0].select, new, gathered))
    return [gathered[content] for content in contents]


def _made(
    requests: Sequence[AggregateRequest], answers: Sequence[_CachedAnswer | None], charge: DigestCharge
) -> Iterator[DigestAnswer]:
    """Yield the digests of one query's destinations."""
    from spark_jobs.engine.operators.aggregate.kept import kept_aggregates

    plan, select = requests[0].plan, requests[0].select
    destinations = [
        AggregateDestination(
            answer.aggregates,
            each.destination.row,
            each.question.before_ms is not None and each.destination.clause.even_if_empty,
        )
        for each, answer in zip(requests, answers, strict=True)
        if answer is not None
    ]
    kept = iter(kept_aggregates(plan, select, destinations) if destinations else ())
    for each, known in zip(requests, answers, strict=True):
        if known is None:
            yield DigestRefused(reason=_REFUSAL)
            continue
        later = msgspec.structs.asdict(known.later) | {"reached": known.reached}
        try:
            with charge(known.aggregates.end - known.aggregates.begin):
                own = next(kept)
        except QueryLeftOut as left_out:
            if each.question.before_ms is None:  # a look, which has no digest
                yield AggregatedMatches(**later, rows=DigestRows(), counted=0)
            else:
                yield DigestRefused(**later, reason=left_out.reason, code="not-evaluated")
            continue
        if own.failure:
            yield DigestUnavailable(**later, reason=own.failure)
            continue
        yield AggregatedMatches(
            **later,
            rows=own.rows,
            counted=own.matches,
            late=known.late,
            left_out=own.left_out,
        )


def _gather(pending: PendingLog, select: SelectList, new: Mapping[bytes, AggregateRequest], gathered: _Answers) -> int:
    """Gather the answers to distinct questions into `gathered`; a question with too many aggregates gets None.

    Returns:
        The bytes of all aggregates of the answers.
    """
    from spark_jobs.engine.operators.aggregate.merging import AggregateMerge

    left = dict(new)
    while left:
        merge = AggregateMerge(select, len(left))
        questions = [
            AggregateQuestion(each.question, each.destination.trigger.over_ms, each.from_ms, each.ended_ms)
            for each in left.values()
        ]
        try:
            answers, found = gather_aggregates(pending, questions, merge.take), merge.aggregates()
        except TooManyAggregates as excess:
            refused = [content for number, content in enumerate(left) if number in excess.questions]
            gathered.update(dict.fromkeys(refused))
            for content in refused:
                del left[content]
            continue
        for (content, each), answer, aggregates, late in zip(
            left.items(), answers, found, merge.late.tolist(), strict=True
        ):
            gathered[content] = _CachedAnswer(answer, aggregates, late, each.reached)
        return merge.size
    return 0
