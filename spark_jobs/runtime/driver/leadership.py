"""The leadership of an evaluator's name: takes the lease or waits for it, and ends the process after a loss."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from grouping.model.errors import OperationalError
from grouping.settings.settings import Settings
from grouping.store.keys import role_title
from grouping.store.lease import Lease
from grouping.store.ownership import EvaluatorFences

__all__ = ["Leadership"]

log = logging.getLogger(__name__)

_RENEW_SECONDS = 2.0
_LOOK_SECONDS = 0.2
"""The time between two looks at a lease that another process holds."""
_REDIS_SECONDS = 30.0
"""How long an evaluator that is no standby waits for an answer of Redis before it gives up."""
_MARGIN_SECONDS = 3.0
"""If the lease cannot be renewed, the process ends itself this long before the lease lapses."""


class Leadership:
    """The evaluator's lease, which a separate thread renews."""

    def __init__(self, settings: Settings, clock: Callable[[], float], lost: Callable[[], None]) -> None:
        """Prepare to take the lease.

        Args:
            settings: The evaluator's settings.
            clock: Monotonic seconds.
            lost: Is called in the renewing thread when another process has the lease, or when the lease could not be
                renewed in time. The function must end the JVM and the process.
        """
        self.lease = Lease(settings, "evaluator", settings.evaluator.name)
        """The lease of the evaluator."""
        self.fences = EvaluatorFences.of(settings, self.lease.token)
        """The fences that let only the lease's holder write."""
        self._clock = clock
        self._lost = lost
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="lease", daemon=True)
        self._renewed_at = 0.0
        self.taken = threading.Event()
        """Whether this process leads."""

    def take(self, *, standby: bool, waiting: Callable[[], None] = lambda: None) -> None:
        """Take the lease. If another process has the lease, wait until the lease lapses or is given back.

        An evaluator is alive if it renews its lease. If the holder does not renew the lease, it may have died in
        another container or on another host. This process cannot check that, so it waits until the lease lapses.

        Args:
            standby: Whether to wait also while the holder is alive.
            waiting: Is called again and again while waiting.

        Raises:
            OperationalError: This evaluator is no standby, and another evaluator is alive or Redis does not answer.
        """
        answered_at = self._clock()
        before: _Sight | None = None
        while True:
            try:
                if self.lease.acquire():
                    break
                sight = _Sight(self.lease.holder(), self.lease.remaining_ms())
                if before is None:
                    log.info("waiting for the lease", extra={"active": sight.holder})
                elif sight.lives_since(before) and not standby:
                    raise _AnotherLives(
                        f"another {role_title('evaluator', self.fences.holder.name)} runs on this prefix",
                        detail=f"The lease is held by {sight.holder} (machine/process/nonce).",
                        hint="Stop it first, let this one stand by (CQ_STANDBY=true), or give it streams of its own "
                        "(CQ_EVALUATOR_NAME) or another prefix.",
                    )
                before = sight
                answered_at = self._clock()
            except _AnotherLives:
                raise
            except OperationalError:
                if not standby and self._clock() >= answered_at + _REDIS_SECONDS:
                    raise
            waiting()
            self._stop.wait(_LOOK_SECONDS)
        if before is not None:
            log.warning("the previous evaluator is gone; this one takes over")
        self._renewed_at = self._clock()
        self.taken.set()
        self._thread.start()

    def release(self) -> None:
        """Give the lease back. The JVM must have ended, because the tasks of a running JVM might still write."""
        if not self.taken.is_set():
            return
        self._stop.set()
        self._thread.join()
        try:
            self.lease.release()
        except OperationalError as error:
            log.warning("lease not given back, it will lapse", extra={"reason": error.detail})

    def _renew(self) -> None:
        patience = self.lease.lifetime_ms / 1000 - _MARGIN_SECONDS
        while not self._stop.wait(_RENEW_SECONDS):
            try:
                # The lease is taken again, not only renewed, because a Redis that has lost its data has lost the lease.
                kept = self.lease.acquire()
                if kept:
                    self._renewed_at = self._clock()
            except OperationalError:
                kept = self._clock() - self._renewed_at < patience
            if not kept:
                self._lost()
                return


@dataclass(frozen=True, slots=True)
class _Sight:
    """The state of a lease that another process holds, at one moment."""

    holder: str | None
    left_ms: int

    def lives_since(self, before: _Sight) -> bool:
        """Tell whether the lease was renewed, or taken by another process, since an earlier moment."""
        return self.holder is not None and (self.holder != before.holder or self.left_ms > before.left_ms)


class _AnotherLives(OperationalError):
    """Another evaluator renews the lease."""
