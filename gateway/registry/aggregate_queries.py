"""Refuses clauses that do not fit the query, such as OVER LAST without aggregates, or EVERY with EMIT CHANGES."""

from __future__ import annotations

from gateway.model.records import Destination
from gateway.model.trigger_spec import TriggerSpec
from grouping.model.errors import InputError
from grouping.model.query import DigestClause, Edge
from grouping.model.refusals import unsupported
from grouping.model.trigger import ChangeBased, TimerBased, Trigger
from grouping.settings.limit_settings import LimitSettings
from grouping.values.times import format_interval

__all__ = ["check_aggregation", "check_digests", "check_untimed"]

_REFUSED = {"latest": "DIGEST LATEST BY", "count": "DIGEST COUNT"}


def check_aggregation(
    trigger: Trigger, clause: DigestClause | None, limits: LimitSettings, *, aggregated: bool
) -> None:
    """Refuse the clauses that an aggregate query cannot have; for any other query, refuse OVER LAST.

    Args:
        trigger: The query's trigger.
        clause: The query's DIGEST clause.
        limits: The limits, which include the largest number of ticks in a window of OVER LAST.
        aggregated: Whether the query is an aggregate query; otherwise each match is a result.

    Raises:
        InputError: ``unsupported-query``; ``quota-exceeded`` for a window with too many ticks.
    """
    if not aggregated:
        if isinstance(trigger, TimerBased) and trigger.over is not None:
            raise _refusal(
                "OVER LAST without aggregates",
                "A digest of matches holds each match once.",
                "Leave OVER LAST out, or aggregate.",
            )
        return
    if isinstance(trigger, ChangeBased):
        raise _refusal(
            "an aggregate without a window or EVERY",
            "An aggregate is computed over the matches of a digest, so the query needs ticks.",
            "Add EVERY '5 minutes'.",
        )
    most_ticks = limits.window_ticks
    if isinstance(trigger, TimerBased) and trigger.over is not None and trigger.over > most_ticks * trigger.every:
        raise InputError(
            f'OVER LAST "{format_interval(trigger.over)}" has more than {most_ticks} ticks',
            code="quota-exceeded",
            detail=f"The window has {trigger.over // trigger.every} ticks; each tick aggregates the whole window.",
            hint=f"Choose a longer EVERY, or a window of {format_interval(most_ticks * trigger.every)} at most.",
        )
    if clause is not None and clause.kind in _REFUSED:
        raise _refusal(
            f"{_REFUSED[clause.kind]} of an aggregate query",
            "Each row of the digest already is an aggregate of matches.",
            "Leave the clause out, or choose among the rows by DIGEST TOP n BY.",
        )


def _refusal(what: str, detail: str, hint: str) -> InputError:
    return InputError(f"{what} is not supported", code="unsupported-query", detail=detail, hint=hint)


def check_untimed(edge: Edge, *, timed: bool) -> None:
    """Refuse EVERY for EMIT CHANGES.

    Args:
        edge: The kind of the query's EMIT.
        timed: Whether the query has EVERY.

    Raises:
        InputError: ``unsupported-query``.
    """
    if timed and edge == "changes":
        raise unsupported(
            "EMIT CHANGES with EVERY",
            "The rows of a digest do not tell inserts, updates and deletes apart.",
            "Leave EVERY out; or EMIT ON ENTER OR EXIT with _edge in the SELECT list.",
        )


def check_digests(old: Destination, trigger: TriggerSpec) -> None:
    """Refuse an ALTER that gives a CQ digests, if its destination can have none.

    Args:
        old: The CQ's destination.
        trigger: The new trigger.

    Raises:
        InputError: ``unsupported-query``.
    """
    check_untimed("" if old.edges is None else old.edges.edge, timed=trigger.timed)
    if trigger.timed and old.mode == "virtual":
        raise InputError(
            "a virtual destination has no digests",
            code="unsupported-query",
            detail="VIRTUAL and EVERY cannot be combined.",
            hint="Create the CQ again without VIRTUAL.",
        )
    if trigger.timed and old.trigger.at_most is not None:
        raise InputError(
            "a CQ with AT MOST has no digests",
            code="unsupported-query",
            detail="AT MOST and EVERY cannot be combined.",
            hint="Write CREATE OR REPLACE CQ without AT MOST.",
        )
