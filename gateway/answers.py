"""The results of statements about CQs (contract §4): what CREATE answers, and DESCRIBE and SHOW."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import NamedTuple

from gateway.positions import topic_of
from gateway.records import Cq, Destination, TriggerSpec, instant
from grouping.catalog import Stream
from grouping.explain import shown_constants
from grouping.group import GroupPlan, SelectList
from grouping.reader_sql import filter_sql, select_sql
from grouping.settings import Settings
from grouping.times import format_interval

__all__ = ["NextTick", "Parts", "cq_result", "destination_result", "trigger_result"]

NextTick = Callable[[TriggerSpec, Cq], int | None]
"""When a CQ fires next, epoch milliseconds."""


def destination_result(settings: Settings, cq: Cq, destination: Destination, parts: Parts) -> dict[str, object]:
    """Return where a reader finds a CQ's results."""
    name, mode, topic = destination.destination_id, destination.mode, topic_of(settings, destination)
    if mode != "virtual":
        partition = destination.partition
        return {"id": name, "mode": mode, "topic": topic, "partition": partition, "key": name, "offset": cq.offset}
    return {
        "id": name,
        "mode": mode,
        "topic": topic,
        "partition": None,
        "key": destination.group_id,
        "offset": cq.offset,
        "filter": filter_sql(parts.plan, destination.row),
        "select": select_sql(parts.select),
        "columns": [{"name": column.name, "type": column.type} for column in parts.stream.columns],
    }


class Parts(NamedTuple):
    """What a destination's CQs have in common with others."""

    stream: Stream
    plan: GroupPlan
    select: SelectList


def cq_result(
    settings: Settings, cq: Cq, destination: Destination, parts: Parts, next_tick: NextTick
) -> dict[str, object]:
    """Return what an accepted CREATE CQ answers."""
    result: dict[str, object] = {
        "cq": cq.name,
        "group": destination.group_id,
        "signature": parts.plan.signature,
        "constants": shown_constants(destination.row),
        "trigger": trigger_result(destination.trigger, cq, next_tick),
        "starts_at": None if cq.start_ms is None else instant(cq.start_ms),
        "expires_at": None if cq.expire_ms is None else instant(cq.expire_ms),
        "destination": destination_result(settings, cq, destination, parts),
    }
    if destination.mode == "virtual":
        result["pauses"] = _pauses(cq)
    return result


def _pauses(cq: Cq) -> list[dict[str, str | None]]:
    return [{"from": instant(since), "to": None if until is None else instant(until)} for since, until in cq.pauses]


def trigger_result(trigger: TriggerSpec, cq: Cq, next_tick: NextTick) -> dict[str, object]:
    """Return when a CQ's results leave."""
    if not trigger.timed:
        return {"kind": "change"}
    at = next_tick(trigger, cq)
    found: dict[str, object] = {"kind": "timer", "next_at": None if at is None else instant(at)}
    if trigger.cron:
        return found | {"cron": trigger.cron, "zone": trigger.zone}
    return found | {"every": format_interval(timedelta(milliseconds=trigger.every_ms))}
