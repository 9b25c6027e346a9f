"""A worker's notes on the failed work units of a stream. Workers share these notes through Redis."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from grouping.model.errors import OperationalError
from grouping.model.ids import StreamId, Subscriber
from grouping.store.quarantine import SEVERAL, Quarantine, QuarantineStore, part_of_budget, stopped_units
from grouping.store.work_units import FULL, KILLED, SLOW, SLOW_DIGESTS
from spark_jobs.engine.isolation.hang_guard import HangGuard
from spark_jobs.engine.isolation.unit_selection import UnitSelection

__all__ = ["QuarantineNotes"]

log = logging.getLogger(__name__)


class QuarantineNotes:
    """The failed work units of one stream, as a worker knows them."""

    def __init__(self, stream_id: StreamId, store: QuarantineStore, clock_ms: Callable[[], int]) -> None:
        """Begin without notes.

        Args:
            stream_id: The stream.
            store: Redis, where other workers and the gateway read the notes.
            clock_ms: Epoch milliseconds.
        """
        self._stream_id = stream_id
        self._store = store
        self._clock_ms = clock_ms
        self._task = 0
        self._users: Mapping[str, Subscriber] | None = None
        self._stopped: Counter[Subscriber] = Counter()
        """By subscriber: the number of units that only this subscriber uses and that were quarantined within the last
        hour."""
        self.failed: set[str] = set()
        """Units that raised an error in this worker."""
        self.quarantined: dict[str, Quarantine] = {}
        """Units that this worker quarantined: they were too slow, or the state of their computation was too large."""

    def left_out(self) -> set[str]:
        """Return the units that this worker does not try now."""
        now_ms = self._clock_ms()
        return {unit for unit, state in self.quarantined.items() if state.leaves_out(now_ms)}

    def selection(self, guard: HangGuard) -> UnitSelection:
        """Select the units that a task evaluates, by the notes of only this worker."""
        now_ms = self._clock_ms()
        self.quarantined = {unit: state for unit, state in self.quarantined.items() if not state.is_over(now_ms)}
        return self._selected(self.quarantined, None, None, guard)

    def shared_selection(self, task: int, guard: HangGuard, wait_seconds: float) -> UnitSelection:
        """Select the units that a task evaluates, by the notes of all workers. The call waits until Redis answers.

        Args:
            task: The number of the task in its micro-batch.
            guard: Ends a worker that hangs.
            wait_seconds: The pause between two requests.
        """
        self._task = task
        while True:
            try:
                search, known = self._store.search(self._stream_id), self._store.quarantined(self._stream_id)
            except OperationalError:
                time.sleep(wait_seconds)
                continue
            suspects = search.suspects if search.careful else None
            return self._selected(self.quarantined | known, suspects, self.mark, guard)

    def _selected(
        self,
        known: Mapping[str, Quarantine],
        suspects: Sequence[str] | None,
        mark: Callable[[Sequence[str]], None] | None,
        guard: HangGuard,
    ) -> UnitSelection:
        now_ms = self._clock_ms()
        self._users = None
        self._stopped = stopped_units(known.values())
        left_out = {unit: state.reason for unit, state in known.items() if state.leaves_out(now_ms)}
        watched = {unit for unit, state in known.items() if state.times and unit not in left_out}
        marks = mark if watched or suspects is not None else None
        return UnitSelection(left_out, watched, suspects, marks, guard, partial(self.quarantine, SLOW))

    def part_of_budget(self, item_id: str) -> float:
        """Return the part of the CPU budget that a group or SELECT list gets.

        The part is 1, unless the item has a sole user, and other units of this user were quarantined within the hour.
        """
        if not self._stopped:
            return 1.0
        if self._users is None:
            try:
                self._users = self._store.sole_users(self._stream_id)
            except OperationalError:
                self._users = {}
        user = self._users.get(item_id, SEVERAL)
        return 1.0 if user == SEVERAL else part_of_budget(self._stopped[user])

    def mark(self, units: Sequence[str]) -> None:
        """Write to Redis which units the task evaluates now. If the worker dies, these units are the suspects."""
        try:
            self._store.mark(self._stream_id, self._task, units)
        except OperationalError as error:
            # If the worker dies now, the unit at fault is found only when the unit kills another worker.
            log.warning("units not marked", extra={"stream": self._stream_id, "reason": error.message})

    def quarantine(self, reason: str, units: Sequence[str]) -> None:
        """Quarantine units.

        Args:
            reason: `FULL` or `SLOW`.
            units: The units. Several units, such as all groups over a computation, reduce no user's budget.
        """
        now_ms = self._clock_ms()
        known: Mapping[str, Quarantine] = {}
        user = SEVERAL
        try:
            known, user = self._store.quarantined(self._stream_id), self._store.sole_user_of(self._stream_id, units)
        except OperationalError as error:
            log.warning("quarantines not read", extra={"stream": self._stream_id, "reason": error.message})
        states: dict[str, Quarantine] = {}
        for unit in units:
            before = known.get(unit) or self.quarantined.get(unit)
            if before is None or not before.leaves_out(now_ms):  # otherwise another worker has quarantined the unit
                before = Quarantine.begun(now_ms, before, reason, user)
                if user:
                    self._stopped[user] += 1
            states[unit] = self.quarantined[unit] = before
        self._put(states)

    def report_task(self, letters: Mapping[str, int], reasons: Mapping[str, str]) -> None:
        """Write the outcome of a task to Redis.

        Args:
            letters: The number of the task's dead letters, by code.
            reasons: By unit, why the task left it out.
        """
        now_ms = self._clock_ms()
        quarantined = (FULL, KILLED, SLOW, SLOW_DIGESTS)
        raised = {unit: reason for unit, reason in reasons.items() if reason not in quarantined}
        try:
            self._store.count_dead_letters(letters)
            known = self._store.quarantined(self._stream_id) if raised else {}
        except OperationalError as error:
            log.warning("dead letters not counted", extra={"stream": self._stream_id, "reason": error.message})
            known = {}
        self._put({unit: Quarantine.of_fault(why, now_ms, known.get(unit)) for unit, why in raised.items()})

    def report_misfits(self, counts: Mapping[str, int]) -> None:
        """Write to Redis how many values of a lenient stream did not fit, by column."""
        try:
            self._store.count_misfits(self._stream_id, counts)
        except OperationalError as error:
            log.warning("misfits not counted", extra={"stream": self._stream_id, "reason": error.message})

    def _put(self, states: Mapping[str, Quarantine]) -> None:
        try:
            if states:
                self._store.put(self._stream_id, states)
        except OperationalError as error:
            log.warning("quarantines not written", extra={"stream": self._stream_id, "reason": error.message})
