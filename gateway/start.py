"""The start of a gateway: waits for the servers, checks that Redis keeps its keys, and takes and keeps the lease."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from typing import TypeVar

import tenacity

from gateway.kafka import RecordTooLarge
from gateway.state.commit_mark import CatalogUnreadable
from gateway.state.recovery.rivals import OtherRedis
from grouping.model.errors import OperationalError
from grouping.process.log_lines import LineLimit
from grouping.settings.settings import Settings
from grouping.store.connection import eviction_policy
from grouping.store.lease import Lease

__all__ = ["TakenOver", "keep_lease", "refuse_eviction", "take_lease", "retried"]

log = logging.getLogger(__name__)

_T = TypeVar("_T")

_line_limit = LineLimit()

_STANDBY_SECONDS = 0.2
"""The time between two attempts of a standby to take the lease, in seconds."""
_AWAY_SECONDS = 60.0
"""How long Redis may be unreachable before the gateway ends itself. Meanwhile the gateway cannot store any work."""


class TakenOver(OperationalError):
    """Another gateway has taken over and holds the lease, so this gateway must stop."""


_LASTING = (TakenOver, RecordTooLarge, CatalogUnreadable, OtherRedis)
"""Errors after which another try would fail too."""


def refuse_eviction(settings: Settings, stop: threading.Event) -> None:
    """Refuse a Redis that evicts keys when its memory is full: without a key of a constant table, matches are lost."""
    policy = retried(lambda: eviction_policy(settings), stop)
    if policy is None:
        log.warning("the maxmemory-policy of redis is unknown; unless it is noeviction, matches may be lost")
    elif policy != "noeviction":
        raise OperationalError(
            f'redis drops keys when its memory is full: its maxmemory-policy is "{policy}"',
            hint="Set maxmemory-policy to noeviction, or maxmemory to 0.",
        )


def retried(call: Callable[[], _T], stop: threading.Event) -> _T:
    """Repeat a call until the servers answer, and return the call's result.

    Raises:
        OperationalError: The call failed with an error in `_LASTING`, which is raised at once; or `stop` is set, and
            the servers still do not answer.
    """
    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_exception(
            lambda error: isinstance(error, OperationalError) and not isinstance(error, _LASTING) and not stop.is_set()
        ),
        wait=tenacity.wait_exponential(0.1, max=2),
        sleep=lambda seconds: None if stop.wait(seconds) else None,
        before_sleep=_tell_wait,
        reraise=True,
    )
    return retrying(call)


def _tell_wait(state: tenacity.RetryCallState) -> None:
    error = state.outcome.exception() if state.outcome else None
    reason = error.line if isinstance(error, OperationalError) else str(error)
    if _line_limit.due(reason):
        log.warning("waiting for a server", extra={"attempt": state.attempt_number, "reason": reason})


def take_lease(lease: Lease, settings: Settings, stop: threading.Event) -> bool:
    """Take the lease, and return True. A standby waits until the lease is free.

    Returns:
        False if `stop` was set while this standby waited for the lease.

    Raises:
        OperationalError: Another gateway runs on the prefix, and this gateway is not a standby; or Redis does not
            answer, and `stop` is set.
    """
    logged = False
    while not retried(lease.acquire, stop):
        if not settings.standby:
            raise OperationalError(
                f'another gateway runs on the prefix "{settings.prefix}"',
                detail=f"The lease is held by {lease.holder()} (machine/process/nonce).",
                hint="Stop it first, give this one another prefix, or let it stand by: CQ_STANDBY=true.",
            )
        if not logged:
            log.info("standing by", extra={"active": lease.holder()})
            logged = True
        if stop.wait(_STANDBY_SECONDS):
            return False
    if logged:
        log.warning("taking over, since the previous gateway is gone")
    return True


def keep_lease(lease: Lease, stop: threading.Event) -> None:
    """Renew the lease until `stop` is set. If the lease is lost, end the process at once, before it writes any more."""
    kept = time.monotonic()
    while not stop.wait(lease.lifetime_ms / 5000):
        try:
            if lease.acquire():
                kept = time.monotonic()
            else:
                log.error("another gateway has taken over", extra={"holder": lease.holder()})
                os._exit(1)
        except OperationalError as error:
            if _line_limit.due("lease"):
                log.warning("the lease could not be renewed", extra={"error": str(error)})
        if time.monotonic() - kept > _AWAY_SECONDS:
            log.error("redis has been away for too long")
            os._exit(1)
