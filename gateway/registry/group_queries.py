"""Queries over groups of matches: which clauses they take, and the panes in which their times are told apart."""

from __future__ import annotations

from gateway.model.records import Destination, TriggerSpec, on_pane, pane_of
from grouping.model.errors import InputError
from grouping.model.group import GroupPlan
from grouping.model.query import ChangeBased, DigestClause, TimerBased, Trigger

__all__ = ["accepted_trigger", "check_groups", "on_panes"]

_REFUSED = {"latest": "DIGEST LATEST BY", "count": "DIGEST COUNT"}


def check_groups(plan: GroupPlan, trigger: Trigger, clause: DigestClause | None) -> None:
    """Refuse what a query over groups, or one without them, cannot have.

    Raises:
        InputError: ``unsupported-query``.
    """
    if plan.kept is None:
        if isinstance(trigger, TimerBased) and trigger.over is not None:
            raise _refusal(
                "OVER LAST without aggregates",
                "A digest of matches holds each of them once.",
                "Leave OVER LAST out, or aggregate.",
            )
        return
    if isinstance(trigger, ChangeBased):
        raise _refusal(
            "an aggregate without a window or EVERY",
            "It is of the matches of a digest, and digests come at ticks.",
            "Add EVERY '5 minutes'.",
        )
    if clause is not None and clause.kind in _REFUSED:
        raise _refusal(
            f"{_REFUSED[clause.kind]} of groups",
            "The rows of the digest are groups already.",
            "Leave it out, or choose among the groups by DIGEST TOP n BY.",
        )


def _refusal(what: str, detail: str, hint: str) -> InputError:
    return InputError(f"{what} is not supported", code="unsupported-query", detail=detail, hint=hint)


def accepted_trigger(trigger: Trigger, now_ms: int, *, grouped: bool) -> TriggerSpec:
    """Return the trigger of a CQ without START that is accepted now.

    Ticks of groups count from the beginning of the pane, so that CQs that come one after the other share a store.
    """
    spec = TriggerSpec.of(trigger, now_ms)
    if not (grouped and spec.every_ms):
        return spec
    width, _ = pane_of(spec)
    return TriggerSpec.of(trigger, now_ms - now_ms % width)


def on_panes(destination: Destination, *times_ms: int | None) -> tuple[int | None, ...]:
    """Return START and EXPIRE of a CQ as its destination tells them apart: of groups up to the next pane."""
    if destination.slots is None:
        return times_ms
    pane = pane_of(destination.trigger)
    return tuple(None if at_ms is None else on_pane(at_ms, pane) for at_ms in times_ms)
