"""Ends an evaluator that has lost its executors: a master that has dropped an application gives no new executors."""

from __future__ import annotations

from collections.abc import Callable

from grouping.model.errors import OperationalError

__all__ = ["GONE_SECONDS", "Executors"]

GONE_SECONDS = 30.0
"""How long events may wait without an executor after the last executor has gone."""


class Executors:
    """Watches the number of executors.

    A standalone master drops an application whose driver was silent for too long. Spark's driver does not register
    again, but waits for a failover of the master. So an evaluator that has lost all executors ends, and its successor
    registers with the master. An evaluator that has never had an executor waits, because its cluster may have no free
    cores yet.
    """

    def __init__(self, count: Callable[[], int], clock: Callable[[], float]) -> None:
        """Begin.

        Args:
            count: Returns the number of executors; 0 with a local master, where the driver does the work.
            clock: Monotonic seconds.
        """
        self._count = count
        self._clock = clock
        self._had_any = False
        self._none_since: float | None = None

    def check(self, *, awaited: bool) -> int:
        """Return the number of executors.

        Args:
            awaited: Whether events wait to be evaluated. While none wait, a missing executor is no fault, because a
                cluster may take idle executors back.

        Raises:
            OperationalError: The evaluator had executors, and has had none for `GONE_SECONDS` while events waited.
        """
        count, now = self._count(), self._clock()
        some = count > 0
        self._had_any |= some
        if some or not awaited or not self._had_any:
            self._none_since = None
            return count
        if self._none_since is None:
            self._none_since = now
        if now - self._none_since >= GONE_SECONDS:
            raise OperationalError(
                "the cluster has taken all executors away",
                detail=f"For {GONE_SECONDS:g} seconds there has been no executor, and events wait.",
                hint="A new evaluator asks for executors. Check whether Spark's master has free cores.",
            )
        return count
