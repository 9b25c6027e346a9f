"""The results of statements about CQs (contract §4): what CREATE answers, and DESCRIBE and SHOW."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal

from gateway.positions import dedicated_topic
from gateway.records import Cq, Destination, TriggerSpec, instant
from grouping.group import ConstantValue, GroupPlan
from grouping.settings import Settings
from grouping.times import format_interval

__all__ = ["NextTick", "cq_result", "destination_result", "shown_constant", "trigger_result"]

NextTick = Callable[[TriggerSpec, Cq], int | None]
"""When a CQ fires next, epoch milliseconds."""


def shown_constant(value: ConstantValue) -> object:
    """Return a constant as JSON: exact decimals as text, times as ISO 8601, a set as a list."""
    if isinstance(value, tuple):
        return [shown_constant(item) for item in value]
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    return format(value, "f") if isinstance(value, Decimal) else value


def destination_result(settings: Settings, cq: Cq, destination: Destination) -> dict[str, object]:
    """Return where a reader finds a CQ's results."""
    name = destination.destination_id
    found: dict[str, object] = {"id": name, "mode": destination.mode}
    match destination.mode:
        case "virtual":
            topic = settings.topic(f"results.{destination.group_id}")
            found |= {"topic": topic, "partition": None, "key": destination.group_id}
        case "dedicated":
            found |= {"topic": dedicated_topic(settings, name), "partition": 0, "key": name}
        case _:
            found |= {"topic": settings.topic("results"), "partition": destination.partition, "key": name}
    return found | {"offset": cq.offset}


def cq_result(
    settings: Settings, cq: Cq, destination: Destination, plan: GroupPlan, next_tick: NextTick
) -> dict[str, object]:
    """Return what an accepted CREATE CQ answers."""
    return {
        "cq": cq.name,
        "group": destination.group_id,
        "signature": plan.signature,
        "constants": [shown_constant(value) for value in destination.row.values],
        "trigger": trigger_result(destination.trigger, cq, next_tick),
        "starts_at": None if cq.start_ms is None else instant(cq.start_ms),
        "expires_at": None if cq.expire_ms is None else instant(cq.expire_ms),
        "destination": destination_result(settings, cq, destination),
    }


def trigger_result(trigger: TriggerSpec, cq: Cq, next_tick: NextTick) -> dict[str, object]:
    """Return when a CQ's results leave."""
    if not trigger.timed:
        return {"kind": "change"}
    at = next_tick(trigger, cq)
    found: dict[str, object] = {"kind": "timer", "next_at": None if at is None else instant(at)}
    if trigger.cron:
        return found | {"cron": trigger.cron, "zone": trigger.zone}
    return found | {"every": format_interval(timedelta(milliseconds=trigger.every_ms))}
