"""Caution of a task towards shares of the queries (`grouping.store.quarantine`) that did harm before."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from grouping.model.errors import OperationalError
from grouping.model.ids import StreamId, Subscriber
from grouping.store.quarantine import KILLED, NOBODY, SLOW, Quarantine, QuarantineStore, parts_of
from spark_jobs.isolation.hang_guard import HangGuard

__all__ = ["Caution", "Division", "Harm"]

log = logging.getLogger(__name__)

_APART = 32
"""Lots into which suspects are divided: the lot in hand when a worker dies holds the suspects of the next try."""


Convict = Callable[[Sequence[str]], Collection[str]]
"""Notes shares that were too slow, at once; returns the ids of what is withheld by now."""


class Division(NamedTuple):
    """Shares, by how they are evaluated."""

    together: list[str]
    apart: list[list[str]]
    """Lots, each evaluated by itself, before the others."""
    left_out: list[str]
    """For what they did themselves."""
    withheld: list[str]
    """For what others of their subscriber did."""


class Caution:
    """Says which shares a task evaluates together, apart, or not at all."""

    def __init__(
        self,
        left_out: Mapping[str, str] | None = None,
        watched: Collection[str] = (),
        suspects: Collection[str] | None = None,
        hold: Callable[[Sequence[str]], None] | None = None,
        guard: HangGuard | None = None,
        slow: Collection[str] = (),
        withheld: Collection[str] = (),
        convict: Convict = lambda shares: (),
    ) -> None:
        """Begin a task.

        Args:
            left_out: Shares that are not evaluated, since they killed workers or were too slow lately, with the reason.
            watched: Shares that did so some time ago.
            suspects: Those that may have killed a worker at this batch, all if there are none; None while no worker
                died often enough.
            hold: Notes which shares are in hand, for the case that the worker dies.
            guard: Ends a worker that hangs.
            slow: Those of the watched ones that have been too slow: they may take as long as all others.
            withheld: Ids of groups and SELECT lists that are not evaluated for what others of their subscriber did.
            convict: Notes shares that were too slow, and tells what is withheld by now.
        """
        self.left_out = dict(left_out or {})
        """Shares that are not evaluated, with the reason."""
        self._withheld = frozenset(withheld)
        self._note = convict
        self._watched = watched
        self._suspects = suspects
        self._hold = hold
        self._guard = guard
        self._slow = slow
        self.held: Sequence[str] = ()
        """The shares that are in hand."""

    def concerns(self, failed: Collection[str]) -> bool:
        """Tell whether any share is to be treated unlike the others.

        Args:
            failed: Shares that have raised in this worker.
        """
        return bool(failed or self.left_out or self._watched or self._withheld) or self._suspects is not None

    def divide(self, shares: Sequence[str], failed: Collection[str]) -> Division:
        """Divide some shares."""
        left_out = [share for share in shares if share in self.left_out]
        others = [share for share in shares if share not in self.left_out]
        withheld = self.withheld(others)
        tried = [share for share in others if share not in set(withheld)] if withheld else others
        alone = [share for share in tried if share in failed or share in self._watched or self._suspected(share)]
        together = [share for share in tried if share not in set(alone)]
        size = -(-len(alone) // _APART) or 1
        apart = [alone[start : start + size] for start in range(0, len(alone), size)]
        return Division(together, apart, left_out, withheld)

    def withheld(self, shares: Sequence[str]) -> list[str]:
        """Return those of some shares that are not evaluated for what others of their subscriber did."""
        if not self._withheld:
            return []
        return [share for share in shares if not self._withheld.isdisjoint(parts_of(share))]

    def convict(self, shares: Sequence[str]) -> None:
        """Leave shares out from now on that were too slow, and have everybody know at once."""
        self.left_out |= dict.fromkeys(shares, SLOW)
        self._withheld |= frozenset(self._note(shares))

    def hold(self, shares: Sequence[str]) -> None:
        """Begin a step of the evaluation: note that these shares are in hand now, and no others."""
        if self._guard is not None:
            self._guard.step(apart=not all(share in self._slow for share in shares))
        if self._hold is not None and shares != self.held:
            self._hold(shares)
            self.held = shares

    def _suspected(self, share: str) -> bool:
        return self._suspects is not None and (not self._suspects or share in self._suspects)


class Harm:
    """The harm that shares of one stream's queries did, as a worker knows and tells it."""

    def __init__(self, stream_id: StreamId, store: QuarantineStore, clock_ms: Callable[[], int]) -> None:
        """Begin with what the store knows.

        Args:
            stream_id: Whose queries.
            store: Where it is told.
            clock_ms: Epoch milliseconds.
        """
        self._stream_id = stream_id
        self._store = store
        self._clock_ms = clock_ms
        self.failed: set[str] = set()
        """Shares that raised in this worker."""
        self._slow: dict[str, Quarantine] = {}
        """Shares that were too slow in this worker."""

    def own_caution(self, guard: HangGuard) -> Caution:
        """Return what a task must heed by what this worker has met itself.

        Args:
            guard: Ends a worker that hangs.
        """
        now_ms = self._clock_ms()
        self._slow = {share: state for share, state in self._slow.items() if not state.is_over(now_ms)}
        left_out, watched = _divided(self._slow, now_ms)
        return Caution(left_out, watched, guard=guard, slow=watched, convict=self.convict)

    def caution(self, task: int, guard: HangGuard, wait_seconds: float) -> Caution:
        """Return what a task must heed by what is known of all workers; asks again as long as the store doesn't answer.

        Args:
            task: Its number in the batch.
            guard: Ends a worker that hangs.
            wait_seconds: From one time to the next.
        """
        while True:
            try:
                return self._caution(task, guard)
            except OperationalError:
                time.sleep(wait_seconds)

    def _caution(self, task: int, guard: HangGuard) -> Caution:
        now_ms = self._clock_ms()
        trial, known = self._store.trial(self._stream_id), self._store.quarantined(self._stream_id)
        withheld = self._store.withheld(self._stream_id)
        known = self._slow | known
        left_out, watched = _divided(known, now_ms)
        slow = {share for share in watched if known[share].reason == SLOW}
        hold = partial(self._hold, task) if trial.careful or watched else None
        suspects = trial.suspects if trial.careful else None
        return Caution(left_out, watched, suspects, hold, guard, slow, withheld, self.convict)

    def _hold(self, task: int, shares: Sequence[str]) -> None:
        try:
            self._store.hold(self._stream_id, task, shares)
        except OperationalError as error:
            # What is not noted is found at a later death.
            log.warning("shares in hand not noted", extra={"stream": self._stream_id, "reason": error.message})

    @property
    def met(self) -> bool:
        """Whether shares were too slow in this worker: then there may be more that others know of."""
        return bool(self._slow)

    def convict(self, shares: Sequence[str]) -> Collection[str]:
        """Note shares that were too slow, and return the ids of what is withheld by now.

        Groups over a join that was too slow come together: that is no strike against each of their founders.
        """
        now_ms = self._clock_ms()
        known: Mapping[str, Quarantine] = {}
        founders: Mapping[str, Subscriber] = {}
        withheld: Collection[str] = ()
        try:
            known, withheld = self._store.quarantined(self._stream_id), self._store.withheld(self._stream_id)
            founders = self._store.founders(self._stream_id, shares if len(shares) == 1 else ())
        except OperationalError as error:
            log.warning("quarantines not read", extra={"stream": self._stream_id, "reason": error.message})
        states: dict[str, Quarantine] = {}
        for share in shares:
            before = known.get(share) or self._slow.get(share)
            if before is None or not before.leaves_out(now_ms):  # else another worker was quicker
                before = Quarantine.of_conviction(now_ms, before, SLOW, founders.get(share, NOBODY))
            states[share] = self._slow[share] = before
        self._put(states)
        return withheld

    def tell(self, letters: Mapping[str, int], reasons: Mapping[str, str]) -> None:
        """Tell of a task.

        Args:
            letters: How many dead letters it wrote, by code.
            reasons: Why shares were left out.
        """
        now_ms = self._clock_ms()
        raised = {share: reason for share, reason in reasons.items() if reason not in (KILLED, SLOW)}
        try:
            self._store.count_dead_letters(letters)
            known = self._store.quarantined(self._stream_id) if raised else {}
        except OperationalError as error:
            log.warning("dead letters not counted", extra={"stream": self._stream_id, "reason": error.message})
            known = {}
        self._put({share: Quarantine.of_fault(why, now_ms, known.get(share)) for share, why in raised.items()})

    def _put(self, states: Mapping[str, Quarantine]) -> None:
        try:
            if states:
                self._store.put(self._stream_id, states)
        except OperationalError as error:
            log.warning("left out, not noted", extra={"stream": self._stream_id, "reason": error.message})


def _divided(known: Mapping[str, Quarantine], now_ms: int) -> tuple[dict[str, str], set[str]]:
    """Return the shares that are left out, with the reason, and those that were convicted before."""
    left_out = {share: state.reason for share, state in known.items() if state.leaves_out(now_ms)}
    return left_out, {share for share, state in known.items() if state.deaths and share not in left_out}
