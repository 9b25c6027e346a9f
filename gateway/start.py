"""The checks before a gateway serves: servers answer, Redis keeps its keys, and the lease lasts."""

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
from grouping.process.log_lines import Sparing
from grouping.settings.settings import Settings
from grouping.store.connection import eviction_policy
from grouping.store.lease import Lease

__all__ = ["Succeeded", "keep_lease", "refuse_eviction", "take_lease", "tried"]

log = logging.getLogger(__name__)

_T = TypeVar("_T")

_sparing = Sparing()

_STANDBY_SECONDS = 0.2
"""Seconds between two attempts of a standby to take the lease."""
_AWAY_SECONDS = 60.0
"""How long Redis may be away before a gateway gives up: meanwhile its work is stored nowhere."""


class Succeeded(OperationalError):
    """Another gateway holds the lease; this one must stop."""


_LASTING = (Succeeded, RecordTooLarge, CatalogUnreadable, OtherRedis)
"""Errors that another try does not mend."""


def refuse_eviction(settings: Settings, stop: threading.Event) -> None:
    """Refuse a Redis that evicts keys when its memory is full: a lost key of a constant table means lost matches."""
    policy = tried(lambda: eviction_policy(settings), stop)
    if policy is None:
        log.warning("redis does not tell its maxmemory-policy: it must be noeviction, else matches may be lost")
    elif policy != "noeviction":
        raise OperationalError(
            f'redis drops keys when its memory is full: its maxmemory-policy is "{policy}"',
            hint="Set maxmemory-policy to noeviction, or maxmemory to 0.",
        )


def tried(call: Callable[[], _T], stop: threading.Event) -> _T:
    """Call until the servers answer, and return the result."""
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
    if _sparing.due(reason):
        log.warning("waiting for a server", extra={"attempt": state.attempt_number, "reason": reason})


def take_lease(lease: Lease, settings: Settings, stop: threading.Event) -> bool:
    """Take the lease; a standby waits until it is free. Return False if the gateway must stop before.

    Raises:
        OperationalError: Another gateway runs on the prefix, and this one is no standby.
    """
    logged = False
    while not tried(lease.acquire, stop):
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
        log.warning("taking over, the gateway before is gone")
    return True


def keep_lease(lease: Lease, stop: threading.Event) -> None:
    """Renew the lease; a gateway without a lease must not write, so the process exits at once."""
    kept = time.monotonic()
    while not stop.wait(lease.lifetime_ms / 5000):
        try:
            if lease.acquire():
                kept = time.monotonic()
            else:
                log.error("another gateway has taken over", extra={"holder": lease.holder()})
                os._exit(1)
        except OperationalError as error:
            if _sparing.due("lease"):
                log.warning("the lease could not be renewed", extra={"error": str(error)})
        if time.monotonic() - kept > _AWAY_SECONDS:
            log.error("redis has been away for too long")
            os._exit(1)
