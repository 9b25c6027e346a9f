"""Result records as the contract words them, for the SDK's tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from gateway.sdk.records.record import ResultRecord
from gateway.sdk.results import ContinuousQuery, Destination, Trigger

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def query(
    name: str = "intel",
    destination: str = "d_1",
    *,
    member: str | None = None,
    since: datetime | None = None,
    **changes: Any,
) -> ContinuousQuery:
    """A CQ on partition 3 of the shared topic, accepted at noon."""
    where = Destination(
        id=destination, mode="shared", topic="cq.results", key=destination, partition=3, member=member, since=since
    )
    given = {"group": "g_1", "signature": "SELECT …", "trigger": Trigger(), "created_at": NOON, **changes}
    return ContinuousQuery(cq=name, destination=where, **given)


def _record(
    offset: int, kind: str, ce_id: str, at: datetime, value: Mapping[str, Any], key: str, stream: str = "quotes"
) -> ResultRecord:
    headers = {"ce_specversion": "1.0", "ce_type": kind, "ce_source": stream, "ce_id": ce_id}
    return ResultRecord(
        topic="cq.results",
        partition=3,
        offset=offset,
        key=key.encode(),
        value=json.dumps(value).encode(),
        headers={**headers, "ce_time": at.isoformat()},
    )


def match(
    offset: int,
    source: tuple[int, ...],
    *,
    seconds: float = 0,
    row: Mapping[str, Any] | None = None,
    key: str = "d_1",
    stream: str = "quotes",
    op: str | None = None,
    cause: str | None = None,
) -> ResultRecord:
    """A match at an offset of the result topic, of the event at (partition, offset) or the event's n-th."""
    at = NOON + timedelta(seconds=seconds)
    ce_id = "/".join((stream, *map(str, source)))
    made = _record(offset, "cq.match", ce_id, at, row or {"n": source[1]}, key, stream)
    more = {name: value for name, value in (("op", op), ("cause", cause)) if value is not None}
    return msgspec.structs.replace(made, headers={**made.headers, **more})


def snapshot(offset: int, rows: int) -> ResultRecord:
    """The end of a snapshot of some rows."""
    return _record(offset, "cq.snapshot", "d_1/snapshot", NOON, {"rows": rows}, "d_1")


def digest(
    offset: int, minute: int, *, part: int = 1, parts: int = 1, rows: list[dict[str, Any]] | None = None
) -> ResultRecord:
    """A part of the digest fired `minute` minutes after noon, of the minute before."""
    tick = NOON + timedelta(minutes=minute)
    value = {
        "fired_at": tick.isoformat(),
        "from": (tick - timedelta(minutes=1)).isoformat(),
        "to": tick.isoformat(),
        "count": parts,
        "part": part,
        "parts": parts,
        "rows": rows if rows is not None else [{"part": part}],
    }
    return _record(offset, "cq.digest", f"d_1/{int(tick.timestamp() * 1000)}/{part}", tick, value, "d_1")


def end(offset: int, *, seconds: float, destination: str = "d_1") -> ResultRecord:
    """The end of a destination `seconds` after noon."""
    at = NOON + timedelta(seconds=seconds)
    value = {"ended_at": at.isoformat(), "reason": "dropped"}
    return _record(offset, "cq.end", f"{destination}/end/{int(at.timestamp() * 1000)}", at, value, destination)


def leave(offset: int, member: str, *, seconds: float = 1, reason: str = "dropped") -> ResultRecord:
    """The record of a member that has left the destination, some seconds after noon."""
    at = NOON + timedelta(seconds=seconds)
    value = {"ended_at": at.isoformat(), "reason": reason, "member": member}
    return _record(offset, "cq.leave", f"d_1/leave/{member}", at, value, "d_1")
