"""Gathers the pending matches, or the aggregates, for the digests of due destinations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from gateway.model.end_notice import EndNotice
from gateway.model.membership import Membership
from gateway.state.working_copy import WorkingCopy
from gateway.timers.aggregate_guard import AggregateGuard
from gateway.timers.intake import Intake
from gateway.timers.pending_index import store_key
from grouping.digests.answers import DigestAnswer
from grouping.digests.cursor import Cursor, SourceOffsets, after_gap
from grouping.digests.gather import DigestQuestion, gather
from grouping.model.ids import DestinationId, GroupId, SelectId, StreamId
from grouping.plan.group import GroupPlan, SelectList
from spark_jobs.engine.operators.aggregate.aggregate_digests import AggregateRequest, AnswerCache

__all__ = ["DigestGathering", "DueDestination"]


class DueDestination(NamedTuple):
    """A destination that is due, for a tick or for a look."""

    name: DestinationId
    membership: Membership
    incarnation: str
    cursor: Cursor
    tick: int | None
    """The tick; None for a look, which finds the next tick of the destination."""
    from_ms: int = 0
    """The time at which the digest begins."""
    gap: bool = False
    """Whether matches of missed ticks are in no digest, because they are older than the window of OVER LAST at
    `tick`."""

    def after_gap(self, covered: SourceOffsets) -> DueDestination:
        """Return the destination with a cursor that skips the missed matches; without a gap, the destination itself."""
        if not self.gap or self.tick is None:
            return self
        trigger = self.membership.destination.trigger
        cursor = after_gap(self.cursor, self.tick, trigger.every_ms, trigger.over_ms, covered)
        return self._replace(cursor=cursor)


class DigestGathering:
    """Gathers the pending matches and aggregates of destinations."""

    def __init__(self, working: WorkingCopy, intake: Intake, guard: AggregateGuard) -> None:
        self._working = working
        self._guard = guard
        self._intake = intake
        self._known = AnswerCache()

    def answers(
        self,
        served: Sequence[DueDestination],
        covered: SourceOffsets,
        below: Callable[[int], int | None] = lambda _partition: None,
    ) -> Iterator[tuple[DueDestination, DigestAnswer]]:
        """Yield each destination with its answer: first destinations with matches, then destinations with aggregates.

        Destinations with aggregates come query by query.

        Args:
            served: The destinations.
            covered: The offsets that the cut covers.
            below: Takes a partition of `cq.pending`. Returns the offset below which the cut covers computed results;
                None if the cut covers all of them.
        """
        single = [each for each in served if each.membership.destination.slots is None]
        yield from zip(single, gather(self._intake.log, self._questions(single, covered, below)), strict=True)
        aggregated = [each for each in served if each.membership.destination.slots is not None]
        requests = list(self._requests(aggregated, self._questions(aggregated, covered, below)))
        for place, matches in self._guard.answers(self._intake.log, requests, self._known):
            yield aggregated[place], matches

    def _requests(
        self, aggregated: Iterable[DueDestination], questions: Iterable[DigestQuestion]
    ) -> Iterator[AggregateRequest]:
        known: dict[tuple[StreamId, GroupId, SelectId], tuple[GroupPlan, SelectList]] = {}
        for each, question in zip(aggregated, questions, strict=True):
            destination = each.membership.destination
            stream_id, group_id, select_id = query = destination.stream_id, destination.group_id, destination.select_id
            if query not in known:
                known[query] = self._working.plan(stream_id, group_id), self._working.select(stream_id, select_id)
            reached = self._intake.reached[each.membership.timed.partition]
            yield AggregateRequest(destination, question, *known[query], each.from_ms, reached)

    def _questions(
        self, served: Iterable[DueDestination], covered: SourceOffsets, below: Callable[[int], int | None]
    ) -> Iterator[DigestQuestion]:
        for each in served:
            timed = each.membership.timed
            store = store_key(timed.store)
            stored, reached = self._intake.index.get(store), below(timed.partition)
            yield DigestQuestion(store, stored, each.cursor, timed.visibility, each.tick, covered, reached)

    def last_answers(
        self, notices: Sequence[EndNotice], questions: Sequence[DigestQuestion]
    ) -> Iterator[tuple[int, DigestAnswer]]:
        """Yield the answers for last digests, each with the index of its notice."""
        single = [place for place, notice in enumerate(notices) if notice.plan is None]
        matches = gather(self._intake.log, [questions[place] for place in single])
        yield from zip(single, matches, strict=True)
        aggregated, requests = [], []
        for place, (notice, question) in enumerate(zip(notices, questions, strict=True)):
            if notice.plan is None or notice.select is None:
                continue
            aggregated.append(place)
            ended_ms = notice.ended_ms
            requests.append(
                AggregateRequest(notice.destination, question, notice.plan, notice.select, ended_ms=ended_ms)
            )
        for number, found in self._guard.answers(self._intake.log, requests, AnswerCache()):
            yield aggregated[number], found
