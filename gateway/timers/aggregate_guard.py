"""Bounds the CPU time of HAVING and SELECT lists over aggregates, which the gateway evaluates in its one thread.

A query that takes longer is quarantined as in a worker (docs/design/039-quarantine.md): its digests are refused until
the quarantine ends. A call of a library that does not return ends the gateway, so that the next gateway leaves the
query out.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from grouping.digests.answers import DigestAnswer
from grouping.digests.pending_log import PendingLog
from grouping.model.ids import StreamId
from grouping.settings.settings import Settings
from grouping.store.quarantine import Quarantine, QuarantineStore
from grouping.store.work_units import SLOW_DIGESTS, unit_of
from spark_jobs.engine.isolation.watchdog import BudgetWatchdog
from spark_jobs.engine.operators.aggregate.aggregate_digests import (
    AggregateRequest,
    AnswerCache,
    QueryLeftOut,
    each_aggregate_digest,
)
from spark_jobs.engine.rows.cpu_budget import CpuBudget, CpuExceeded, StoppedEvaluation, charged

__all__ = ["AggregateGuard"]

log = logging.getLogger(__name__)

_AGGREGATE_SECONDS = 1e-6
"""CPU time of a query for each aggregate of each of its destinations, besides CQ_EVALUATOR_GROUP_SECONDS."""
_REASON = f"Its query was not evaluated: {SLOW_DIGESTS}."


class AggregateGuard:
    """Makes the digests of aggregate queries. For use by the gateway's main thread only."""

    def __init__(self, settings: Settings, clock: Callable[[], int]) -> None:
        """Begin without a query.

        Args:
            settings: The CPU time of a query, and where Redis is.
            clock: The present, epoch milliseconds.
        """
        self._settings = settings
        self._clock = clock
        self._store = QuarantineStore(settings)
        self._watchdog = BudgetWatchdog()

    def answers(
        self, pending: PendingLog, requests: Sequence[AggregateRequest], known: AnswerCache
    ) -> Iterator[tuple[int, DigestAnswer]]:
        """Yield the digests of destinations as `each_aggregate_digest` does; those of a quarantined query are refused.

        Raises:
            StoreUnavailable: Redis does not answer.
        """
        queries: dict[tuple[StreamId, str], list[int]] = {}
        for place, each in enumerate(requests):
            unit = unit_of(each.plan.group_id, each.select.select_id)
            queries.setdefault((each.plan.stream_id, unit), []).append(place)
        quarantined = self._store.quarantined_in({stream_id for stream_id, _ in queries}) if queries else {}
        for (stream_id, unit), places in queries.items():
            query = _GuardedQuery(self._settings, self._store, self._clock, stream_id, unit, quarantined[stream_id])
            self._watchdog.watch(query.budget, query.report)
            try:
                with query.budget.batch(0):
                    own = [requests[place] for place in places]
                    for number, answer in each_aggregate_digest(pending, own, known, query.charge):
                        yield places[number], answer
            finally:
                self._watchdog.rest()


class _GuardedQuery:
    """A query whose digests are made."""

    def __init__(
        self,
        settings: Settings,
        store: QuarantineStore,
        clock: Callable[[], int],
        stream_id: StreamId,
        unit: str,
        states: dict[str, Quarantine],
    ) -> None:
        """Begin with the quarantines of the stream, to which that of the query may be added."""
        self._settings, self._store, self._clock = settings, store, clock
        self._stream_id, self._unit, self._states = stream_id, unit, states
        state = states.get(unit)
        self._is_left_out = state is not None and state.reason == SLOW_DIGESTS and state.leaves_out(clock())
        self.budget = CpuBudget(settings.evaluator.group_seconds, _AGGREGATE_SECONDS, part_of=self._part_of_budget)

    @contextmanager
    def charge(self, aggregates: int) -> Iterator[None]:
        """Charge the query with the evaluation for a destination with so many aggregates.

        Raises:
            QueryLeftOut: The query is quarantined.
        """
        if self._is_left_out:
            raise QueryLeftOut(_REASON)
        self.budget.add(aggregates)
        try:
            with charged(self._unit, lambda: [self._unit]):
                yield
        except CpuExceeded:
            self._states[self._unit] = self._quarantine(self._store)
            self._is_left_out = True
            raise QueryLeftOut(_REASON) from None

    def report(self, _: StoppedEvaluation) -> None:
        """Quarantine the query, from the thread of the watchdog."""
        self._quarantine(QuarantineStore(self._settings))

    def _part_of_budget(self, unit: str) -> float:
        """Return the part of the CPU time for the query: 1/n² for the n-th one of its subscriber within the hour."""
        stopped = Counter(state.user for state in self._states.values() if state.times and state.user)
        user = self._store.sole_user_of(self._stream_id, [unit]) if stopped else None
        return 1 / (1 + stopped[user]) ** 2 if user else 1.0

    def _quarantine(self, store: QuarantineStore) -> Quarantine:
        before = store.quarantined(self._stream_id).get(self._unit)
        user = store.sole_user_of(self._stream_id, [self._unit])
        state = Quarantine.begun(self._clock(), before, SLOW_DIGESTS, user)
        store.put(self._stream_id, {self._unit: state})
        log.error(
            "quarantined, its digests took too much CPU time", extra={"stream": self._stream_id, "unit": self._unit}
        )
        return state
