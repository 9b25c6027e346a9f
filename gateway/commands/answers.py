"""The result in the replies to CREATE and DESCRIBE of a CQ (docs/statements.md)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from gateway.model.records import Cq, Destination, instant
from gateway.model.trigger_spec import TriggerSpec
from gateway.registry.grid import next_tick_of
from gateway.topics.positions import topic_of
from grouping.access.explain import shown_constants
from grouping.access.query_warnings import query_warnings
from grouping.compiler.reader_sql import filter_sql, select_sql
from grouping.model.catalog import Stream
from grouping.plan.expression_text import render_reference
from grouping.plan.group import GroupPlan, SelectList
from grouping.plan.keyed_rows import KeyedRows
from grouping.plan.row_before import RowBefore
from grouping.settings.settings import Settings
from grouping.values.times import format_interval

__all__ = ["CqResult", "SharedQuery", "cq_result", "trigger_result"]

_EMITS = {"enter": "enter", "exit": "exit", "both": "enter or exit", "changes": "changes", "silence": "silence"}
_CHANGE: dict[str, object] = {"kind": "change"}


class SharedQuery(NamedTuple):
    """A query without its constants: its stream, plan and SELECT list. Many destinations may share it."""

    stream: Stream
    plan: GroupPlan
    select: SelectList


class DestinationResult(msgspec.Struct, frozen=True):
    """The destination in the result: where a reader finds the CQ's results."""

    id: str
    mode: str
    topic: str
    partition: int | None
    key: str
    offset: int | tuple[int, ...]
    member: str
    """The CQ's token in this destination, by which a reader recognises the CQ's own `cq.leave`."""
    since: str | UnsetType = UNSET
    """When the CQ joined this destination; absent if the CQ joined it when it was created. A `cq.end` with an earlier
    time is the end of another incarnation."""
    filter: str | UnsetType = UNSET
    """Only virtual destinations have this field and the fields below."""
    select: str | UnsetType = UNSET
    columns: list[dict[str, str]] | UnsetType = UNSET


class CqResult(msgspec.Struct, frozen=True):
    """The result of an accepted CREATE CQ."""

    cq: str
    group: str
    signature: str
    constants: list[Any]
    trigger: dict[str, object]
    starts_at: str | None
    expires_at: str | None
    destination: DestinationResult
    pauses: list[dict[str, str | None]] | UnsetType = UNSET
    """The pauses of the CQ, for a virtual destination."""
    warnings: tuple[str, ...] | UnsetType = UNSET
    """Warnings about conditions that are probably mistakes (`query_warnings`); absent without warnings."""


def cq_result(
    settings: Settings, cq: Cq, member: str, destination: Destination, shared: SharedQuery, now_ms: int
) -> CqResult:
    """Return the result in the reply to an accepted CREATE CQ."""
    return CqResult(
        cq.name,
        destination.group_id,
        shared.plan.signature,
        shown_constants(destination.row),
        trigger_result(destination, cq, now_ms, shared.plan.before or shared.plan.timed),
        None if cq.start_ms is None else instant(cq.start_ms),
        None if cq.expire_ms is None else instant(cq.expire_ms),
        _destination_result(settings, cq, member, destination, shared),
        _pauses(cq) if destination.mode == "virtual" else UNSET,
        query_warnings(shared.plan, destination.row, cq.text, shared.select) or UNSET,
    )


def _destination_result(
    settings: Settings, cq: Cq, member: str, destination: Destination, shared: SharedQuery
) -> DestinationResult:
    name, mode, topic = destination.destination_id, destination.mode, topic_of(settings, destination)
    since = instant(cq.joined_ms) if cq.joined_ms else UNSET
    if mode != "virtual":
        return DestinationResult(name, mode, topic, destination.partition, name, cq.offset, member, since)
    return DestinationResult(
        name,
        mode,
        topic,
        None,
        destination.group_id,
        cq.offset,
        member,
        since,
        filter_sql(shared.plan, destination.row),
        select_sql(shared.select),
        [{"name": column.name, "type": column.type_text} for column in shared.stream.columns],
    )


def _pauses(cq: Cq) -> list[dict[str, str | None]]:
    return [{"from": instant(since), "to": None if until is None else instant(until)} for since, until in cq.pauses]


def trigger_result(
    destination: Destination, cq: Cq, now_ms: int, key: RowBefore | KeyedRows | None = None
) -> dict[str, object]:
    """Return when and for which events a CQ has results.

    Args:
        destination: The CQ's destination.
        cq: The CQ.
        now_ms: The instant from which the next tick is counted, epoch milliseconds.
        key: The plan's node with the columns of BY; None leaves these columns out.
    """
    found = _schedule(destination.trigger, cq, now_ms)
    if destination.edges is None or not destination.edges.edge:
        return found
    by = {} if key is None else {"by": [render_reference(column.reference) for column in key.by]}
    return {**found, "emit": _EMITS[destination.edges.edge], **by}


def _schedule(trigger: TriggerSpec, cq: Cq, now_ms: int) -> dict[str, object]:
    """Return the part of the trigger that says when results are published."""
    if (throttle := trigger.throttle) is not None:
        limit = {"results": throttle.most, "every": format_interval(throttle.every), "by": throttle.columns}
        return {**_CHANGE, "at_most": limit}
    if not trigger.timed:
        return _CHANGE
    at = next_tick_of(cq, trigger, now_ms)
    found: dict[str, object] = {"kind": "timer", "next_at": None if at is None else instant(at)}
    if trigger.cron:
        return found | {"cron": trigger.cron, "zone": trigger.zone}
    found["every"] = format_interval(timedelta(milliseconds=trigger.every_ms))
    if trigger.over_ms:
        found["over_last"] = format_interval(timedelta(milliseconds=trigger.over_ms))
    return found
