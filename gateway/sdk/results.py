"""Replies and results as frozen typed objects. Fields that only later gateways send are ignored."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

__all__ = [
    "ContinuousQuery",
    "Destination",
    "Digest",
    "End",
    "Match",
    "Pause",
    "Quarantine",
    "Reply",
    "Throttle",
    "Trigger",
]


class Throttle(msgspec.Struct, frozen=True):
    """AT MOST: how many results with equal values in some columns are written in an interval."""

    results: int
    every: str
    """ISO 8601 duration."""
    by: list[str] = []
    """Columns of the SELECT list; empty without BY."""


class Trigger(msgspec.Struct, frozen=True):
    """When results are published: each match at once (`change`), or the matches together at a tick (`timer`)."""

    kind: str = "change"
    every: str | None = None
    """ISO 8601 duration."""
    cron: str | None = None
    zone: str | None = None
    next_at: datetime | None = None
    emit: str | None = None
    """The EMIT clause: `enter`, `exit`, `enter or exit`, `silence` or `changes`; None if each match is a result."""
    by: list[str] = []
    """The columns of EMIT … BY."""
    at_most: Throttle | None = None
    """AT MOST; None if all results are written."""


class Destination(msgspec.Struct, frozen=True):
    """Where a CQ's results are written (docs/statements.md, docs/results.md)."""

    id: str
    mode: str
    """`shared`, `dedicated` or `virtual`."""
    topic: str
    key: str
    partition: int | None = None
    """None for a virtual destination, whose results may be in all partitions of its topic."""
    offset: int | list[int] = 0
    """The offset at which a reader begins; for a virtual destination a list with an offset for each partition."""
    member: str | None = None
    """The CQ's token in this destination. A `cq.leave` with this token ends the CQ's results. None from earlier
    gateways."""
    since: datetime | None = None
    """When the CQ came to this destination; None if the CQ was created with this destination."""
    filter: str | None = None
    """For a virtual destination: the condition that the reader applies, as SQL over the stream's columns."""
    select: str | None = None
    """For a virtual destination: the SELECT list that the reader applies."""
    columns: list[dict[str, str]] = []
    """For a virtual destination: the stream's columns, each with `name` and `type`."""

    def begins(self) -> dict[int, int]:
        """Return partition → offset at which a reader begins."""
        if isinstance(self.offset, list):
            return dict(enumerate(self.offset))
        return {self.partition or 0: self.offset}


class Pause(msgspec.Struct, frozen=True):
    """An interval in which no events were evaluated for a CQ."""

    since: datetime = msgspec.field(name="from")
    until: datetime | None = msgspec.field(name="to", default=None)
    """The end of the pause; None while the CQ is paused."""


class Quarantine(msgspec.Struct, frozen=True):
    """Why the gateway does not evaluate a CQ for a while. Meanwhile the CQ's events become dead letters."""

    since: datetime
    until: datetime
    """When the CQ is evaluated again. If the evaluation then succeeds, the quarantine ends."""
    reason: str


class ContinuousQuery(msgspec.Struct, frozen=True):
    """A CQ, from the reply to CREATE CQ or DESCRIBE CQ.

    The reply to CREATE CQ does not have the fields from `text` to `last_match_at`.
    """

    cq: str
    group: str
    signature: str
    destination: Destination
    constants: list[Any] = []
    trigger: Trigger = Trigger()
    starts_at: datetime | None = None
    expires_at: datetime | None = None
    text: str | None = None
    status: str | None = None
    created_at: datetime | None = None
    """When the CQ was created; in the reply to CREATE CQ, the time of the reply."""
    matches: int | None = None
    last_match_at: datetime | None = None
    quarantined: Quarantine | None = None
    """The CQ's quarantine; None if the CQ is not in quarantine."""
    pauses: list[Pause] = []
    """The CQ's pauses, for a virtual destination. The reader skips events that were written during a pause."""

    def same_stay(self, earlier: ContinuousQuery) -> bool:
        """Tell whether two descriptions are of the same CQ in the same destination, not of two CQs with one name."""
        here, there = self.destination, earlier.destination
        return here.id == there.id and (here.member == there.member or None in (here.member, there.member))

    @property
    def since(self) -> datetime | None:
        """When the CQ came to its destination. An end or a leave with an earlier time is about another CQ."""
        return self.destination.since or self.created_at

    @property
    def paused(self) -> bool:
        """Whether the CQ was paused when the gateway answered."""
        return any(pause.until is None for pause in self.pauses)


