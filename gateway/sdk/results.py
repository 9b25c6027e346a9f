"""Replies and results as frozen typed objects; unknown fields of later gateways are ignored."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

__all__ = ["ContinuousQuery", "Destination", "Digest", "End", "Match", "Pause", "Quarantine", "Reply", "Trigger"]


class Trigger(msgspec.Struct, frozen=True):
    """When results are published: each at once (`change`), or together at a tick (`timer`)."""

    kind: str = "change"
    every: str | None = None
    """ISO 8601 duration."""
    cron: str | None = None
    zone: str | None = None
    next_at: datetime | None = None
    emit: str | None = None
    """`enter`, `exit`, `enter or exit`, `silence` or `changes`; None where each match is a result."""
    by: list[str] = []
    """The columns of EMIT … BY."""


class Destination(msgspec.Struct, frozen=True):
    """Where a CQ's results are written (docs/statements.md, docs/results.md)."""

    id: str
    mode: str
    """`shared`, `dedicated` or `virtual`."""
    topic: str
    key: str
    partition: int | None = None
    """None for a virtual destination: all partitions of its topic."""
    offset: int | list[int] = 0
    """The offset at which a reader begins; for a virtual destination an offset for each partition."""
    member: str | None = None
    """The CQ's token in this destination: its reader ends with the token's `cq.leave`. None from earlier gateways."""
    since: datetime | None = None
    """When the CQ came to this destination, if later than its creation."""
    filter: str | None = None
    """For a virtual destination: SQL over the stream's columns that the reader applies."""
    select: str | None = None
    """For a virtual destination: the SELECT list that the reader applies."""
    columns: list[dict[str, str]] = []
    """For a virtual destination: the stream's columns, each with `name` and `type`."""

    def begins(self) -> dict[int, int]:
        """Offset to begin at, by partition."""
        if isinstance(self.offset, list):
            return dict(enumerate(self.offset))
        return {self.partition or 0: self.offset}


class Pause(msgspec.Struct, frozen=True):
    """A time in which a CQ saw nothing."""

    since: datetime = msgspec.field(name="from")
    until: datetime | None = msgspec.field(name="to", default=None)
    """None while it lasts."""


class Quarantine(msgspec.Struct, frozen=True):
    """Why the gateway does not evaluate a CQ for a while. Meanwhile the CQ's events become dead letters."""

    since: datetime
    until: datetime
    """When the CQ is evaluated again; if that succeeds, the quarantine ends."""
    reason: str


class ContinuousQuery(msgspec.Struct, frozen=True):
    """A CQ as CREATE CQ and DESCRIBE CQ answer it; the fields from `text` to `last_match_at` are DESCRIBE's alone."""

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
    """When the CREATE was accepted; in the reply to the CREATE itself, the time of the reply."""
    matches: int | None = None
    last_match_at: datetime | None = None
    quarantined: Quarantine | None = None
    """None while the CQ is evaluated."""
    pauses: list[Pause] = []
    """For a virtual destination: the reader skips events that were written during a pause."""

    def same_stay(self, earlier: ContinuousQuery) -> bool:
        """Tell whether this is the same CQ in the same destination, not another CQ of its name."""
        here, there = self.destination, earlier.destination
        return here.id == there.id and (here.member == there.member or None in (here.member, there.member))

    @property
    def since(self) -> datetime | None:
        """When the CQ came to its destination: an end or leave before that time is about another CQ."""
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
    """The statement's result as undecoded JSON: a program with a million replies decodes hardly any."""
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
        """The CQ of an accepted CREATE or DESCRIBE CQ; None for other statements."""
        query = msgspec.json.decode(self.body, type=ContinuousQuery)
        return query if query.created_at is not None else msgspec.structs.replace(query, created_at=self.replied_at)


class Match(msgspec.Struct, frozen=True):
    """An event matched by a change-based CQ."""

    cq: str
    """The CQ's name."""
    row: Mapping[str, Any]
    """The SELECT list in its order, as decoded from JSON: times and decimals are strings."""
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
    """Ascending number of the result among the results of its source record; None if the record gives at most one."""
    edge: str | None = None
    """`enter` or `exit`, of a CQ with EMIT ON ENTER or EXIT."""
    op: str | None = None
    """`insert`, `update` or `delete`, of a CQ with EMIT CHANGES; for a delete, `row` is the removed row. `snapshot` for
    a row of the CQ's snapshot."""
    before: Mapping[str, Any] | None = None
    """For an update: the SELECT list of the row before."""
    cause: str | None = None
    """With FOR or EMIT ON SILENCE: the id of the event in `row`; `stream` is then the id of the computation."""

    @property
    def id(self) -> str:
        """The result's `ce_id`, for ever the same within its destination."""
        source = f"{self.stream}/{self.partition}/{self.offset}"
        return source if self.number is None else f"{source}/{self.number}"


class Digest(msgspec.Struct, frozen=True):
    """The matches of a timer-based CQ between two ticks, all parts together."""

    cq: str
    fired_at: datetime
    since: datetime
    """`from`: the previous tick; for the first digest START or acceptance; with OVER LAST the begin of the window."""
    until: datetime
    """This tick (`to`); a digest covers [since, until)."""
    count: int
    """The number of all matches, whatever `rows` holds."""
    rows: tuple[Mapping[str, Any], ...]
    destination: str
    tick: int
    """This tick in milliseconds since 1970, as in `ce_id`."""


class End(msgspec.Struct, frozen=True):
    """The end of a CQ: no result comes after it."""

    cq: str
    ended_at: datetime
    reason: str
    """`expired`, `dropped` or `replaced`."""
