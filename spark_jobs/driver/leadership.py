"""One evaluator per prefix: takes the lease, and ends the process when it is lost."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from grouping.model.errors import OperationalError
from grouping.settings import Settings
from grouping.store.lease import Lease

__all__ = ["Leadership"]

log = logging.getLogger(__name__)

_RENEW_SECONDS = 2.0
_MARGIN_SECONDS = 3.0
"""How long before the lease lapses the process must be on its way out."""


class Leadership:
    """The evaluator's lease, renewed by a thread of its own."""

    def __init__(self, settings: Settings, clock: Callable[[], float], lost: Callable[[], None]) -> None:
        """Prepare to take the lease.

        Args:
            settings: Of the evaluator.
            clock: Monotonic seconds.
            lost: Called, in the thread, when the lease is somebody else's or could not be renewed in time; it must end
                the JVM and the process.
        """
        self._lease = Lease(settings, "evaluator")
        self._clock = clock
        self._lost = lost
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="lease", daemon=True)
        self._renewed_at = 0.0

    @property
    def token(self) -> str:
        """Who leads, as the lease has it."""
        return self._lease.token

    def take(self, wait_seconds: float) -> None:
        """Take the lease.

        Args:
            wait_seconds: How long Redis may take to answer.

        Raises:
            OperationalError: Another evaluator has it, or Redis does not answer.
        """
        until = self._clock() + wait_seconds
        while True:
            try:
                if not self._lease.acquire():
                    raise _LeaseTaken(f'another evaluator runs on this prefix: "{self._lease.holder()}"')
                break
            except _LeaseTaken:
                raise
            except OperationalError:
                if self._clock() >= until:
                    raise
                self._stop.wait(0.2)
        self._renewed_at = self._clock()
        self._thread.start()

    def release(self) -> None:
        """Give the lease back; only when the JVM is dead."""
        self._stop.set()
        self._thread.join()
        try:
            self._lease.release()
        except OperationalError as error:
            log.warning("lease not given back, it will lapse", extra={"reason": error.detail})

    def _renew(self) -> None:
        patience = self._lease.lifetime_ms / 1000 - _MARGIN_SECONDS
        while not self._stop.wait(_RENEW_SECONDS):
            try:
                # Taken again, not only renewed: a Redis that lost its data lost the lease too.
                kept = self._lease.acquire()
                if kept:
                    self._renewed_at = self._clock()
            except OperationalError:
                kept = self._clock() - self._renewed_at < patience
            if not kept:
                self._lost()
                return


class _LeaseTaken(OperationalError):
    """Somebody else has the lease."""
