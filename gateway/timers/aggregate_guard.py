"""Limits the CPU time of HAVING and SELECT lists over aggregates, which the gateway evaluates in its main thread.

A query that exceeds its budget of CPU time is quarantined, as in a worker (docs/design/039-quarantine.md). Its digests
are refused until the quarantine ends. If a call of a library does not return, the query is quarantined and the
gateway's process ends; the next gateway then does not evaluate the query.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from grouping.digests.answers import DigestAnswer
from grouping.digests.pending_log import PendingLog
from grouping.model.ids import StreamId
from grouping.settings.settings import Settings
from grouping.store.quarantine import Quarantine, QuarantineStore, part_of_budget, stopped_units
from grouping.store.work_units import SLOW_DIGESTS, unit_of
from spark_jobs.engine.isolation.watchdog import BudgetWatchdog
from spark_jobs.engine.operators.aggregate.aggregate_digests import (
    AggregateRequest,
    AnswerCache,
    QueryLeftOut,
    by_query,
    each_aggregate_digest,
)
from spark_jobs.engine.rows.cpu_budget import CpuBudget, CpuExceeded, StoppedEvaluation, charged

__all__ = ["AggregateGuard"]

log = logging.getLogger(__name__)

_AGGREGATE_SECONDS = 1e-6
"""A query may take the CPU time of CQ_EVALUATOR_GROUP_SECONDS and, in addition, this number of seconds for each
aggregate of each of its destinations."""
_REASON = f"Its query was not evaluated: {SLOW_DIGESTS}."


class AggregateGuard:
    """Makes the digests of aggregate queries. For use by the gateway's main thread only."""

    def __init__(self, settings: Settings, clock: Callable[[], int]) -> None:
        """Begin without a query.

        Args:
            settings: The settings, with the CPU time of a query and the address of Redis.
            clock: Returns the present, epoch milliseconds.
        """
        self._settings = settings
        self._clock = clock
        self._store = QuarantineStore(settings)
        self._watchdog = BudgetWatchdog()

    def answers(
        self, pending: PendingLog, requests: Sequence[AggregateRequest], known: AnswerCache
    ) -> Iterator[tuple[int, DigestAnswer]]:
        """Yield the digests of destinations like `each_aggregate_digest`. Digests of quarantined queries are refused.

        Raises:
            StoreUnavailable: Redis does not answer.
        """
        streams = {each.plan.stream_id for each in requests}
        quarantined = self._store.quarantined_in(streams) if streams else {}
        for places in by_query(requests):
            own = [requests[place] for place in places]
            stream_id, unit = own[0].plan.stream_id, unit_of(own[0].plan.group_id, own[0].select.select_id)
            query = _GuardedQuery(self._settings, self._store, self._clock, stream_id, unit, quarantined[stream_id])
            self._watchdog.watch(query.budget, query.report)
            try:
                with query.budget.batch(0):
                    for number, answer in each_aggregate_digest(pending, own, known, query.charge):
                        yield places[number], answer
            finally:
                self._watchdog.rest()


class _GuardedQuery:
    """A query whose digests are being made, with its budget of CPU time."""

    def __init__(
        self,
        settings: Settings,
        store: QuarantineStore,
        clock: Callable[[], int],
        stream_id: StreamId,
        unit: str,
        states: dict[str, Quarantine],
    ) -> None:
        """Begin with the quarantines of the stream. If the query is quarantined, `states` gets its quarantine."""
        self._settings, self._store, self._clock = settings, store, clock
        self._stream_id, self._unit, self._states = stream_id, unit, states
        state = states.get(unit)
        self._is_left_out = state is not None and state.reason == SLOW_DIGESTS and state.leaves_out(clock())
        self.budget = CpuBudget(settings.evaluator.group_seconds, _AGGREGATE_SECONDS, part_of=self._part_of_budget)

    @contextmanager
    def charge(self, aggregates: int) -> Iterator[None]:
        """Charge the query with the CPU time of the block, which evaluates this number of aggregates of a destination.

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
        """Return the part of the CPU time that the query may take, from 0 to 1.

        The part is below 1 if only a single subscriber uses the query, and other work units of this subscriber were
        quarantined within the last hour.
        """
        stopped = stopped_units(self._states.values())
        user = self._store.sole_user_of(self._stream_id, [unit]) if stopped else None
        return part_of_budget(stopped[user]) if user else 1.0

    def _quarantine(self, store: QuarantineStore) -> Quarantine:
        before = store.quarantined(self._stream_id).get(self._unit)
        user = store.sole_user_of(self._stream_id, [self._unit])
        state = Quarantine.begun(self._clock(), before, SLOW_DIGESTS, user)
        store.put(self._stream_id, {self._unit: state})
        log.error(
            "quarantined, its digests took too much CPU time", extra={"stream": self._stream_id, "unit": self._unit}
        )
        return state
