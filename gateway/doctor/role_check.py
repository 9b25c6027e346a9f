"""Checks the two roles: whether they run, and whether all streams and groups are evaluated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gateway.doctor.finding import Finding
from gateway.model.inventory import Inventory
from grouping.settings.assignment import Assignment
from grouping.settings.settings import Settings
from grouping.store.connection import eviction_policy
from grouping.store.keys import LeaseTaker, role_title
from grouping.store.lease import Lease
from grouping.store.quarantine import QuarantineStore
from grouping.store.role_notes import RoleNotes
from grouping.store.table_store import TableStore
from grouping.store.work_units import group_of
from grouping.values.times import instant

__all__ = ["check_roles"]

_QUIET_SECONDS = 120.0
"""If a stream has unevaluated events, but no micro-batch was committed for this time, the stream is stuck, or its
micro-batches are too large."""


def check_roles(settings: Settings, inventory: Inventory, store: TableStore, now_ms: int) -> Iterator[Finding]:
    """Yield findings about roles that do not run, and streams and groups that are not evaluated.

    A role runs if its lease has a holder. There is also a finding if Redis may evict keys, and if the gateway has not
    confirmed the constant tables since Redis started.

    Raises:
        StoreUnavailable: Redis does not answer.
    """
    evaluators: list[tuple[LeaseTaker, str]] = [("evaluator", name) for name in Assignment.of(settings).names]
    for role, name in (("gateway", ""), *evaluators):
        if Lease(settings, role, name).holder() is None:
            hint = "Start it; the runbook describes its alert."
            yield Finding(f"{role}-down", role_title(role, name), "Nobody holds its lease.", hint)
    if store.epoch() is None:
        hint = "The gateway confirms them when it has recovered; its log says what it waits for."
        yield Finding(
            "tables-unconfirmed", "", "The gateway has not confirmed the constant tables since Redis started.", hint
        )
    policy = eviction_policy(settings)
    if policy not in (None, "noeviction"):
        hint = "Set maxmemory-policy to noeviction, or maxmemory to 0."
        yield Finding("redis-evicts", "", f'Redis drops keys when its memory is full: its policy is "{policy}".', hint)
    notes = RoleNotes(settings)
    for role, name in evaluators:
        note = notes.read(role, name)
        yield from _check_streams({} if note is None else note.more["streams"])
    gateway = notes.read("gateway")
    yield from _check_owners({} if gateway is None else gateway.more["streams"])
    known = QuarantineStore(settings).quarantined_in(inventory.streams)
    for stream_id, shares in known.items():
        for share, state in shares.items():
            if state.holds(now_ms) and group_of(share) in inventory.groups(stream_id):
                detail = f"{share} has not been evaluated since {instant(state.since_ms)}: {state.reason}."
                hint = "SHOW GROUPS names its queries; drop the query that is the cause."
                yield Finding("quarantined", f"stream {inventory.streams[stream_id].name}", detail, hint)


def _check_owners(streams: Mapping[str, Mapping[str, Any]]) -> Iterator[Finding]:
    """Yield findings about streams without an evaluator, with the reason from the gateway's report.

    There are such streams only if several evaluators share the streams.
    """
    for name, figures in streams.items():
        if "reason" in figures and "evaluator" not in figures:
            hint = "Start that evaluator; give gateway and evaluators the same CQ_EVALUATOR_STREAMS."
            yield Finding(
                "stream-stopped", f"stream {name}", f"The stream is not evaluated: {figures['reason']}.", hint
            )


def _check_streams(streams: Mapping[str, Mapping[str, Any]]) -> Iterator[Finding]:
    """Yield findings about streams that make no progress, from the reports of their evaluators."""
    for name, figures in streams.items():
        quiet = figures["quiet_seconds"] or 0.0
        if figures["reason"] is not None:
            hint = "The evaluator tries again; see StreamNotEvaluated in the runbook."
            yield Finding(
                "stream-stopped", f"stream {name}", f"The stream is not evaluated: {figures['reason']}.", hint
            )
        elif figures["behind"] and quiet > _QUIET_SECONDS:
            detail = f"{figures['behind']} events wait, and no micro-batch was committed for {quiet:.0f} s."
            hint = (
                "Look in the evaluator's log for a step that hangs, and check whether its cores are busy; "
                "see EventsBehind in the runbook."
            )
            yield Finding("stream-stuck", f"stream {name}", detail, hint)