class Reply(msgspec.Struct, frozen=True):
    """A record of `cq.replies` (docs/commands.md)."""

    command_id: str | None
    subscriber: str
    status: str
    code: str
    message: str
    detail: str | None = None
    hint: str | None = None
    body: msgspec.Raw = msgspec.field(name="result", default=msgspec.Raw(b"null"))
    """The statement's result as JSON, which is decoded only on demand: a program with a million replies needs few of
    their results."""
    replied_at: datetime | None = None

    @property
    def result(self) -> dict[str, Any] | None:
        """The statement's result."""
        found: dict[str, Any] | None = msgspec.json.decode(self.body)
        return found

    @property
    def accepted(self) -> bool:
        """Whether the command was carried out."""
        return self.status == "accepted"

    @property
    def query(self) -> ContinuousQuery:
        """The CQ in the reply to an accepted CREATE CQ or DESCRIBE CQ; other replies have none."""
        query = msgspec.json.decode(self.body, type=ContinuousQuery)
        return query if query.created_at is not None else msgspec.structs.replace(query, created_at=self.replied_at)


class Match(msgspec.Struct, frozen=True):
    """A result of a change-based CQ: an event that matched."""

    cq: str
    """The CQ's name."""
    row: Mapping[str, Any]
    """Column → value, in the order of the SELECT list. The values are decoded from JSON, so times and decimals are
    strings."""
    time: datetime
    """`ce_time`: the source record's time; for a CQ with FOR or EMIT ON SILENCE, the event's time plus the interval."""
    stream: str
    partition: int
    """The partition of the source record."""
    offset: int
    """The offset of the source record; for a CQ with FOR or EMIT ON SILENCE, the position of the result."""
    destination: str
    written_at: datetime | None = None
    """When Kafka appended the result."""
    number: int | None = None
    """The number of the result among the results of its source record, ascending; None if a record gives at most one
    result."""
    edge: str | None = None
    """`enter` or `exit`, for a CQ with EMIT ON ENTER or EXIT."""
    op: str | None = None
    """`insert`, `update` or `delete`, for a CQ with EMIT CHANGES; `snapshot` for a row of the CQ's snapshot. For a
    delete, `row` is the removed row."""
    before: Mapping[str, Any] | None = None
    """For an update: the SELECT list of the row as it was before the update."""
    cause: str | None = None
    """For a CQ with FOR or EMIT ON SILENCE: the id of the event in `row`. `stream` then is the computation's id."""
    suppressed: int = 0
    """For a CQ with AT MOST: the number of results that were left out before this result."""

    @property
    def id(self) -> str:
        """The result's `ce_id`. Within a destination, no two results have the same id, and an id never changes."""
        source = f"{self.stream}/{self.partition}/{self.offset}"
        return source if self.number is None else f"{source}/{self.number}"


class Digest(msgspec.Struct, frozen=True):
    """The matches of a timer-based CQ between two ticks. A digest that was written in several parts is put together."""

    cq: str
    fired_at: datetime
    since: datetime
    """The beginning of the digest (`from`): the previous tick; for the first digest START or the time of acceptance;
    with OVER LAST the beginning of the window."""
    until: datetime
    """The tick (`to`). A digest covers [since, until)."""
    count: int
    """The number of all matches; `rows` may have fewer rows."""
    rows: tuple[Mapping[str, Any], ...]
    destination: str
    tick: int
    """The tick in epoch milliseconds, as in `ce_id`."""


class End(msgspec.Struct, frozen=True):
    """The end of a CQ. No result comes after the end."""

    cq: str
    ended_at: datetime
    reason: str
    """`expired`, `dropped` or `replaced`."""
